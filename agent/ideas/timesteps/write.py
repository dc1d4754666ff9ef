"""Writing it: the step at one point becomes a function, and a new kernel does several steps for a part of the plane."""

import re

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.affine import Poly, number
from agent.analysis.patterns.stencil_step import Axis, Read, StencilStep
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains, descendants, enclosing
from agent.ideas.bodies import with_names
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indent_of, replace_between
from agent.ideas.terms import in_names, in_plan_names
from agent.ideas.timesteps.loop import TimeLoop, with_several
from agent.ideas.view import View
from agent.workload.expression import Expression, build
from agent.workload.expression import number as literal
from agent.workload.plan import Launch

THREADS = (64, 8)
ROWS = 32
_WIDE = re.compile(r"\b(?:size_t|ptrdiff_t|long|u?int64_t)\b")
WORDS = {2: "twice", 3: "three_times", 4: "four_times"}
COUNTS = {2: "Two", 3: "Three", 4: "Four"}


@frozen(eq=False)
class Tile:
    """A block works on ``ROWS`` by ``columns`` points of the last step, and on ``margin`` more on each side of the
    first; a thread works on one column."""

    step: StencilStep
    steps: int

    @property
    def margin(self) -> tuple[int, int]:
        return (self.steps - 1) * self.step.rows.reach, (self.steps - 1) * self.step.columns.reach

    def shared_bytes(self, element: int) -> int:
        """The planes between the steps: one, or two that take turns."""
        return element * (1 if self.steps == 2 else 2) * self.height * THREADS[0]

    @property
    def columns(self) -> int:
        return THREADS[0] - 2 * self.margin[1]

    @property
    def height(self) -> int:
        return ROWS + 2 * self.margin[0]


@frozen
class _Names:
    step: str
    kernel: str
    origin: str
    pitch: str
    to: str
    between: str
    top: str
    r: str


def several_steps(step: StencilStep, loop: TimeLoop, view: View, steps: int) -> Rewrite:
    document, kernel = view.document, view.kernel
    local = [fresh_local(one, document, kernel) for one in ("from", "pitch", "to", "between", "top", "r")]
    names = _Names(
        fresh_name(f"{kernel.name}_at", document), fresh_name(f"{kernel.name}_{WORDS[steps]}", document), *local
    )
    tile = Tile(step, steps)
    first, last = step.body[0], step.body[-1]
    call = _call(
        step, names, view, _global(step, step.source, view), _pitch(step, view), _global(step, step.target, view)
    )
    edit = replace_between(first, last, call)
    launch = _launch(tile, loop, view, names)
    return Rewrite(
        (edit,), (_function(step, names, view), _kernel(tile, names, view)), with_several(loop, view, launch, steps)
    )


def _used(step: StencilStep, view: View) -> list[str]:
    """The parameters besides the two buffers that the step itself uses."""
    found = {
        symbol.name
        for statement in step.body
        for name in descendants(statement, "identifier")
        if (symbol := view.facts.symbols.resolve(name)) is not None and symbol.space == "parameter"
    }
    return [p.name for p in view.kernel.parameters if p.name in found - {step.source.name, step.target.name}]


def _function(step: StencilStep, names: _Names, view: View) -> str:
    """The step at one point, its neighbours found from a pointer to the old value."""
    renamed = {read.access.node: f"{names.origin}[{_distance(read, names.pitch)}]" for read in step.reads}
    renamed |= {write.node: f"*{names.to}" for write in step.writes}
    gone = _unused(step, view, list(renamed))
    body = "\n".join(_statement(statement, view, renamed) for statement in _lines(step, view) if statement not in gone)
    declared = {p.name: view.document.slice_text(p.span) for p in view.kernel.parameters}
    row, column = step.rows.place.symbol, step.columns.place.symbol
    given = ", ".join(
        (
            f"const {step.source.type}* {names.origin}, int {names.pitch}, {step.target.type}* {names.to}",
            f"{row.type} {row.name}, {column.type} {column.name}",
            *(declared[name] for name in _used(step, view)),
        )
    )
    return (
        f"// One step of {view.kernel.name} at one point: `{names.origin}` is where its old value lies, rows being "
        f"`{names.pitch}`\n// elements apart, and `{names.to}` where the new one goes.\n"
        f"{_wrapped(f'__device__ __forceinline__ void {names.step}(', given, ') {')}\n{body}\n}}\n"
    )


