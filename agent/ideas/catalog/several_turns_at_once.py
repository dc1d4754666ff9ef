"""Take several turns of a loop at once where its step is known to the launch alone."""

from agent.analysis.syntax import text
from agent.ideas.elements.pieces import lines_for
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, fresh_counter, indented, insert_before, replace, source_text
from agent.ideas.strides.site import Stride, stride
from agent.ideas.view import View

HALF = 0.5
"""What becomes of the time where loads are waited for one by one, at full occupancy: a guess that puts the idea behind
those that save the loads."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     rows = 256
//   size     cols = 65536
//   buffer   x: f32[rows * cols] in normal
//   buffer   norms: f32[rows] inout zeros
//   launch   square_sums<<<rows, 128>>>(x, norms, cols)
__global__ void square_sums(const float* x, float* norms, int cols) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = x[blockIdx.x * cols + i];
        sum += v * v;
    }
    atomicAdd(&norms[blockIdx.x], sum);
}
"""


@catalogued(
    name="several-turns-at-once",
    title="Take several turns of a loop at once, so that their loads are under way together",
    rationale=(
        "A loop in steps of the block or the grid is not unrolled by the compiler, which does not know the step and so "
        "not how many turns are left: each turn loads, waits for memory, and only then goes on. With one load of a "
        "thread under way even a full SM asks for a third of what memory can deliver; a small grid for much less. As "
        "long as several turns are left they can be taken together: the order of the arithmetic stays."
    ),
    needs=(
        "a `for` loop of eight turns or more whose step is made of blockDim, gridDim or parameters; or one in steps of "
        "a number whose loads are narrow, or whose launch is small, so that four turns at once are too few",
        "loads in each turn at places that the loop's variable tells",
        "no stores to global memory, barriers, inner loops (but those written out whole) or early ends inside",
    ),
    effect="waits for memory to one for several turns; instructions fall a little",
    risk="a register for each load that is under way",
    example=EXAMPLE,
)
def several_turns_at_once(view: View) -> Match | Refusal:
    found = stride(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Stride) -> Match:
    spelled = source_text(view.document, found.loads[0])
    counts = (2, 4, 8, 16) if found.step is not None else (8, 16, 32)
    choices = tuple(count for count in counts if found.turns is None or 2 * count <= found.turns) or counts[:1]
    default = 16 if found.step is None else 8 if len(found.loads) < 4 else 4
    default = default if default in choices else choices[-1]
    unknown = (
        f"each turn waits for `{spelled}` before the next one begins, as the compiler does not know how many turns of "
        f"`{text(found.step)}` are left"
    )
    narrow = f"the compiler takes four turns at once, whose loads of `{spelled}` are too little to keep memory busy"
    tunable = Tunable("turns", choices, default, "turns at once")
    batches = Variant(
        "turns in batches",
        "as long as enough turns are left they are taken together, the rest one by one",
        Scope.DROP_IN,
        lambda turns: _written(view, found, turns),
        (tunable,),
    )
    unrolled = Variant(
        "unrolled further",
        "the compiler is told to take more turns together",
        Scope.DROP_IN,
        lambda turns: Rewrite(
            tuple(insert_before(view.document, loop.node, f"#pragma unroll {turns}") for loop in found.like)
        ),
        (tunable,),
    )
    return Match(
        line=view.document.line(found.loop.node.start_byte),
        title=f"take {default} turns of the loop at once",
        why=narrow if found.step is None else unknown,
        expects=(Expectation("latency", HALF, f"waits for memory -{round(100 * (1 - 1 / default))} %"),),
        variants=(unrolled if found.step is None else batches,),
    )


def _written(view: View, found: Stride, turns: int) -> Rewrite:
    document, loop = view.document, found.loop
    name, lines = loop.variable.name, lines_for(view)
    header = loop.node.child_by_field_name("initializer")
    assert header is not None and found.step is not None
    step, bound = source_text(document, found.step), source_text(document, loop.bound_node)
    grouped = step if found.step.type in _SIMPLE else f"({step})"
    limit = bound if loop.bound_node.type in (*_SIMPLE, "number_literal") else f"({bound})"
    counter = fresh_counter(document, view.kernel)
    body = _body(view, found)
    batch = [
        "#pragma unroll",
        *lines.block(f"for (int {counter} = 0; {counter} < {turns}; ++{counter}, {name} += {step})", body),
    ]
    written = [
        source_text(document, header).rstrip(";") + ";",
        f"// {_WORDS[turns]} turns at a time, whose loads are under way together.",
        *lines.block(f"while ({name} < {bound} && {limit} - {name} > {turns - 1} * {grouped})", batch),
        *lines.block(f"for (; {name} < {bound}; {name} += {step})", body),
    ]
    if _named_elsewhere(view, found):
        written = ["{", *lines.deeper(written), "}"]
    return Rewrite((replace(loop.node, indented(document, loop.node, "\n".join(written))),))


def _body(view: View, found: Stride) -> list[str]:
    """What a turn does, without the braces around it, at the left edge."""
    lines, body = lines_for(view), found.loop.body
    if body.type != "compound_statement":
        return lines.statement(body, {})
    return [line for child in body.named_children for line in lines.statement(child, {})]


def _named_elsewhere(view: View, found: Stride) -> bool:
    """Whether the loop's name means something else beside it."""
    own = found.loop.variable
    return any(one is not own and one.name == own.name for one in view.facts.symbols.all())


_WORDS = {2: "Two", 4: "Four", 8: "Eight", 16: "Sixteen"}
_SIMPLE = ("identifier", "field_expression")
