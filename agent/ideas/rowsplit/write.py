"""Writing the launches: a copy of the kernel for each pass over the row, and the kernel itself for what follows."""

from collections.abc import Sequence

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.patterns.reduction_loop import ReductionLoop
from agent.analysis.syntax import bare, descendants, text
from agent.ideas.gridloop.write import at_most
from agent.ideas.plans import in_place_of_launches
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import (
    Rewrite,
    fresh_name,
    indent_of,
    indent_unit,
    indented,
    insert_after,
    remove,
    replace,
    replace_between,
    source_text,
)
from agent.ideas.rowpass.writing import with_pragma
from agent.ideas.rowsplit.copies import copied, flowing
from agent.ideas.rowsplit.site import TURNS, Pass, RowSplit, segment
from agent.ideas.rowsplit.total import step_of, total_kernel
from agent.ideas.rowwalk.site import started
from agent.ideas.terms import in_plan_names
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.dtypes import from_c_type
from agent.workload.expression import Expression, build, name, number
from agent.workload.plan import Launch, Plan, Scratch, Step

FEW = 3
"""A kernel is named by its accumulators where there are fewer."""


@frozen(eq=False)
class _Names:
    """What the new kernels and buffers are called: one buffer for each accumulator, by the pass it belongs to.
    ``totals`` are the kernels that put the threads' own partial results together, empty where blocks do so."""

    count: str
    kernels: tuple[str, ...]
    totals: tuple[str, ...]
    buffers: tuple[tuple[str, ...], ...]


@frozen(eq=False)
class _Part:
    """One launch that ends behind a pass: its kernel's text, the parameters that it keeps, the buffers it needs; and
    the kernel behind it that puts what it leaves together (empty where none is needed)."""

    name: str
    text: str
    kept: tuple[str, ...]
    buffers: tuple[str, ...]
    total: str


def shared_by_blocks(view: View, found: RowSplit, parts: int) -> Rewrite:
    """The kernel as one launch more than it has passes, each with ``parts`` blocks for a row."""
    names = _names(view, found)
    copies = tuple(_copy(view, found, names, at) for at in range(len(found.passes)))
    last = len(found.passes)
    wide = any(segment(walk.node, found.passes) == last for walk in found.walks)
    edits = [*_before(view, found, names, last), *(_loops(view, found, names, last))]
    if wide:
        edits += _once(view, found)
    buffers = tuple(buffer for of_pass in names.buffers for buffer in of_pass)
    edits += _signature(view, _declared(view, found, names, last, written=None))
    plan = _plan(view, found, names, copies, parts, buffers, wide)
    kernels = [text for part in copies for text in (part.text, part.total) if text]
    return Rewrite(tuple(edits), (), plan, tuple(kernels))


def _names(view: View, found: RowSplit) -> _Names:
    document, kernel = view.document, view.kernel.name
    taken: list[str] = [*view.sizes, *(one.name for one in view.request.workload.buffers)]
    taken += [one.name for one in view.request.plan.scratch]

    def new(wanted: str) -> str:
        taken.append(fresh_name(wanted, document, *taken))
        return taken[-1]

    count = new(styled("row_parts", view))
    plain = [[one.symbol.name.strip("_") for one in of.walk.accumulators] for of in found.passes]
    suffixes = ["_".join(of_pass) if len(of_pass) < FEW else "partial" for of_pass in plain]
    kernels = tuple(new(_joined(kernel, suffix, view)) for suffix in suffixes)
    totals = tuple(
        "" if one.trees else new(_joined(kernel, f"{suffix}_total", view))
        for one, suffix in zip(found.passes, suffixes, strict=True)
    )
    buffers = tuple(tuple(new(styled(f"{one}_parts", view)) for one in of_pass) for of_pass in plain)
    return _Names(count, kernels, totals, buffers)


def _joined(kernel: str, suffix: str, view: View) -> str:
    """``layernorm_sum``, or ``softMaxSum`` as the kernel's own name is written."""
    camel = styled("a_b", view) != "a_b"
    return (
        kernel + "".join(part[:1].upper() + part[1:] for part in suffix.split("_")) if camel else f"{kernel}_{suffix}"
    )


def _copy(view: View, found: RowSplit, names: _Names, at: int) -> _Part:
    """The launch that ends behind pass ``at``."""
    edits = [*_before(view, found, names, at), *_loops(view, found, names, at), *_ending(view, found, names, at)]
    declared = _declared(view, found, names, at, written=at)
    made, kept = copied(view, names.kernels[at], edits, declared)
    folded = ", ".join(one.symbol.name for one in found.passes[at].walk.accumulators)
    made = f"// Launched before {view.kernel.name}: what each of the blocks that share a row finds ({folded}).\n{made}"
    used = tuple(buffer for of_pass in names.buffers[: at + 1] for buffer in of_pass)
    total = names.totals[at] and total_kernel(view, found.passes[at], names.totals[at], names.buffers[at], names.count)
    return _Part(names.kernels[at], made, kept, used, total)


