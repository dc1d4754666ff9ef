"""Calls that do nothing but compute: mathematical functions, and device functions of the file that write nowhere and do
not ask which thread they run in."""

from functools import lru_cache

from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.facts import Facts
from agent.analysis.syntax import bare, callee, descendants, text
from agent.source.document import Document

DEEPEST = 6
OWN_PLACE = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})


def is_quiet(call: Node, facts: Facts) -> bool:
    """Whether a call's only effect is its value, which depends on its arguments (and what these point at) alone."""
    return _quiet(callee(call), facts.document, 0)


@lru_cache(maxsize=4096)
def _quiet(name: str, document: Document, depth: int) -> bool:
    if name in PURE:
        return True
    if depth > DEEPEST:
        return False
    own = [function for function in _functions(document) if _name(function) == name]
    return bool(own) and all(_computes(function, document, depth) for function in own)


@lru_cache(maxsize=8)
def _functions(document: Document) -> tuple[Node, ...]:
    return tuple(descendants(document.tree.root_node, "function_definition"))


def _declarator(function: Node) -> Node | None:
    node = function.child_by_field_name("declarator")
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator")
    return node


def _name(function: Node) -> str:
    node = _declarator(function)
    return text(None if node is None else node.child_by_field_name("declarator")).split("::")[-1]


def _computes(function: Node, document: Document, depth: int) -> bool:
    declarator, body = _declarator(function), function.child_by_field_name("body")
    listing = None if declarator is None else declarator.child_by_field_name("parameters")
    if body is None or listing is None or "__device__" not in {text(child) for child in function.children}:
        return False
    if any(True for _ in descendants(listing, "reference_declarator")) or not _reads_only(listing):
        return False
    if any(True for _ in descendants(body, "gnu_asm_expression", "lambda_expression", "storage_class_specifier")):
        return False
    if OWN_PLACE & {text(name) for name in descendants(body, "identifier")} or b"__shared__" in (body.text or b""):
        return False
    own = _declared(body) | {text(name) for name in descendants(listing, "identifier")}
    if not all(_stays(write, own, body) for write in descendants(body, "assignment_expression", "update_expression")):
        return False
    return all(_quiet(callee(call), document, depth + 1) for call in descendants(body, "call_expression"))


def _reads_only(listing: Node) -> bool:
    """Whether every pointer parameter is to ``const``."""
    for parameter in listing.named_children:
        points = any(True for _ in descendants(parameter, "pointer_declarator", "array_declarator"))
        if points and "const" not in {text(child) for child in parameter.children}:
            return False
    return True


def _declared(body: Node) -> set[str]:
    found: set[str] = set()
    for declaration in descendants(body, "declaration"):
        for declarator in declaration.children_by_field_name("declarator"):
            points = any(True for _ in descendants(declarator, "pointer_declarator", "reference_declarator"))
            if declarator.type in ("pointer_declarator", "reference_declarator") or points:
                continue
            node: Node | None = declarator
            while node is not None and node.type != "identifier":
                node = node.child_by_field_name("declarator")
            found.add(text(node))
    return found


def _stays(write: Node, own: set[str], body: Node) -> bool:
    """Whether what is written is a variable or an array of the function's own."""
    target = bare(write.child_by_field_name("left") or write.child_by_field_name("argument"))
    through = False
    while target is not None and target.type in ("subscript_expression", "field_expression"):
        through = through or target.type == "subscript_expression"
        target = bare(target.child_by_field_name("argument"))
    if target is None or target.type != "identifier":
        return False
    # Through a subscript only an array declared here will do: a parameter would be somebody else's memory.
    return text(target) in (_declared(body) if through else own)