def _wrapped(head: str, given: str, tail: str, indent: int = 0) -> str:
    """``head`` with arguments behind it, broken where a line would be too long."""
    lines, line = [], " " * indent + head
    for at, part in enumerate(given.split(", ")):
        piece = part if at == 0 else ", " + part
        if len(line) + len(piece) + len(tail) > 118 - indent:
            lines.append(line + ("," if at else ""))
            line, piece = " " * (indent + len(head)), part
        line += piece
    return "\n".join([*lines, line + tail])


def _lines(step: StencilStep, view: View) -> list[Node]:
    """The step's statements with the comments between them."""
    first, last = step.body[0], step.body[-1]
    inside = view.facts.body.named_children
    return [node for node in inside if first.start_byte <= node.start_byte <= last.start_byte]


def _statement(statement: Node, view: View, renamed: dict[Node, str]) -> str:
    outer = indent_of(view.document, statement)
    lines = with_names(view, statement, renamed).split("\n")
    return "\n".join(
        ["    " + lines[0], *("    " + _less(line, outer) if line.strip() else line for line in lines[1:])]
    )


def _less(line: str, outer: str) -> str:
    return line[len(outer) :] if line.startswith(outer) else line.lstrip()


def _unused(step: StencilStep, view: View, gone: list[Node]) -> list[Node]:
    """Declarations that only the replaced accesses used."""
    found: list[Node] = []
    for symbol in reversed([one for one in view.facts.symbols.all() if one.space == "local" and one.fixed]):
        statement = enclosing(symbol.declarator, "declaration")
        if statement not in step.body or statement is None or len(statement.children_by_field_name("declarator")) > 1:
            continue
        uses = [
            name
            for name in descendants(view.facts.body, "identifier")
            if name != symbol.declarator and view.facts.symbols.resolve(name) is symbol
        ]
        if all(any(contains(node, name) for node in (*gone, *found)) for name in uses):
            found.append(statement)
    return found


def _distance(read: Read, pitch: str) -> str:
    rows = "" if read.down == 0 else {1: pitch, -1: f"-{pitch}"}.get(read.down, f"{read.down} * {pitch}")
    if not rows:
        return str(read.right)
    return rows + (f" + {read.right}" if read.right > 0 else f" - {-read.right}" if read.right < 0 else "")


def _call(step: StencilStep, names: _Names, view: View, origin: str, pitch: str, to: str, indent: int = 0) -> str:
    places = [step.rows.place.symbol.name, step.columns.place.symbol.name]
    given = ", ".join((origin, pitch, to, *places, *_used(step, view)))
    return _wrapped(f"{names.step}(", given, ");", indent)


def _global(step: StencilStep, array: Symbol, view: View) -> str:
    """Where a point of a plane in global memory lies."""
    row, column = step.rows.place.symbol.name, step.columns.place.symbol.name
    offset = _spelled(step.offset, view)
    pitch = _pitch(step, view)
    times = pitch if pitch.isidentifier() or pitch.isdigit() else f"({pitch})"
    # where the kernel itself counts elements in 64 bits, so does this
    wide = "(size_t)" if _WIDE.search(view.document.slice_text(view.kernel.body)) else ""
    return f"{array.name} + {wide}{row} * {times} + {column}" + ("" if offset == "0" else f" + {offset}")


def _pitch(step: StencilStep, view: View) -> str:
    return _spelled(step.pitch, view)


def _spelled(poly: Poly, view: View) -> str:
    """A polynomial over parameters as the kernel would write it."""
    names = {p.name: Expression("name", (), p.name) for p in view.kernel.parameters if not p.pointer_depth}
    found = in_names(poly, names)
    assert found is not None
    return str(found.simplify())


def spellable(step: StencilStep, view: View) -> bool:
    names = {p.name: Expression("name", (), p.name) for p in view.kernel.parameters if not p.pointer_depth}
    return all(
        in_names(poly, names) is not None for poly in (step.pitch, step.offset, step.rows.high, step.columns.high)
    )


