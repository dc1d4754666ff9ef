"""L18: assembly that writes memory and does not say so."""

import re
from collections.abc import Iterator

from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import text

FIRES = """\
__global__ void put(float* x, float v) {
    asm("st.global.wt.f32 [%0], %1;" :: "l"(x + threadIdx.x), "f"(v));  // L18
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(x), "f"(v));  // L18
}
"""
SAID = """\
__global__ void put(float* x, float v) {
    asm volatile("st.global.wt.f32 [%0], %1;" :: "l"(x + threadIdx.x), "f"(v) : "memory");
    unsigned lane;
    asm("mov.u32 %0, %laneid;" : "=r"(lane));
    x[lane] = v;
}
"""
_STORES = re.compile(r"\b(?:st|red|atom)\.(?:[a-z_:]+\.)*(?:global|shared|f32|u32|b32|s32|u64|b64|v2|v4)\b")


@rule(
    id="L18",
    name="careless-asm",
    title="Assembly writes memory and does not say so",
    why='Without volatile and a "memory" clobber a compiler may move other accesses past it, or drop it.',
    cost=Cost.RESULT,
    severity=Severity.HINT,
    silent_when=("the instruction computes only, or loads", 'it has both volatile and "memory"'),
    fires=(FIRES,),
    silent=(SAID,),
)
def careless_asm(view: View) -> Iterator[Hit]:
    for node in view.nodes("gnu_asm_expression"):
        written = text(node)
        found = _STORES.search(written)
        if found is None:
            continue
        missing = [word for word, there in (("volatile", "volatile"), ('a "memory" clobber', '"memory"'))
                   if there not in written]  # fmt: skip
        if missing:
            yield hit(node, f"{found[0]} writes memory: say so with {' and '.join(missing)}")
