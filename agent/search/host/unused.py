"""Host code that only the launches needed that are gone goes with them: locals, as a compiler would warn of them, and
loops that have nothing left to do."""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.ideas.rewriting import remove
from agent.search.host.idle import idle
from agent.search.host.written import in_macro
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.nodes import descendants, node_text

_NUMBER = (
    r"(?:const(?:expr)?\s+)?"
    r"(?:dim3|auto|size_t|u?int\d+_t|(?:unsigned\s+|signed\s+)?(?:int|short|long(?:\s+long)?)|unsigned)"
)
_DECLARED = re.compile(rf"{_NUMBER}\s+(\w+)\s*[=({{](.*);", re.DOTALL)
_CALLED = re.compile(r"(\w+)\s*\(")
_PURE = frozenset({"dim3", "int", "unsigned", "size_t", "min", "max", "sizeof"})
_CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")


def without_unused(before: Document, after: Document) -> Document:
    """``after`` without the local numbers and shapes that ``before`` uses and it does not, and without the loops and
    conditions that came to do nothing. A value whose computation may do something, or that is declared with others in
    one statement, stays."""
    while edits := list(_edits(before, after)):
        after = parse(apply_edits(after.text, edits), after.path)
    return after


def _edits(before: Document, after: Document) -> Iterator[Edit]:
    old, new = _functions(before), _functions(after)
    if len(old) != len(new):
        return
    for was, now in zip(old, new, strict=True):
        text, written = node_text(before, was), node_text(after, now)
        if text == written:
            continue
        if (empty := next(idle(after, now, text), None)) is not None:
            yield remove(after, empty)
            continue
        for node in descendants(now, "declaration"):
            name = _declared(after, node)
            if name and _uses(name, written) == 1 and _uses(name, text) > 1 and not in_macro(after, {name}):
                yield remove(after, node)


def _functions(document: Document) -> list[Node]:
    return list(descendants(document.tree.root_node, "function_definition"))


def _declared(document: Document, node: Node) -> str | None:
    """The one number or shape that a statement declares, where nothing is lost without its value."""
    if node.parent is None or node.parent.type != "compound_statement":
        return None
    if len(node.children_by_field_name("declarator")) != 1:
        return None
    found = _DECLARED.fullmatch(node_text(document, node).strip())
    if found is None or not set(_CALLED.findall(found[2])) <= _PURE or _CHANGES.search(found[2]):
        return None
    return found[1]


def _uses(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))
