"""The exchange in two dimensions: in the block alone, with the grid, or through a linear index."""

import re

from attrs import evolve

from agent.analysis.coalescing import block_lanes
from agent.analysis.syntax import callee, descendants, text
from agent.ideas.exchange.cost import Balance, balance, lanes
from agent.ideas.idea import Expectation, Scope
from agent.ideas.plans import each_launch
from agent.ideas.registry import Match, Refusal, Variant
from agent.ideas.rewriting import Rewrite, fresh_name, insert_before, replace, source_text
from agent.ideas.view import View, evaluate
from agent.source.edits import Edit
from agent.workload.plan import Launch

INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
OTHER = {"x": "y", "y": "x"}
GRID_LIMIT = 65535
"""The most blocks along y and z (CUDA C++ Programming Guide, technical specifications per compute capability)."""


def plane_exchange(view: View) -> Match | Refusal:
    obstacle = obstacles(view)
    if obstacle is not None:
        return Refusal(obstacle)
    x, y, z = view.block
    if x is None or y is None or z is None:
        return Refusal("the block's extents are not fixed numbers, so a warp's shape is not known")
    counted = balance(view, lanes(view, block_lanes((x, y, z))), lanes(view, block_lanes((x, y, z), exchanged=True)))
    if isinstance(counted, str):
        return Refusal(counted)
    reason = counted.verdict(view)
    return Refusal(reason) if reason is not None else _match(view, counted, x == y)


def obstacles(view: View) -> str | None:
    """What forbids handing one thread's work to another, in words."""
    for call in view.facts.calls:
        name = callee(call)
        if re.match(
            r"__(shfl|ballot|any|all|activemask|syncwarp|match|reduce)|coalesced_threads|tiled_partition|this_thread",
            name,
        ):
            return f"`{name}` works on the warp as it is, and the exchange puts other threads into it"
        body = _function_body(view, name)
        if body is not None and re.search(r"\b(threadIdx|__shfl|__syncwarp|warpSize|lane|__shared__|cub::)", body):
            return f"`{name}`, which it calls, looks at the thread index by itself"
    if re.search(rb"\bwarpSize\b|\basm\b", view.document.text[view.facts.body.start_byte : view.facts.body.end_byte]):
        return "it uses warpSize or inline assembly, which see the warp as it is"
    for macro in view.document.macros:
        written = view.document.text[view.kernel.span.start : view.kernel.span.end]
        if re.search(rb"threadIdx|blockIdx", macro.body.encode()) and re.search(
            rb"\b%s\b" % macro.name.encode(), written
        ):
            return f"the macro {macro.name} hides a thread index"
    for node in descendants(view.facts.body, "identifier"):
        if text(node) in INDICES and (node.parent is None or node.parent.type != "field_expression"):
            return f"it hands {text(node)} on as a whole"
    return None


def _function_body(view: View, name: str) -> str | None:
    for node in descendants(view.document.tree.root_node, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and text(declarator.child_by_field_name("declarator")).split("::")[-1] == name:
            return source_text(view.document, node)
    return None


def _match(view: View, counted: Balance, square: bool) -> Match:
    best = counted.best()
    spelled = source_text(view.document, best.access.node)
    variants = []
    if square:
        variants.append(
            Variant(
                "threads",
                "the block is square, so the two thread indices are exchanged inside it; blocks and launch stay",
                Scope.DROP_IN,
                lambda: Rewrite(_exchanged(view, ("threadIdx",))),
            )
        )
    else:
        variants.append(
            Variant(
                "linear index",
                "the block is not square, so each thread finds its place from its linear index; the launch stays",
                Scope.DROP_IN,
                lambda: _remapped(view),
            )
        )
    if _grid_fits(view):
        symmetrical = all(_symmetrical(launch) for launch in view.launches)
        variants.append(
            Variant(
                "threads and blocks",
                "x and y change places in the kernel and in the launch, so that neighbouring blocks are "
                "neighbours along rows as well",
                Scope.DROP_IN if symmetrical else Scope.RELAUNCH,
                lambda: Rewrite(_exchanged(view, INDICES), plan=each_launch(view.request.plan, view.kernel, _turned)),
            )
        )
    return Match(
        line=view.document.line(best.access.node.start_byte),
        title="exchange threadIdx.x and threadIdx.y, so that a warp touches fewer sectors",
        why=f"`{spelled}` takes {best.before} sectors per request of a warp, {best.after} with the indices exchanged",
        expects=(Expectation("sectors", round(counted.factor, 2), f"sectors -{round(100 * (1 - counted.factor))} %"),),
        variants=tuple(variants),
    )


def _exchanged(view: View, names: tuple[str, ...]) -> tuple[Edit, ...]:
    """Edits that exchange .x and .y of these built-in variables."""
    edits = []
    for node in descendants(view.facts.body, "field_expression"):
        field = node.child_by_field_name("field")
        if field is not None and text(node.child_by_field_name("argument")) in names and text(field) in OTHER:
            edits.append(replace(field, OTHER[text(field)]))
    return tuple(edits)


def _remapped(view: View) -> Rewrite:
    document = view.document
    thread, x, y = (fresh_name(name, document) for name in ("thread", "thread_x", "thread_y"))
    edits = [
        replace(node, x if text(node.child_by_field_name("field")) == "x" else y)
        for node in descendants(view.facts.body, "field_expression")
        if text(node) in ("threadIdx.x", "threadIdx.y")
    ]
    first = next(child for child in view.facts.body.named_children if child.type != "comment")
    lines = (
        "// The lanes of a warp differ first in thread_y: they walk along rows.\n".replace("thread_y", y)
        + f"const unsigned {thread} = threadIdx.y * blockDim.x + threadIdx.x;\n"
        + f"const unsigned {x} = {thread} / blockDim.y, {y} = {thread} % blockDim.y;"
    )
    return Rewrite((insert_before(document, first, lines), *edits))


def _symmetrical(launch: Launch) -> bool:
    def plain(axis: int) -> tuple[str, str]:
        return str(launch.grid[axis].simplify()), str(launch.block[axis].simplify())

    return plain(0) == plain(1)


def _turned(launch: Launch) -> Launch:
    grid, block = launch.grid, launch.block
    return evolve(launch, grid=(grid[1], grid[0], grid[2]), block=(block[1], block[0], block[2]))


def _grid_fits(view: View) -> bool:
    """Whether the grid, turned, is one that a card can launch at the declared sizes."""
    extents = [evaluate(launch.grid[0], view.sizes) for launch in view.launches]
    return all(isinstance(extent, int) and extent <= GRID_LIMIT for extent in extents)
