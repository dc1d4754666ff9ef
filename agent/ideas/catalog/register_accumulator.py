"""Keep an element of global memory in a register while a loop comes back to it in every turn."""

from agent.ideas.aliasing.kept import Kept, kept
from agent.ideas.elements.pieces import at, lines_for
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rewriting import Rewrite, fresh_local, indented, insert_after, replace, source_text
from agent.ideas.rowpass.writing import insert_before_loop
from agent.ideas.view import View

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1024
//   buffer   a: f32[n * n] in normal
//   buffer   x: f32[n] in normal
//   buffer   y: f32[n] out
//   launch   matvec<<<(n + 127) / 128, 128>>>(a, x, y, n)
__global__ void matvec(const float* a, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    y[row] = 0.0f;
    for (int k = 0; k < n; ++k) {
        y[row] += a[k * n + row] * x[k];
    }
}
"""


@catalogued(
    name="register-accumulator",
    title="Keep an element in a register while a loop adds to it",
    rationale=(
        "A loop that adds to an element of global memory stores it in every turn, as the compiler cannot know that no "
        "other pointer reads it; the loads of the next turn then wait behind that store, and nothing can be fetched "
        "ahead. A local variable takes the sum; the element is written once, after the loop."
    ),
    needs=(
        "all the loop's accesses to the array are to one element, whose index no turn changes",
        "nothing else that the loop touches lies in the same buffer; no barrier, no return inside",
        "the loop has a turn at every size, or the element is touched before it as well",
    ),
    effect="stores of the loop to one; loads of the array from one a turn to one",
    risk="one register more",
    example=EXAMPLE,
)
def register_accumulator(view: View) -> Match | Refusal:
    found = kept(view)
    return Refusal(found) if isinstance(found, str) else _match(view, found)


def _match(view: View, found: Kept) -> Match:
    spelled = source_text(view.document, found.accesses[0].node)
    inside = [access for access in view.facts.accesses_in(found.loop) if access.space == "global"]
    requests = sum(int(access.reads) + int(access.writes) for access in inside)
    own = sum(int(access.reads) + int(access.writes) for access in found.accesses)
    factor = round(max(0.1, (requests - own) / requests), 2)
    return Match(
        line=view.document.line(found.accesses[0].node.start_byte),
        title=f"keep `{spelled}` in a register while the loop goes on",
        why=(
            f"the loop comes back to `{spelled}` in every turn and stores it each time, although nothing else that it "
            "touches lies in that buffer"
        ),
        expects=(Expectation("requests", factor, f"requests -{round(100 * (1 - factor))} %"),),
        variants=(
            Variant(
                "stored once",
                "a local variable in the loop, and one store after it",
                Scope.DROP_IN,
                lambda: _written(view, found),
            ),
        ),
    )


def _written(view: View, found: Kept) -> Rewrite:
    document = view.document
    name = fresh_local(f"{found.root.name}_value", document, view.kernel)
    spelled = source_text(document, found.accesses[0].node)
    kind = found.accesses[0].element.replace("const ", "")
    before, after = f"{kind} {name} = {spelled};", f"{spelled} = {name};"
    loop, inside = found.loop, {at(access.node): name for access in found.accesses}
    if loop.parent is None or loop.parent.type != "compound_statement":
        lines = lines_for(view)
        braced = ["{", *lines.deeper([before, *lines.statement(loop, inside), after]), "}"]
        return Rewrite((replace(loop, indented(document, loop, "\n".join(braced))),))
    return Rewrite(
        (
            insert_before_loop(document, loop, before),
            *(replace(access.node, name) for access in found.accesses),
            insert_after(document, loop, after),
        )
    )