def _declared(view: View, found: RowSplit, names: _Names, last: int, written: int | None) -> list[str]:
    """The parameters for the partial results that a launch reads, and writes."""
    declared: list[str] = []
    restrict = " __restrict__" if any(parameter.restrict for parameter in view.kernel.parameters) else ""
    for at, (one, buffers) in enumerate(zip(found.passes, names.buffers, strict=True)):
        for accumulator, buffer in zip(one.walk.accumulators, buffers, strict=True):
            const = "" if at == written else "const "
            if at < last or at == written:
                declared.append(f"{const}{accumulator.symbol.type}*{restrict} {buffer}")
    return [*declared, f"int {names.count}"]


def _before(view: View, found: RowSplit, names: _Names, at: int) -> list[Edit]:
    """Passes of earlier launches take up their partial results; loops of earlier launches go."""
    edits: list[Edit] = []
    for one, buffers in zip(found.passes[:at], names.buffers, strict=False):
        node = one.walk.node
        lines = _taking_up(view, one, buffers, names.count)
        edits.append(replace_between(with_pragma(node), node, indented(view.document, node, lines)))
    for walk in found.walks:
        if segment(walk.node, found.passes) < at:
            edits.append(remove(view.document, walk.node))
    return edits


def _taking_up(view: View, one: Pass, buffers: Sequence[str], count: str) -> str:
    unit = indent_unit(view.document, view.kernel)
    pairs = list(zip(one.walk.accumulators, buffers, strict=True))
    if not one.trees:
        index = f"blockIdx.x * {count} * blockDim.x + threadIdx.x"
        return "\n".join(f"{accumulator.symbol.name} = {buffer}[{index}];" for accumulator, buffer in pairs)
    thread = source_text(view.document, one.trees[0].tree.thread_node)
    head = f"for (int part = {thread}; part < {count}; part += blockDim.x) {{"
    steps = [step_of(accumulator, f"{buffer}[blockIdx.x * {count} + part]") for accumulator, buffer in pairs]
    return "\n".join((head, *(unit + step for step in steps), "}"))


def _loops(view: View, found: RowSplit, names: _Names, at: int) -> list[Edit]:
    """The loops that run in this launch, each block in its turns."""
    edits: list[Edit] = []
    walks: list[ReductionLoop] = [*found.walks, *(one.walk for one in found.passes)]
    for walk in walks:
        ends = next((place for place, one in enumerate(found.passes) if one.walk is walk), None)
        if (ends if ends is not None else segment(walk.node, found.passes)) == at:
            edits += _in_turns(view, walk.loop, names.count)
    return edits


def _in_turns(view: View, loop: Loop, count: str) -> list[Edit]:
    start = started(loop)
    step = loop.update.child_by_field_name("right")
    assert start is not None and step is not None
    if step.type == "binary_expression" and text(loop.update.child_by_field_name("operator")) == "=":
        own = [child for child in (step.child_by_field_name("left"), step.child_by_field_name("right")) if child]
        step = next(child for child in own if text(bare(child)) != loop.variable.name)
    spelled = source_text(view.document, step)
    spelled = f"({spelled})" if step.type in ("binary_expression",) and "+" in spelled else spelled
    begin = source_text(view.document, start)
    return [
        replace(start, f"{begin} + blockIdx.y * {spelled}"),
        replace(step, f"{count} * {spelled}"),
    ]


def _ending(view: View, found: RowSplit, names: _Names, at: int) -> list[Edit]:
    """The partial results are stored, and nothing follows."""
    document, one = view.document, found.passes[at]
    edits: list[Edit] = []
    if one.trees:
        for accumulator, buffer in zip(one.walk.accumulators, names.buffers[at], strict=True):
            tree = next(
                tree for tree in one.trees if view.facts.symbols.resolve(_given(tree.value)) is accumulator.symbol
            )
            thread = source_text(document, tree.tree.thread_node)
            store = f"if ({thread} == 0) {buffer}[blockIdx.x * {names.count} + blockIdx.y] = {tree.array.name}[0];"
            barrier = "" if tree.tree.barrier_last else "__syncthreads();\n"
            if tree.tree.statement == one.last:
                edits.append(_cut(view, found.spine, one.last, barrier + store))
            else:
                edits.append(insert_after(document, tree.tree.statement, barrier + store))
        return edits
    index = f"(blockIdx.x * {names.count} + blockIdx.y) * blockDim.x + threadIdx.x"
    stores = [
        f"{buffer}[{index}] = {accumulator.symbol.name};"
        for accumulator, buffer in zip(one.walk.accumulators, names.buffers[at], strict=True)
    ]
    return [_cut(view, found.spine, one.last, "\n".join(stores))]


