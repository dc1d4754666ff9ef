"""Launches of other shapes; the kernel stays as it is."""

from attrs import evolve

from agent.ideas.elements.places import end_of
from agent.ideas.elements.reach import blocks_for, in_launch_names
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite
from agent.ideas.shape.site import Site
from agent.ideas.view import View
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch


def reshaped(view: View, site: Site, extents: tuple[int, int, int]) -> Rewrite:
    """Blocks of these extents along the axes that are bounded; the grid covers the same elements."""

    def changed(launch: Launch) -> Launch:
        grid, block = list(launch.grid), list(launch.block)
        for axis, limit in site.bounds.items():
            grid[axis] = blocks_for(end_of(view, launch, limit), extents[axis])
            block[axis] = number(extents[axis])
        return evolve(launch, grid=(grid[0], grid[1], grid[2]), block=(block[0], block[1], block[2]))

    return Rewrite((), plan=each_launch(view.request.plan, view.kernel, changed))


def more_blocks(view: View, site: Site, threads: int, blocks: int) -> Rewrite:
    """As many blocks as the loop has work for, and no more than ``blocks``."""
    loop = site.loop
    assert loop is not None

    def changed(launch: Launch) -> Launch:
        end = in_launch_names(view, launch, loop.bound_node)
        grid: Expression = number(blocks)
        if end is not None:
            grid = build("call", (build("call", (blocks_for(end, threads), number(1)), "max"), grid), "min")
        return evolve(launch, grid=(grid, *launch.grid[1:]), block=(number(threads), *launch.block[1:]))

    return Rewrite((), plan=each_launch(view.request.plan, view.kernel, changed))
