"""The integer types of expressions in a kernel: how wide, and signed or not, by the rules of C++."""

from tree_sitter import Node

from agent.analysis.dependence import BUILT_IN
from agent.analysis.symbols import Symbols
from agent.analysis.syntax import bare, callee, text
from agent.workload.dtypes import from_c_type

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
SMALL = frozenset(("i8", "u8", "i16", "u16", "bool"))
_RANK = ("u64", "i64", "u32", "i32")
DEEPEST = 60


def integer_type(node: Node | None, symbols: Symbols, depth: int = 0) -> str | None:
    """``i32``, ``u32``, ``i64``, ``u64`` or a smaller one; None for what is no integer, or not known."""
    node = bare(node)
    if node is None or depth > DEEPEST:
        return None
    if node.type == "number_literal":
        return _literal(text(node).lower().replace("'", ""))
    if node.type == "identifier":
        symbol = symbols.resolve(node)
        if symbol is None:
            return "i32" if text(node) in symbols.constants else None
        if symbol.is_memory:
            return None
        if symbol.type == "auto":
            return integer_type(symbol.init, symbols, depth + 1) if symbol.fixed else None
        return _named(symbol.type)
    if node.type == "field_expression":
        of_launch = text(node.child_by_field_name("argument")) in BUILT_IN
        return "u32" if of_launch and text(node.child_by_field_name("field")) in ("x", "y", "z") else None
    if node.type == "subscript_expression":
        return _element(node, symbols)
    if node.type == "cast_expression":
        return _named(text(node.child_by_field_name("type")))
    if node.type == "call_expression":
        return _call(node)
    if node.type == "unary_expression" and text(node.child_by_field_name("operator")) in ("+", "-", "~"):
        return _promoted(integer_type(node.child_by_field_name("argument"), symbols, depth + 1))
    if node.type == "binary_expression":
        return _binary(node, symbols, depth + 1)
    return None


def _binary(node: Node, symbols: Symbols, depth: int) -> str | None:
    operator = text(node.child_by_field_name("operator"))
    left = _promoted(integer_type(node.child_by_field_name("left"), symbols, depth))
    if operator in ("<<", ">>"):
        return left
    right = _promoted(integer_type(node.child_by_field_name("right"), symbols, depth))
    if left is None or right is None or operator not in ("+", "-", "*", "/", "%", "&", "|", "^"):
        return None
    return next(rank for rank in _RANK if rank in (left, right))


def _element(node: Node, symbols: Symbols) -> str | None:
    depth, root = 0, bare(node)
    while root is not None and root.type == "subscript_expression":
        depth, root = depth + 1, bare(root.child_by_field_name("argument"))
    symbol = symbols.resolve(root) if root is not None and root.type == "identifier" else None
    return _named(symbol.type) if symbol is not None and symbol.pointer + len(symbol.dims) == depth else None


def _call(node: Node) -> str | None:
    function = node.child_by_field_name("function")
    if callee(node) == "static_cast" and function is not None:
        return _named(text(function.child_by_field_name("arguments")).strip("<>"))
    return _named(text(function))


def _literal(written: str) -> str | None:
    digits = written.rstrip("ul")
    try:
        number = int(digits, 0) if not digits.isdigit() else int(digits)
    except ValueError:
        return None
    ending = written[len(digits) :]
    wide = "l" in ending or number >= 1 << 32
    return f"{'u' if 'u' in ending else 'i'}{64 if wide else 32}"


def _named(written: str) -> str | None:
    found = from_c_type(written)
    return found if found in INTEGERS or found == "bool" else None


def _promoted(found: str | None) -> str | None:
    return "i32" if found in SMALL else found
