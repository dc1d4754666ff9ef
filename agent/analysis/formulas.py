"""Macros and functions that are one integer expression over their parameters: ``IDX(i, j)``."""

import re
from functools import lru_cache

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import statements, text
from agent.workload.expression import Expression, ExpressionError

ATOMIC = ("identifier", "number_literal", "parenthesized_expression", "field_expression", "call_expression")
HARMLESS_PARENTS = (
    *("subscript_argument_list", "argument_list", "init_declarator", "parenthesized_expression", "return_statement"),
)


@frozen
class Formula:
    """``macro``: arguments are put in as text, so that ``i * n`` of ``a + 1`` is ``a + 1 * n``."""

    parameters: tuple[str, ...]
    body: str
    macro: bool

    @property
    def expression(self) -> Expression:
        found = _parsed(self.body)
        if found is None:
            raise ValueError(f"'{self.body}' is no expression")
        return found

    def stands_alone(self, given: list[Node], call: Node) -> bool:
        """Whether the arguments, and the result where it stands, keep to themselves without parentheses."""
        if not self.macro:
            return True
        for name, argument in zip(self.parameters, given, strict=True):
            bare = re.search(rf"(?<!\()\b{name}\b|\b{name}\b(?!\))", self.body)
            if argument.type not in ATOMIC and bare is not None:
                return False
        closed = re.fullmatch(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", self.body) is not None
        parent = call.parent
        return closed or (parent is not None and parent.type in HARMLESS_PARENTS)


def formula_of(node: Node) -> tuple[str, Formula] | None:
    """(name, formula) of a macro or function definition that is one."""
    if node.type == "preproc_function_def":
        listing = node.child_by_field_name("parameters")
        names = [] if listing is None else [text(name) for name in listing.named_children if name.type != "comment"]
        body = re.split(r"//|/\*", text(node.child_by_field_name("value")))[0].replace("\\\n", " ").strip()
        return _checked(text(node.child_by_field_name("name")), Formula(tuple(names), body, True))
    if node.type != "function_definition" or "__device__" not in {text(child) for child in node.children}:
        return None
    declarator = node.child_by_field_name("declarator")
    inside = statements(node.child_by_field_name("body"))
    if declarator is None or declarator.type != "function_declarator" or len(inside) != 1:
        return None
    listing = declarator.child_by_field_name("parameters")
    given = [] if listing is None else [one for one in listing.named_children if one.type == "parameter_declaration"]
    names = [text(one.child_by_field_name("declarator")) for one in given]
    if inside[0].type != "return_statement" or not inside[0].named_children or not all(map(str.isidentifier, names)):
        return None
    integers = all(re.search(r"\b(?:int|unsigned|size_t|long|u?int\d\d_t|uint)\b", text(one)) for one in given)
    body = text(inside[0].named_children[0])
    return (
        _checked(text(declarator.child_by_field_name("declarator")), Formula(tuple(names), body, False))
        if (integers and given)
        else None
    )


def _checked(name: str, formula: Formula) -> tuple[str, Formula] | None:
    return (name, formula) if formula.body and _parsed(formula.body) is not None else None


@lru_cache(maxsize=4096)
def _parsed(body: str) -> Expression | None:
    try:
        return Expression.parse(body)
    except ExpressionError:
        return None
