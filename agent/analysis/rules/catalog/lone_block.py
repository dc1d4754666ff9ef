"""L12: a launch of one block that loops over data."""

from collections.abc import Iterator

from agent.analysis.loops import Loop
from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View

FIRES = """\
__global__ void scale(float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= 2.0f;
}
void run(float* x, int n) {
    scale<<<1, 256>>>(x, n);  // L12
}
"""
MANY = FIRES.replace("<<<1, 256>>>", "<<<64, 256>>>").replace("  // L12", "")
SHORT = """\
__global__ void scale(float* x) {
    for (int i = 0; i < 4; ++i) x[threadIdx.x * 4 + i] *= 2.0f;
}
void run(float* x) { scale<<<1, 256>>>(x); }
"""


@rule(
    id="L12",
    name="lone-block",
    title="A launch of one block that loops over data",
    why="A block runs on one multiprocessor; a card has up to a hundred and more, which stay idle.",
    cost=Cost.LANES,
    severity=Severity.HINT,
    silent_when=("the grid is not known, or has several blocks", "no loop runs up to a parameter"),
    fires=(FIRES,),
    silent=(MANY, SHORT),
    default=False,
)
def lone_block(view: View) -> Iterator[Hit]:
    alone = [number for number, launch in enumerate(view.launches) if launch.grid == (1, 1, 1)]
    loop = next((one for one in view.facts.loops if _to_a_parameter(one, view)), None) if alone else None
    for number in alone if loop is not None else ():
        yield hit(
            at_launch(number, "grid"),
            f"one block goes through all of {view.facts.kernel.name}'s data, on one multiprocessor",
            related=((loop.bound_node, "the loop"),) if loop is not None else (),
        )


def _to_a_parameter(loop: Loop, view: View) -> bool:
    names = {parameter.name for parameter in view.facts.kernel.parameters}
    touched = any(one.space == "global" for one in view.facts.accesses_in(loop.body))
    return touched and any(atom.name in names for atom in loop.bound.atoms)