def _given(node: Node | None) -> Node:
    assert node is not None
    return node


def _cut(view: View, spine: Node, last: Node, lines: str) -> Edit:
    """``lines`` for everything between ``last`` and the end of the block."""
    indent = indent_of(view.document, last)
    closing = indent_of(view.document, spine.children[-1])
    written = f"\n{indent}{indented(view.document, last, lines)}\n{closing}"
    return Edit(Span(last.end_byte, spine.children[-1].start_byte), written.encode())


def _once(view: View, found: RowSplit) -> list[Edit]:
    """One of the blocks that share a row does what is done once for it."""
    edits: list[Edit] = []
    for statement in found.tail:
        condition = statement.child_by_field_name("condition")
        if statement.type == "if_statement" and statement.child_by_field_name("alternative") is None and condition:
            test = bare(condition)
            assert test is not None
            spelled = source_text(view.document, test)
            spelled = f"({spelled})" if "||" in spelled or "?" in spelled else spelled
            edits.append(replace(condition, f"(blockIdx.y == 0 && {spelled})"))
        else:
            edits.append(Edit(Span(statement.start_byte, statement.start_byte), b"if (blockIdx.y == 0) "))
    return edits


def _signature(view: View, added: Sequence[str]) -> list[Edit]:
    """The kernel's own parameters, with those for the partial results behind them."""
    document, kernel = view.document, view.kernel
    first, last = kernel.parameters[0].span.start, kernel.parameters[-1].span.end
    lines = [document.text[document.text.rfind(b"\n", 0, at) + 1 : at] for at in (first, last)]
    indent, column = (len(line.decode("utf-8", "replace").expandtabs(4)) for line in lines)
    own = document.text[kernel.parameters[-1].span.start : last].decode("utf-8", "replace")
    behind = flowing(["", *added], column, indent if b"(" in lines[0] else len(lines[0]))
    return [Edit(Span(last, last), behind.encode())] if own else []


def _plan(
    view: View,
    found: RowSplit,
    names: _Names,
    copies: tuple[_Part, ...],
    parts: int,
    buffers: tuple[str, ...],
    wide: bool,
) -> Plan:
    places = {parameter.name: at for at, parameter in enumerate(view.kernel.parameters)}
    one = number(1)

    shared = name(names.count)

    def launches(launch: Launch) -> tuple[Step, ...]:
        template = launch.kernel[launch.kernel.index("<") :] if "<" in launch.kernel else ""
        grid = (launch.grid[0], shared, one)
        first: list[Step] = []
        for at, part in enumerate(copies):
            given = (*(launch.arguments[places[kept]] for kept in part.kept), *map(name, part.buffers), shared)
            first.append(evolve(launch, kernel=part.name + template, grid=grid, arguments=given))
            if part.total:
                own = (*map(name, names.buffers[at]), shared)
                first.append(evolve(launch, kernel=names.totals[at], shared=number(0), arguments=own))
        arguments = (*launch.arguments, *map(name, buffers), shared)
        return (*first, evolve(launch, grid=grid if wide else launch.grid, arguments=arguments))

    plan = in_place_of_launches(view.request.plan, view.kernel, launches)
    count = (names.count, blocks_for_row(view, found, parts))
    return evolve(plan, scratch=(*plan.scratch, *_scratch(view, found, names)), locals=(*plan.locals, count))


def blocks_for_row(view: View, found: RowSplit, parts: int) -> Expression:
    """How many blocks share a row: ``parts`` at most, and as few as leave their threads some turns each."""
    launch = view.launches[0]
    share = in_plan_names(found.longest.step, launch, view)
    length = in_plan_names(found.longest.bound, launch, view)
    if share is None or length is None:
        return number(parts)
    return at_most(build("+", [build("/", [length, build("*", [share, number(TURNS)])]), number(1)]), parts)


def _scratch(view: View, found: RowSplit, names: _Names) -> list[Scratch]:
    assert view.threads is not None
    made: list[Scratch] = []
    # A block that leaves at once has no partial results: zeros, so that putting them together reads no noise.
    leaves = any(True for _ in descendants(view.facts.body, "return_statement"))
    for one, buffers in zip(found.passes, names.buffers, strict=True):
        extent: Expression = build("*", [view.launches[0].grid[0], name(names.count)])
        extent = extent if one.trees else build("*", [extent, number(view.threads)])
        for accumulator, buffer in zip(one.walk.accumulators, buffers, strict=True):
            made.append(Scratch(buffer, str(from_c_type(accumulator.symbol.type)), extent, leaves and not one.trees))
    return made