def _kernel(tile: Tile, names: _Names, view: View) -> str:
    step, steps = tile.step, tile.steps
    row, column = step.rows.place.symbol, step.columns.place.symbol
    listing = ", ".join(view.document.slice_text(p.span) for p in view.kernel.parameters)
    below, left = tile.margin
    arrays = "" if steps == 2 else "[2]"
    lines = [
        f"// {COUNTS[steps]} steps of {view.kernel.name} in one launch. A block works on {ROWS} x {tile.columns} points"
        "\n// and, before the last step, on those around them that they need.",
        _wrapped(f"__global__ void {names.kernel}(", listing, ") {"),
        f"    __shared__ {step.source.type} {names.between}{arrays}[{tile.height}][{THREADS[0]}];",
        f"    const {column.type} {column.name} = (int)blockIdx.x * {tile.columns} + threadIdx.x"
        + (f" - {left};" if left else ";"),
        f"    const {row.type} {names.top} = (int)blockIdx.y * {ROWS}" + (f" - {below};" if below else ";"),
    ]
    for turn in range(steps):
        lines += _turn(tile, names, view, turn)
    return "\n".join([*lines, "}\n"])


def _turn(tile: Tile, names: _Names, view: View, turn: int) -> list[str]:
    """One step over the block's points, each time fewer around them."""
    step, last = tile.step, turn == tile.steps - 1
    row = step.rows.place.symbol
    edge, side = turn * step.rows.reach, turn * step.columns.reach
    origin = _shared(names, tile, turn - 1) if turn else _global(step, step.source, view)
    pitch = str(THREADS[0]) if turn else _pitch(step, view)
    to = _global(step, step.target, view) if last else _shared(names, tile, turn)
    start = "threadIdx.y" + (f" + {edge}" if edge else "")
    lines = [
        f"for (int {names.r} = {start}; {names.r} < {tile.height - edge}; {names.r} += {THREADS[1]}) {{",
        f"    const {row.type} {row.name} = {names.top} + {names.r};",
        f"    if ({_within(step.rows, view)} && {_within(step.columns, view)}) {{",
        _call(step, names, view, origin, pitch, to, 8),
    ]
    if not last and step.rim:
        # What no step writes stays as it is in the buffer that this one would have written.
        kept = step.target if turn % 2 == 0 else step.source
        lines += [
            f"    }} else if ({_around(step.rows, view)} && {_around(step.columns, view)}) {{",
            f"        {to[1:]} = {_element(step, kept, view)};",
        ]
    lines += ["    }", "}"]
    if side:
        lines = [
            f"if (threadIdx.x >= {side} && threadIdx.x < {THREADS[0] - side}) {{",
            *(f"    {x}" for x in lines),
            "}",
        ]
    if not last:
        lines.append("__syncthreads();")
    return _indented(lines)


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in "\n".join(lines).split("\n")]


def _shared(names: _Names, tile: Tile, turn: int) -> str:
    array = names.between if tile.steps == 2 else f"{names.between}[{turn % 2}]"
    return f"&{array}[{names.r}][threadIdx.x]"


def _element(step: StencilStep, array: Symbol, view: View) -> str:
    name, _, index = _global(step, array, view).partition(" + ")
    return f"{name}[{index}]"


def _within(axis: Axis, view: View) -> str:
    name = axis.place.symbol.name
    return f"{name} >= {axis.low.constant} && {_below(name, axis.high, view)}"


def _around(axis: Axis, view: View) -> str:
    reach = number(axis.reach if axis.rim else 0)
    name, low = axis.place.symbol.name, (axis.low - reach).constant
    return f"{name} >= {low} && {_below(name, axis.high + reach, view)}"


def _below(name: str, high: Poly, view: View) -> str:
    """``name <= high``, without a trailing ``- 1`` where that can be said otherwise."""
    more = _spelled(high + number(1), view)
    return f"{name} < {more}"


def _launch(tile: Tile, loop: TimeLoop, view: View, names: _Names) -> Launch:
    one = literal(1)
    columns = _blocks(tile.step.columns, tile.columns, loop, view)
    rows = _blocks(tile.step.rows, ROWS, loop, view)
    block = (literal(THREADS[0]), literal(THREADS[1]), one)
    prefix = loop.launch.kernel.removesuffix(view.kernel.name)
    return evolve(loop.launch, kernel=prefix + names.kernel, grid=(columns, rows, one), block=block, shared=literal(0))


def _blocks(axis: Axis, points: int, loop: TimeLoop, view: View) -> Expression:
    """Enough blocks for the points, and one where there are none."""
    high = axis.high + number(1)
    least = dict(high.terms).get((), 0)
    count = in_plan_names(high - number(min(0, least)), loop.launch, view)
    assert count is not None
    return build("/", [build("+", [count, literal(points - 1)]), literal(points)]).simplify()
