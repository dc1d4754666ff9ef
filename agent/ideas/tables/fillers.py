"""Device functions that do nothing but write into the arrays that they are handed, values made of their arguments."""

from functools import lru_cache

from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.program import program_facts
from agent.analysis.symbols import symbols
from agent.analysis.syntax import callee, descendants, text
from agent.source.document import Document

BARRED = ("gnu_asm_expression", "lambda_expression", "storage_class_specifier", "field_expression", "goto_statement")


@lru_cache(maxsize=64)
def function_named(name: str, document: Document) -> Node | None:
    """The one plain device function of that name; None where it is a template, or there are several."""
    found = [one for one in descendants(document.tree.root_node, "function_definition") if _name(one) == name]
    if len(found) != 1 or found[0].parent is None or found[0].parent.type == "template_declaration":
        return None
    return found[0] if "__device__" in {text(child) for child in found[0].children} else None


@lru_cache(maxsize=64)
def is_filler(name: str, document: Document) -> bool:
    """Whether each call of a function does the same to the same arguments, and nothing else."""
    function = function_named(name, document)
    body = None if function is None else function.child_by_field_name("body")
    if function is None or body is None or any(True for _ in descendants(body, *BARRED)):
        return False
    if any(callee(call) not in PURE for call in descendants(body, "call_expression")):
        return False
    shared = program_facts(document)
    own = symbols(function, shared.constants, shared.takers, shared.arrays, shared.fixed, shared.formulas)
    called = {text(call.child_by_field_name("function")) for call in descendants(body, "call_expression")}
    return all(
        own.resolve(one) is not None or text(one) in called or not own.outside(text(one))
        for one in descendants(body, "identifier")
    )


def _name(function: Node) -> str:
    node = function.child_by_field_name("declarator")
    while node is not None and node.type != "function_declarator":
        node = node.child_by_field_name("declarator")
    return text(None if node is None else node.child_by_field_name("declarator"))
