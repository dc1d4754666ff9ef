"""Y9: a kernel that waits for its whole grid, launched as any other."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Severity, at_launch, hit
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.syntax import ancestors, arguments, text

FIRES = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void steps(float* x, int n) {
    cg::grid_group grid = cg::this_grid();
    for (int k = 0; k < n; ++k) {
        x[grid.thread_rank()] += 1.0f;
        grid.sync();
    }
}
void run(float* x) {
    steps<<<64, 256>>>(x, 10);  // Y9
}
"""
COOPERATIVE = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void steps(float* x, int n) {
    cg::grid_group grid = cg::this_grid();
    x[grid.thread_rank()] += 1.0f;
    grid.sync();
}
__global__ void ranks(float* x) {
    cg::grid_group grid = cg::this_grid();
    x[grid.thread_rank()] += 1.0f;
}
void run(float* x, int n) {
    void* given[] = {&x, &n};
    cudaLaunchCooperativeKernel((void*)steps, dim3(64), dim3(256), given, 0, 0);
    ranks<<<64, 256>>>(x);
}
"""


@rule(
    id="Y9",
    name="grid-sync-launch",
    title="A kernel that waits for its whole grid is launched with <<<>>>",
    why="Only cudaLaunchCooperativeKernel promises that all blocks run at once; otherwise they may wait for ever.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("the kernel asks the grid group for ranks and sizes only", "no <<<>>> launch is in sight"),
    fires=(FIRES,),
    silent=(COOPERATIVE,),
)
def grid_sync_launch(view: View) -> Iterator[Hit]:
    grids = view.calls(("this_grid",)) if view.launches else []
    if not grids:
        return
    names = {name for call in grids if (name := _held(call))}
    waits = next((call for call in view.facts.calls if _waits(call, names)), None)
    plain = [number for number, launch in enumerate(view.launches) if launch.how in ("", "a pointer")]
    for number in plain if waits is not None else ():
        yield hit(
            at_launch(number),
            f"{view.facts.kernel.name} waits for all blocks of its grid: launch it with cudaLaunchCooperativeKernel",
            related=((waits, "waits here"),) if waits is not None else (),
        )


def _held(call: Node) -> str:
    """The variable that a grid group is put into."""
    declared = next((above for above in ancestors(call) if above.type == "init_declarator"), None)
    return text(declared.child_by_field_name("declarator")).strip("& ") if declared is not None else ""


def _waits(call: Node, names: set[str]) -> bool:
    function = call.child_by_field_name("function")
    if function is not None and function.type == "field_expression":
        of = text(function.child_by_field_name("argument"))
        return text(function.child_by_field_name("field")) == "sync" and (of in names or of.endswith("this_grid()"))
    given = arguments(call)
    return text(function).split("::")[-1] == "sync" and len(given) == 1 and text(given[0]) in names
