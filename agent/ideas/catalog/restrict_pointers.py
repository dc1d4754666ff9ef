"""Say that pointers are apart, so that loads can go ahead of stores, and be made once."""

from collections.abc import Iterator

from agent.analysis.accesses import Access
from agent.analysis.syntax import statement_of
from agent.ideas.elements.restrict import all_apart, restricted, unmarked
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, source_text
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1 << 22
//   buffer   x: f32[n] in normal
//   buffer   scale: f32[1] in normal
//   buffer   y: f32[n] out
//   launch   stretch<<<528, 256>>>(x, scale, y, n)
__global__ void stretch(const float* x, const float* scale, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i] * scale[0];
    }
}
"""


@catalogued(
    name="restrict-pointers",
    title="Say that pointers are apart",
    rationale=(
        "A store through one pointer may change what another points at, as far as the compiler sees: what was loaded "
        "before is loaded again, and a load of the next turn waits behind the store of this one. `__restrict__` says "
        "that it does not; loads then go ahead in batches, through the read-only path, and common ones are made once."
    ),
    needs=(
        "every pointer parameter is handed a buffer of its own, in every launch",
        "a load comes after a store to another array, or both stand in one loop",
    ),
    effect="loads that are made again; time that loads wait behind stores",
    risk="a caller elsewhere that hands one buffer to two parameters gets wrong results",
    example=EXAMPLE,
)
def restrict_pointers(view: View) -> Match | Refusal:
    missing = unmarked(view)
    if not missing:
        return Refusal("its pointers are all marked as apart already")
    reason = all_apart(view)
    if reason is not None:
        return Refusal(reason)
    pair = next(_behind(view), None)
    if pair is None:
        return Refusal("no load of global memory comes after a store to another array")
    store, load = pair
    names = ", ".join(one.name for one in missing)
    stored, loaded = source_text(view.document, store.node), source_text(view.document, load.node)
    return Match(
        line=view.document.line(load.node.start_byte),
        title=f"mark {names} with __restrict__",
        why=f"`{loaded}` is loaded behind a store to `{stored}`, and nothing says that the two are apart",
        expects=(Expectation("requests", 0.95, "loads go ahead of stores; those that are made twice fall away"),),
        variants=(
            Variant(
                "restrict",
                "a promise in the signature, which the plan's launches keep",
                Scope.DROP_IN,
                lambda: Rewrite(restricted(view)),
            ),
        ),
    )


def _behind(view: View) -> Iterator[tuple[Access, Access]]:
    """(store, load of another array that may run after it), loads in loops first."""
    found = [one for one in view.facts.accesses if one.space == "global" and one.root is not None]
    stores = [one for one in found if one.writes]
    loads = sorted((one for one in found if one.reads), key=lambda one: -len(view.facts.loops_around(one.node)))
    for load in loads:
        for store in stores:
            together = set(view.facts.loops_around(load.node)) & set(view.facts.loops_around(store.node))
            if store.root is not load.root and (together or statement_of(store.node).end_byte <= load.node.start_byte):
                yield store, load
