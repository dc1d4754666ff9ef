"""L3: a grid that is rounded down."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.affine import Poly
from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.values import difference

FIRES = """\
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
void run(float* x, int n) {
    scale<<<n / 256, 256>>>(x, n);  // L3
}
"""
UP = FIRES.replace("n / 256", "(n + 255) / 256").replace("  // L3", "")
EXACT = """\
// A kernel without a check says that sizes are multiples.
__global__ void scale(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f; }
__global__ void strided(float* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 2.0f;
}
void run(float* x, int n) {
    scale<<<n / 256, 256>>>(x);
    strided<<<n / 256, 256>>>(x, n);
}
"""

REFUSED = """\
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
bool run(float* x, int n) {
    if (n % 256 != 0) return false;
    scale<<<n / 256, 256>>>(x, n);
    return true;
}
"""


@rule(
    id="L3",
    name="rounded-down-grid",
    title="A grid is rounded down, and the kernel checks for the tail",
    why="The last elements belong to no thread where the size is no multiple of the block.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=(
        "the kernel does not compare its index with the same size: it may be a multiple by contract",
        "threads go on by the size of the grid",
        "the size is a known number",
        "the file asks what is left over (`n % 256`)",
    ),
    fires=(FIRES,),
    silent=(UP, EXACT, REFUSED),
)
def rounded_down_grid(view: View) -> Iterator[Hit]:
    down = [number for number, launch in enumerate(view.launches) if launch.rounds == "down"]
    if not down or b"gridDim" in view.facts.document.text:
        return
    checks = {name: test for test in view.operations("<", ">=", "<=", ">") for name in _limits(test, view)}
    for number in down:
        launch = view.launches[number]
        given = zip(view.facts.kernel.parameters, launch.arguments, strict=False)
        checked = next((checks[one.name] for one, size in given if size == launch.size and one.name in checks), None)
        if checked is not None:
            yield hit(
                at_launch(number, "grid"),
                f"{launch.size} is rounded down to whole blocks of {launch.block[0]}: where it is no multiple, the "
                f"last elements are left out, though {view.facts.kernel.name} checks for a tail",
                related=((checked, "checked here"),),
            )


def _limits(test: Node, view: View) -> Iterator[str]:
    """The parameters that the thread's number in the grid is compared with."""
    apart = difference(test, view.facts.scope)
    slopes = [apart.coefficient(f"{of}.x") for of in ("threadIdx", "blockIdx")]
    if all(slope is not None and slope.terms for slope in slopes) and "unknown" not in apart.depends:
        yield from (parameter.name for parameter in view.facts.kernel.parameters if _alone(parameter.name, apart))


def _alone(name: str, apart: Poly) -> bool:
    return any(len(product) == 1 and product[0].name == name for product, _ in apart.terms)
