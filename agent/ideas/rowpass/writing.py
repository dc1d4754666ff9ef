"""What both fusions write: the first loop's new body, the moved start of the second accumulator, the second loop's
end."""

from collections.abc import Sequence

from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.patterns.row_pass import RowPass, same_space
from agent.analysis.syntax import contains, text
from agent.ideas.idea import Expectation
from agent.ideas.rewriting import (
    fresh_local,
    indent_of,
    indent_unit,
    indented,
    insert_before,
    remove,
    replace,
    replace_between,
    source_text,
    with_unit,
)
from agent.ideas.rowpass.pair import Pair
from agent.ideas.view import View
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.span import Span


def number(value: str, type_name: str) -> str:
    """A literal of the accumulator's type: ``1.0f`` or ``1.0``."""
    return value + ("f" if type_name == "float" else "")


def new_name(view: View, wanted: str, *taken: str) -> str:
    """A name for a local of the kernel."""
    return fresh_local(wanted, view.document, view.kernel, *taken)


def value_name(view: View, row: RowPass) -> tuple[str, str]:
    """(name of the element, declaration to put before its use): the user's own local where there is one."""
    operand = row.fold.operand
    if operand.type == "identifier":
        symbol = view.facts.symbols.resolve(operand)
        if symbol is not None and symbol.fixed and contains(row.loop.body, symbol.declarator):
            return symbol.name, ""
    name = new_name(view, "value")
    return name, f"const {row.accumulator.type} {name} = {source_text(view.document, operand)};\n"


def body_edits(view: View, row: RowPass, lines: str) -> Edit:
    """``lines`` in the place of the loop's fold; a body without braces gets them."""
    document, statement = view.document, row.fold.statement
    lines = with_unit(lines, indent_unit(document, view.kernel))
    if row.loop.body.type == "compound_statement":
        indent = indent_of(document, statement)
        if document.line(row.loop.body.start_byte) != document.line(statement.start_byte):
            return replace(statement, ("\n" + indent).join(lines.split("\n")))
        # A body on one line, `{ s += x[i]; }`, is opened up.
        return _opened(view, row, row.loop.body, lines, kept=_others(view, row))
    return _opened(view, row, row.loop.body, lines, kept=())


def _others(view: View, row: RowPass) -> Sequence[str]:
    inside = [child for child in row.loop.body.named_children if child != row.fold.statement]
    return [source_text(view.document, child) for child in inside]


def _opened(view: View, row: RowPass, body: Node, lines: str, kept: Sequence[str]) -> Edit:
    document = view.document
    outer = indent_of(document, row.node)
    inner = outer + indent_unit(document, view.kernel)
    text_lines = [*kept, *lines.split("\n")]
    written = "{\n" + "\n".join(inner + line for line in text_lines) + f"\n{outer}}}"
    # The brace goes behind the loop's header, also where the body stood on a line of its own.
    header_end = _header_end(row.node)
    return Edit(Span(header_end, body.end_byte), (" " + written).encode())


def _header_end(loop: Node) -> int:
    return next(child.end_byte for child in loop.children if child.type == ")")


def moved_start(view: View, pair: Pair, extra: str = "") -> list[Edit]:
    """The second accumulator's start goes before the first loop, with ``extra`` lines."""
    document = view.document
    lines = [] if pair.start is None else [source_text(document, pair.start)]
    lines += [line for line in extra.split("\n") if line]
    edits: list[Edit] = []
    if lines:
        anchor = with_pragma(pair.first.node)
        indent = indent_of(document, anchor)
        edits.append(
            Edit(Span(anchor.start_byte, anchor.start_byte), "".join(f"{line}\n{indent}" for line in lines).encode())
        )
    if pair.start is not None:
        edits.append(remove(document, pair.start))
    return edits


def in_place_of_second(view: View, pair: Pair, lines: str) -> Edit:
    """``lines`` in the place of the second loop (and a ``#pragma`` that belongs to it)."""
    node = pair.second.node
    indent = indent_of(view.document, node)
    return replace_between(with_pragma(node), node, ("\n" + indent).join(lines.split("\n")))


def insert_before_loop(document: Document, loop: Node, lines: str) -> Edit:
    """Put lines before a loop and the pragmas in front of it (those between ``#ifdef`` and ``#endif`` too), indented as
    the loop is; ``lines`` are written without indentation."""
    first = with_pragma(loop)
    while (before := first.prev_named_sibling) is not None and _only_pragmas(before):
        first = before
    if first == loop:
        return insert_before(document, loop, lines)
    start = document.line_starts[document.line(first.start_byte) - 1]
    written = indent_of(document, loop) + indented(document, loop, lines) + "\n"
    return Edit(Span(start, start), written.encode())


def _only_pragmas(node: Node) -> bool:
    """``#ifdef UNROLL``, a pragma, ``#endif``."""
    if node.type == "preproc_call":
        return "pragma" in text(node)
    inside = [child for child in node.named_children if child.type not in ("identifier", "comment")]
    return node.type == "preproc_ifdef" and bool(inside) and all(_only_pragmas(child) for child in inside)


def with_pragma(loop: Node) -> Node:
    before = loop.prev_named_sibling
    if before is not None and before.type == "preproc_call" and "pragma" in text(before):
        return before
    return loop


def passes_over_row(pair: Pair, facts: Facts) -> int:
    """How many global accesses the loops over this row make for each element."""
    loops = [loop for loop in facts.loops if same_space(loop, pair.first.loop)]
    seen = {
        (loop.node.start_byte, access.name, str(access.index), access.writes)
        for loop in loops
        for access in facts.accesses_in(loop.node)
        if access.space == "global"
    }
    return len(seen)


def less_traffic(passes: int, saved: int) -> tuple[Expectation, ...]:
    """What to expect when ``saved`` of ``passes`` equal accesses an element go: of DRAM only where a row does not
    stay in cache between passes, of sectors in any case."""
    factor = (passes - saved) / passes
    return (
        Expectation(
            "DRAM bytes", round(factor, 2), f"DRAM bytes -{round(100 * (1 - factor))} % (rows larger than cache)"
        ),
        Expectation("sectors", round(factor, 2), f"accesses an element {passes} -> {passes - saved}"),
    )
