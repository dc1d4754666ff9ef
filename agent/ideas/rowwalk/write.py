"""Writing the walk of several threads along a row."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.patterns.reduction_loop import NEUTRAL, Accumulator, ReductionLoop, begins_neutral
from agent.analysis.syntax import next_statement, text
from agent.ideas.plans import each_launch
from agent.ideas.reduction.helpers import Shape, shape_of
from agent.ideas.reduction.lanes import WARP, among_block, among_lanes
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    fresh_name,
    indent_of,
    indent_unit,
    insert_after,
    insert_before,
    replace,
    source_text,
)
from agent.ideas.rowwalk.site import RowWalk, started
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan

WIDEST_LINE = 100


@frozen
class Team:
    """``size`` threads that share a row: some lanes of a warp, or the whole block."""

    size: int
    block: bool

    @property
    def lane(self) -> str:
        return "threadIdx.x" if self.block else f"threadIdx.x % {self.size}"

    @property
    def row(self) -> str:
        if self.block:
            return "blockIdx.x"
        return f"blockIdx.x * (blockDim.x / {self.size}) + threadIdx.x / {self.size}"

    @property
    def rows(self) -> str:
        """Rows that the whole grid takes at once."""
        return "gridDim.x" if self.block else f"gridDim.x * (blockDim.x / {self.size})"

    @property
    def step(self) -> str:
        return "blockDim.x" if self.block else str(self.size)


def shared_rows(view: View, found: RowWalk, team: Team) -> Rewrite:
    """The kernel with a team for each row, and its launches with as many teams as there were threads."""
    document = view.document
    lane = fresh_local("t" if team.block else "lane", document, view.kernel)
    helpers = _Helpers(view, team)
    edits: list[Edit] = []
    declare = f"const int {lane} = {team.lane};"
    edits.append(replace(found.row.start, team.row))
    if found.row.loop is None or found.row.stride is None:
        edits.append(insert_after(document, _declaration(found.row.symbol.declarator), declare))
    else:
        edits.append(insert_before(document, found.row.loop.node, declare))
        edits.append(replace(found.row.stride, team.rows))
    for walk in found.walks:
        edits += _walk(view, walk, team, lane, helpers)
    edits += _guards(view, found.guarded, lane)
    return Rewrite(tuple(edits), helpers.made(), _plan(view, found, team))


class _Helpers:
    """One reduction for each operation and type, named once."""

    def __init__(self, view: View, team: Team) -> None:
        self.view, self.team = view, team
        self.names: dict[Shape, str] = {}

    def name(self, accumulator: Accumulator) -> str:
        kind = accumulator.symbol.type
        templated = any(parameter.name == kind for parameter in self.view.kernel.template)
        shape = shape_of(accumulator.fold, kind, planar=False, template=templated)
        if shape not in self.names:
            wanted = ("block_" if self.team.block else "row_") + shape.op
            self.names[shape] = fresh_name(styled(wanted, self.view), self.view.document, *self.names.values())
        return self.names[shape]

    def made(self) -> tuple[str, ...]:
        make = among_block if self.team.block else among_lanes
        return tuple(make(shape, name, self.team.size) for shape, name in self.names.items())


def _declaration(declarator: Node) -> Node:
    node = declarator
    while node.type != "declaration" and node.parent is not None:
        node = node.parent
    return node


def _walk(view: View, walk: ReductionLoop, team: Team, lane: str, helpers: _Helpers) -> list[Edit]:
    document, loop = view.document, walk.loop
    edits = [_started(view, walk, lane), replace(loop.update, f"{loop.variable.name} += {team.step}")]
    foreign = [one for one in walk.accumulators if not begins_neutral(one, loop, view.facts)]
    before = [f"if ({lane} != 0) {one.symbol.name} = {NEUTRAL[one.op]};" for one in foreign]
    after = [f"{one.symbol.name} = {helpers.name(one)}({one.symbol.name});" for one in walk.accumulators]
    if loop.node.parent is not None and loop.node.parent.type == "compound_statement":
        edits += [insert_before(document, loop.node, "\n".join(before))] if before else []
        edits += [insert_after(document, loop.node, "\n".join(after))] if after else []
    elif after:  # a branch or a body without braces gets them
        lead = f"\n{indent_of(document, loop.node)}"
        start, end = loop.node.start_byte, loop.node.end_byte
        edits.append(Edit(Span(start, start), ("{" + lead + "".join(line + lead for line in before)).encode()))
        edits.append(Edit(Span(end, end), ("".join(lead + line for line in after) + lead + "}").encode()))
    return edits


def _started(view: View, walk: ReductionLoop, lane: str) -> Edit:
    start = started(walk.loop)
    assert start is not None
    if text(start).strip("()") in ("0", "0u", "0U"):
        return replace(start, lane)
    spelled = source_text(view.document, start)
    return replace(start, f"({spelled}) + {lane}" if "?" in spelled or "=" in spelled else f"{spelled} + {lane}")


def _guards(view: View, guarded: tuple[Node, ...], lane: str) -> list[Edit]:
    """``if (lane == 0)`` before each statement that writes memory; neighbours share one."""
    edits: list[Edit] = []
    waiting = list(guarded)
    while waiting:
        run = [waiting.pop(0)]
        while waiting and next_statement(run[-1]) == waiting[0]:
            run.append(waiting.pop(0))
        edits += _guard(view, run, lane)
    return edits


def _guard(view: View, run: list[Node], lane: str) -> list[Edit]:
    document = view.document
    first, last = run[0], run[-1]
    indent, unit = indent_of(document, first), indent_unit(document, view.kernel)
    test = f"if ({lane} == 0)"
    alone = first.parent is not None and first.parent.type != "compound_statement"
    if len(run) == 1 and not alone:
        line = source_text(document, first)
        fits = "\n" not in line and len(indent) + len(test) + 1 + len(line) <= WIDEST_LINE
        between = " " if fits else f"\n{indent}{unit}"
        return [Edit(Span(first.start_byte, first.start_byte), (test + between).encode())]
    if alone:  # a branch without braces: an `else` must stay with its own `if`
        return [
            Edit(Span(first.start_byte, first.start_byte), f"{{ {test} ".encode()),
            Edit(Span(first.end_byte, first.end_byte), b" }"),
        ]
    edits = [Edit(Span(first.start_byte, first.start_byte), f"{test} {{\n{indent}{unit}".encode())]
    for one in run[1:]:
        edits.append(Edit(Span(one.start_byte, one.start_byte), unit.encode()))
    edits.append(Edit(Span(last.end_byte, last.end_byte), f"\n{indent}}}".encode()))
    return edits


def _plan(view: View, found: RowWalk, team: Team) -> Plan:
    threads = view.block[0]
    assert threads is not None
    at = None if found.rows is None else [one.name for one in view.kernel.parameters].index(found.rows)

    def changed(launch: Launch) -> Launch:
        teams = threads // team.size
        if at is None and found.row.loop is not None:
            return launch  # each thread takes further rows as it is
        if at is None:
            grid = build("*", [launch.grid[0], number(team.size)])
        else:
            grid = whole_blocks(launch.arguments[at], teams)
        return evolve(launch, grid=(grid, *launch.grid[1:]))

    return each_launch(view.request.plan, view.kernel, changed)


def whole_blocks(count: Expression, each: int) -> Expression:
    """``(count + each - 1) / each``."""
    return count if each == 1 else build("/", [build("+", [count, number(each - 1)]), number(each)])


def lanes_of_choice(length: float | None, threads: int) -> tuple[int, ...]:
    """How many lanes of a warp may share a row: powers of two that divide the block, none of them mostly idle."""
    found = [lanes for lanes in (2, 4, 8, 16, WARP) if threads % lanes == 0]
    return tuple(lanes for lanes in found if length is None or lanes <= max(2.0, length))


def best_lanes(length: float | None, threads: int) -> int:
    """As many lanes as leave each of them two elements or more."""
    allowed = lanes_of_choice(length, threads)
    wanted = [lanes for lanes in allowed if length is None or 2 * lanes <= length]
    return max(wanted, default=min(allowed))
