"""Pieces of the user's text, put where a tiled kernel needs them."""

import re
from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from agent.analysis.patterns.coordinates import Coordinate
from agent.analysis.patterns.product_nest import Reach, reach
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import contains, descendants, enclosing
from agent.ideas.product.shape import Product, Side
from agent.ideas.product.spelling import spelled
from agent.ideas.rewriting import source_text
from agent.source.document import Document

Swaps = Mapping[int, tuple[int, str]]
"""Start of a node -> (its end, what stands for it)."""


def substituted(product: Product, first: Node, last: Node, swaps: Swaps) -> str:
    return replaced(product.view.document, first, last, swaps)


def replaced(document: Document, first: Node, last: Node, swaps: Swaps) -> str:
    """The user's text from one node's start to another's end, with nodes replaced, and its lines moved to the left
    margin."""
    inside = sorted((start, *swap) for start, swap in swaps.items() if first.start_byte <= start < last.end_byte)
    pieces, at = [], first.start_byte
    for start, end, replacement in inside:
        if start < at:
            continue  # inside of what was replaced already
        pieces += [document.text[at:start].decode("utf-8", "surrogateescape"), replacement]
        at = end
    pieces.append(document.text[at : last.end_byte].decode("utf-8", "surrogateescape"))
    lines = "".join(pieces).replace("\r\n", "\n").split("\n")
    start = document.line_starts[document.line(first.start_byte) - 1]
    margin = document.text[start : first.start_byte].decode("utf-8", "replace")
    margin = margin[: len(margin) - len(margin.lstrip())]
    return "\n".join([lines[0], *(line.removeprefix(margin) for line in lines[1:])])


def seen(product: Product, nodes: Iterable[Node]) -> Reach:
    variables = frozenset(loop.variable for loop in product.frame.nest.loops)
    found = Reach()
    for node in nodes:
        found = found | reach(node, product.frame.places, variables, product.facts)
    return found


def needed(product: Product, nodes: Iterable[Node], staged: Swaps | None = None) -> tuple[Node, ...]:
    """The definitions that expressions are made of, in the order in which they stand; what stands in ``staged`` needs
    none."""
    known = (*product.frame.before, *product.frame.nest.declarations)
    found: set[int] = set()
    waiting = list(nodes)
    while waiting:
        for name in names_outside(waiting.pop(), staged or {}):
            symbol = product.facts.symbols.resolve(name)
            owner = next((one for one in known if symbol is not None and contains(one, symbol.declarator)), None)
            if owner is not None and owner.start_byte not in found:
                found.add(owner.start_byte)
                waiting.append(owner)
    return tuple(one for one in known if one.start_byte in found)


def own_definitions(product: Product) -> tuple[Node, ...]:
    """The kernel's own definitions of the outer coordinates, and of what these are made of."""
    declared = product.frame.places.declared
    waiting = [digit.symbol for digit in product.outer]
    found: dict[int, Node] = {}
    while waiting:
        statement = enclosing(waiting.pop().declarator, "declaration")
        if statement is None or statement.start_byte in found:
            continue
        found[statement.start_byte] = statement
        used = [product.facts.symbols.resolve(name) for name in descendants(statement, "identifier")]
        waiting += [one for one in used if one is not None and one in declared]
    return tuple(found[at] for at in sorted(found))


def names_outside(node: Node, staged: Swaps) -> Iterator[Node]:
    """The identifiers of an expression but for those inside of what is replaced."""
    for name in descendants(node, "identifier"):
        if not any(start <= name.start_byte < end for start, (end, _) in staged.items()):
            yield name


def uniform(product: Product, statement: Node) -> bool:
    """Whether a definition says the same for all outputs of a block, whatever the turn."""
    inits = [one for one in _declared(product, statement) if one.init is not None]
    if not inits or any(not one.fixed for one in _declared(product, statement)):
        return False
    reached = seen(product, [one.init for one in inits if one.init is not None])
    blocked = {*product.rows.digits, *product.cols.digits}
    return not (reached.over & blocked or reached.turns or reached.loose)


def _declared(product: Product, statement: Node) -> list[Symbol]:
    return [one for one in product.facts.symbols.all() if contains(statement, one.declarator)]


def coordinates_at(side: Side, product: Product, place: str, where: str, used: Iterable[str]) -> list[str]:
    """Definitions of those coordinates of a side that the lines ``used`` name, for the place ``where``; ``place`` is
    its name."""
    written = "\n".join(used)
    wanted = [digit for digit in side.digits if names(written, digit.name)]
    if len(side.digits) == 1:
        return [f"const {_type(one)} {place} = {where};" for one in wanted]
    lines = []
    below = ""
    for digit in reversed(side.digits):
        extent = product.extents[digit].text
        shifted = place if not below else f"{place} / {_grouped(below)}"
        last = digit is side.digits[0]
        lines.append(f"const {_type(digit)} {digit.name} = {shifted}{'' if last else f' % {_grouped(extent)}'};")
        below = f"{below} * {_grouped(extent)}" if below else str(extent)
    kept = [line for digit, line in zip(reversed(side.digits), lines, strict=True) if digit in wanted]
    return [f"const int {place} = {where};", *kept] if kept else []


def names(written: str, name: str) -> bool:
    """Whether a piece of code names an identifier."""
    return re.search(rf"\b{name}\b", written) is not None


def _grouped(extent: str | None) -> str:
    written = str(extent)
    return written if written.replace("_", "a").isalnum() else f"({written})"


def _type(digit: Coordinate) -> str:
    return "int" if digit.symbol.type == "auto" else digit.symbol.type


def whole_places(product: Product, nodes: Iterable[Node]) -> list[str]:
    """Definitions of places that were split into digits, where they are used whole (``index = row * n + col``)."""
    used = {product.facts.symbols.resolve(name) for node in nodes for name in descendants(node, "identifier")}
    lines = []
    for place in product.frame.places.places:
        if place.symbol in used:
            parts = []
            for digit in reversed(product.frame.places.of(place.symbol)):
                low = spelled(digit.low, product.facts)
                parts.append(digit.name if low == "1" else f"{digit.name} * {_grouped(low)}")
            lines.append(f"const {_type(place)} {place.name} = {' + '.join(parts)};")
    return lines


def inside(side: Side, product: Product) -> list[str]:
    """What holds where a place along a side is one of the kernel's own."""
    top = side.digits[0]
    return [f"{top.name} < {_grouped(product.extents[top].text)}", *(one.spelled for one in side.tests)]


def comment_above(statement: Node) -> Node:
    """The first of the comments right above a statement, on lines of their own; or the statement."""
    first = statement
    while (above := first.prev_named_sibling) is not None and above.type == "comment":
        before = above.prev_named_sibling
        if before is not None and before.end_point[0] == above.start_point[0]:
            break
        first = above
    return first


def text_at(product: Product, node: Node) -> str:
    return source_text(product.view.document, node)


def wrapped(line: str, width: int) -> list[str]:
    """A line of code in lines of at most ``width`` characters where operators allow it."""
    if len(line) <= width or "//" in line:
        return [line]
    margin = " " * (len(line) - len(line.lstrip()) + 4)
    breaks = [found.start() + 1 for found in re.finditer(r" (?=\? |: )| (?<=&& )| (?<=, )", line)]
    fitting = [at for at in breaks if len(margin) + 4 < at <= width]
    if not fitting:
        return [line]
    ternary = [at for at in fitting if line[at:].startswith(("? ", ": "))]
    at = ternary[-1] if ternary else fitting[-1]
    return [line[:at].rstrip(), *wrapped(margin + line[at:].lstrip(), width)]
