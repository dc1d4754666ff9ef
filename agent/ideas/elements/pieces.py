"""The pieces of a straight body as text again: some left out, some names replaced, in a loop or behind tests."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.patterns.straight import Piece
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, callee, contains, descendants, text
from agent.analysis.types import type_of
from agent.ideas.rewriting import indent_of, indent_unit
from agent.ideas.view import View
from agent.source.edits import Edit, apply_edits
from agent.source.span import Span

Replaced = Mapping[tuple[int, int], str]
"""(start, end) of a node -> what stands there instead."""

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def at(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def rewritten(view: View, node: Node, replaced: Replaced) -> str:
    """The text of a node with some nodes inside it replaced, with plain line ends."""
    inside = [
        Edit(Span(start - node.start_byte, end - node.start_byte), new.encode())
        for (start, end), new in replaced.items()
        if node.start_byte <= start and end <= node.end_byte
    ]
    raw = apply_edits(view.document.text[node.start_byte : node.end_byte], inside)
    return raw.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def condition(view: View, piece: Piece, replaced: Replaced, holds: bool) -> str:
    """A test's condition as text (no parentheses around it), turned round where it is wanted the other way."""
    inner = bare(piece.node) or piece.node
    return rewritten(view, inner, replaced) if piece.holds == holds else negated(view, inner, replaced)


def negated(view: View, node: Node, replaced: Replaced) -> str:
    node = bare(node) or node
    operator = text(node.child_by_field_name("operator"))
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type == "binary_expression" and left is not None and right is not None:
        if operator in OPPOSITE and not _floating(view, left) and not _floating(view, right):
            return f"{rewritten(view, left, replaced)} {OPPOSITE[operator]} {rewritten(view, right, replaced)}"
        if operator in ("||", "&&"):
            other = "&&" if operator == "||" else "||"
            one, two = negated(view, left, replaced), negated(view, right, replaced)
            if other == "&&":
                one, two = (f"({part})" if " || " in part else part for part in (one, two))
            return f"{one} {other} {two}"
    if node.type == "unary_expression" and operator == "!":
        return rewritten(view, bare(node.child_by_field_name("argument")) or node, replaced)
    return f"!({rewritten(view, node, replaced)})"


def _floating(view: View, node: Node) -> bool:
    """Whether it may be a floating-point number: then `!(a < b)` is not `a >= b`, for NaN."""
    return type_of(node, view.facts.symbols) not in ("int",)


@frozen
class Lines:
    """Text without outer indentation, a step of it being ``unit``."""

    view: View
    unit: str

    def statement(self, node: Node, replaced: Replaced) -> list[str]:
        """A statement's lines, moved to the left edge."""
        indent = indent_of(self.view.document, node)
        first, *rest = rewritten(self.view, node, replaced).rstrip("\n").split("\n")
        return [first, *(line[len(indent) :] if line.startswith(indent) else line.lstrip(" \t") for line in rest)]

    def _commented(self, lines: list[str], piece: Piece) -> list[str]:
        if piece.comment is None:
            return lines
        return [*lines[:-1], f"{lines[-1]}  {rewritten(self.view, piece.comment, {})}"]

    def block(self, head: str, inside: Sequence[str]) -> list[str]:
        return [f"{head} {{", *self.deeper(inside), "}"]

    def deeper(self, lines: Iterable[str]) -> list[str]:
        return [self.unit + line if line else line for line in lines]

    def body(
        self, parts: Sequence[Piece], replaced: Replaced, leave: str | None = None, tail: Sequence[str] = ()
    ) -> list[str]:
        """The pieces in order, then ``tail``. ``leave`` (``continue``, ``return``) is how a test that says so leaves;
        None: no thread may leave, so what follows a test is put inside it."""
        if not parts:
            return list(tail)
        first, rest = parts[0], parts[1:]
        following = self.body(rest, replaced, leave, tail)
        if first.kind != "test":
            return [*self._commented(self.statement(first.node, replaced), first), *following]
        if leave is not None and not first.holds:
            head = [f"if ({condition(self.view, first, replaced, holds=False)}) {leave};"]
            return [*self._commented(head, first), *following]
        return self.block(f"if ({condition(self.view, first, replaced, holds=True)})", following)


def lines_for(view: View) -> Lines:
    return Lines(view, indent_unit(view.document, view.kernel))


def needed(view: View, parts: Sequence[Piece], wanted: Iterable[Node], tests: bool = True) -> tuple[Piece, ...]:
    """The pieces that ``wanted`` (nodes) and, if so said, the tests take their values from, tests included; comments
    stay with the statement below them. A statement counts when it declares or changes a name that is used further
    on."""
    names: set[Symbol] = set()
    for node in wanted:
        names |= used(view, node)
    kept: list[Piece] = []
    keeping = False
    for piece in reversed(parts):
        if piece.kind == "test":
            keeping = tests
            if tests:
                names |= used(view, piece.node)
        elif piece.kind == "statement":
            keeping = bool(given(view, piece.node) & names)
            if keeping:
                names |= used(view, piece.node)
        if keeping:
            kept.append(piece)
    return tuple(reversed(kept))


def remaining(view: View, parts: Sequence[Piece], gone: Sequence[Node]) -> tuple[Piece, ...]:
    """The pieces without declarations that nothing but the nodes ``gone`` used (nor what was declared for those)."""
    kept = list(parts)
    while True:
        for piece in kept:
            names = given(view, piece.node) if piece.node.type == "declaration" else set()
            if names and any(_uses(view, node, names) for node in gone):
                others = [other.node for other in kept if other is not piece and other.kind != "comment"]
                if not any(_uses(view, node, names, gone) for node in others):
                    break
        else:
            return tuple(kept)
        gone = [*gone, piece.node]
        place = kept.index(piece)
        start = place
        while start and kept[start - 1].kind == "comment":
            start -= 1
        del kept[start : place + 1]


def _uses(view: View, node: Node, names: set[Symbol], gone: Sequence[Node] = ()) -> bool:
    return any(
        view.facts.symbols.resolve(one) in names and not any(contains(away, one) for away in gone)
        for one in descendants(node, "identifier")
    )


def used(view: View, node: Node) -> set[Symbol]:
    """The kernel's names that occur in a node."""
    found = (view.facts.symbols.resolve(one) for one in descendants(node, "identifier"))
    return {symbol for symbol in found if symbol is not None}


def given(view: View, node: Node) -> set[Symbol]:
    """The names that a statement declares or changes."""
    return {
        symbol
        for symbol in view.facts.symbols.all()
        if contains(node, symbol.declarator) or any(contains(node, write) for write in symbol.writes)
    }


def memory_free(view: View, node: Node) -> bool:
    """Whether a node touches no memory but its own locals, calls nothing but pure functions and changes nothing."""
    if view.facts.accesses_in(node):
        return False
    calls = list(descendants(node, "call_expression"))
    return all(callee(call) in PURE or callee(call) in view.facts.symbols.formulas for call in calls)
