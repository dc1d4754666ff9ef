"""Copies of a kernel: its text with edits, another name, and no parameters or locals that it no longer uses."""

from collections.abc import Sequence

from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.syntax import callee, contains, descendants, statements, text
from agent.ideas.view import View
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.kernel import Kernel
from agent.source.nodes import kernel_node
from agent.source.span import Span

WIDEST_LINE = 100


def copied(view: View, name: str, edits: Sequence[Edit], added: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """(text of the copy, names of the parameters that it kept). ``edits`` are relative to the document, ``added`` are
    declarations of further parameters."""
    document, kernel = view.document, view.kernel
    start = kernel.span.start
    own = Span(kernel.name_span.start, kernel.name_span.end)
    moved = [
        Edit(Span(edit.span.start - start, edit.span.end - start), edit.text)
        for edit in (*edits, Edit(own, name.encode()))
    ]
    made = apply_edits(document.text[start : kernel.span.end], moved).replace(b"\r\n", b"\n")
    made = _without_idle_locals(made, name)
    copy = parse(made, "copy.cu")
    kept = _used(copy, copy.kernel(name))
    # A parameter that only an added declaration is about is none of the original's.
    return with_parameters(copy, copy.kernel(name), kept, added), kept


def _used(document: Document, kernel: Kernel) -> tuple[str, ...]:
    body = kernel_node(document, kernel).child_by_field_name("body")
    words = set() if body is None else {text(name) for name in descendants(body, "identifier")}
    return tuple(parameter.name for parameter in kernel.parameters if parameter.name in words)


def with_parameters(document: Document, kernel: Kernel, kept: Sequence[str], added: Sequence[str]) -> str:
    """The kernel's text with some of its own parameters and further ones, laid out as wide as the file is."""
    node = parameter_list(document, kernel)
    own = [
        document.text[parameter.span.start : parameter.span.end].decode("utf-8", "surrogateescape")
        for parameter in kernel.parameters
        if parameter.name in kept
    ]
    raw = document.text[kernel.span.start : kernel.span.end]
    line_start = document.text.rfind(b"\n", 0, node.start_byte) + 1
    column = len(document.text[line_start : node.start_byte].decode("utf-8", "replace"))
    listing = wrapped([*own, *added], column)
    edit = Edit(Span(node.start_byte - kernel.span.start, node.end_byte - kernel.span.start), listing.encode())
    return apply_edits(raw, [edit]).decode("utf-8", "surrogateescape")


def parameter_list(document: Document, kernel: Kernel) -> Node:
    declarator = kernel_node(document, kernel).child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    listing = None if declarator is None else declarator.child_by_field_name("parameters")
    assert listing is not None
    return listing


def wrapped(parts: Sequence[str], column: int) -> str:
    """``(a, b, c)`` with line breaks where a line would become too wide, aligned behind the bracket."""
    return "(" + flowing(parts, column + 1, column + 1) + ")"


def flowing(parts: Sequence[str], column: int, indent: int) -> str:
    """``a, b, c`` from a column on, on further lines from ``indent`` on where a line would become too wide."""
    made, at = "", column
    for number, part in enumerate(" ".join(one.split()) for one in parts):
        if number and at + len(part) + 3 > WIDEST_LINE:
            made, at = f"{made},\n{' ' * indent}{part}", indent + len(part)
        else:
            between = ", " if number else ""
            made, at = made + between + part, at + len(between) + len(part)
    return made


def _without_idle_locals(made: bytes, name: str) -> bytes:
    """Declarations at the top of the body whose names nothing uses any more go, until none is left."""
    while True:
        document = parse(made, "copy.cu")
        body = kernel_node(document, document.kernel(name)).child_by_field_name("body")
        idle = None if body is None else next((one for one in _declarations(body) if _idle(one, body)), None)
        if idle is None:
            return made
        start = made.rfind(b"\n", 0, idle.start_byte) + 1
        end = made.find(b"\n", idle.end_byte) + 1
        if made[start : idle.start_byte].strip() or not end:
            start, end = idle.start_byte, idle.end_byte
        made = made[:start] + made[end:]


def _declarations(body: Node) -> list[Node]:
    inside = [one for one in statements(body) if one.type == "declaration"]
    branches = [one.child_by_field_name("consequence") for one in statements(body) if one.type == "if_statement"]
    return inside + [one for branch in branches for one in statements(branch) if one.type == "declaration"]


def _idle(declaration: Node, body: Node) -> bool:
    declarators = declaration.children_by_field_name("declarator")
    if len(declarators) != 1:
        return False
    calls = list(descendants(declaration, "call_expression", "assignment_expression", "update_expression"))
    if any(callee(call) not in PURE for call in calls):
        return False
    name = _declared(declarators[0])
    words = [one for one in descendants(body, "identifier") if text(one) == name]
    return bool(name) and all(contains(declaration, word) for word in words)


def _declared(declarator: Node) -> str:
    node: Node | None = declarator
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator") or next(
            (child for child in node.named_children if child.type == "identifier"), None
        )
    return text(node)
