"""Types of arithmetic expressions in a kernel, as far as declarations show them."""

from tree_sitter import Node

from agent.analysis.symbols import Symbol, Symbols
from agent.analysis.syntax import arguments, bare, callee, text
from agent.workload.dtypes import base, from_c_type

_SINGLE = frozenset(
    (
        *("sqrtf", "rsqrtf", "expf", "exp2f", "logf", "log2f", "log10f", "powf", "sinf", "cosf", "tanf", "tanhf"),
        *("fabsf", "fminf", "fmaxf", "fmaf", "floorf", "ceilf", "erff", "rintf", "roundf", "truncf", "cbrtf", "hypotf"),
        *("__expf", "__logf", "__powf", "__sinf", "__cosf", "__fdividef", "__frcp_rn", "__fsqrt_rn", "atan2f", "acosf"),
    )
)
_RANK = ("f64", "f32")
OVERLOADED = frozenset(
    (
        "sqrt",
        "rsqrt",
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "tanh",
        "erf",
        "fabs",
        "floor",
        "ceil",
    )
)


def is_double_literal(node: Node) -> bool:
    """``0.5`` and ``1e-3``, not ``0.5f`` and not ``5``."""
    written = text(node).replace("'", "").lower()
    if node.type != "number_literal" or written.startswith("0x"):
        return False
    return ("." in written or "e" in written) and written[-1] in "0123456789."


def literal_value(node: Node | None) -> float | None:
    """The number that a literal stands for, parentheses around it apart; None for anything else."""
    node = bare(node)
    if node is None or node.type != "number_literal":
        return None
    written = text(node).replace("'", "").lower()
    try:
        return float(int(written.rstrip("ul"), 0)) if written.startswith("0x") else float(written.rstrip("ful"))
    except ValueError:
        return None


def type_of(node: Node | None, symbols: Symbols) -> str | None:
    """``f32``, ``f64``, ``int`` for integers of any width, or None where it is not known."""
    node = bare(node)
    if node is None:
        return None
    if node.type == "number_literal":
        return _literal(node)
    if node.type == "identifier":
        symbol = symbols.resolve(node)
        if symbol is None:
            return "int" if text(node) in symbols.constants else None
        return None if symbol.is_memory else _scalar(symbol.type, symbol, symbols)
    if node.type == "field_expression":
        return _field(node, symbols)
    if node.type == "subscript_expression":
        return _element(node, symbols)
    if node.type == "unary_expression":
        return type_of(node.child_by_field_name("argument"), symbols)
    if node.type == "cast_expression":
        return _name(text(node.child_by_field_name("type")))
    if node.type == "call_expression":
        return _call(node, symbols)
    if node.type == "binary_expression" and text(node.child_by_field_name("operator")) in ("+", "-", "*", "/"):
        left, right = (type_of(node.child_by_field_name(side), symbols) for side in ("left", "right"))
        if left is None or right is None:
            return None
        return next((rank for rank in _RANK if rank in (left, right)), "int")
    return None


def _literal(node: Node) -> str:
    written = text(node).lower()
    if written.startswith("0x"):
        return "int"
    if is_double_literal(node):
        return "f64"
    return "f32" if written.endswith("f") else "int"


def _scalar(written: str, symbol: Symbol, symbols: Symbols) -> str | None:
    return type_of(symbol.init, symbols) if written == "auto" and symbol.fixed else _name(written)


def _name(written: str) -> str | None:
    dtype = from_c_type(written)
    if dtype is None:
        return None
    scalar, lanes = base(dtype)
    if lanes > 1:
        return None
    return scalar if scalar in ("f32", "f64") else None if scalar in ("f16", "bf16") else "int"


def _element(node: Node, symbols: Symbols) -> str | None:
    depth, root = 0, bare(node)
    while root is not None and root.type == "subscript_expression":
        depth, root = depth + 1, bare(root.child_by_field_name("argument"))
    symbol = symbols.resolve(root) if root is not None and root.type == "identifier" else None
    if symbol is None or symbol.pointer + len(symbol.dims) != depth:
        return None
    return _name(symbol.type)


def _field(node: Node, symbols: Symbols) -> str | None:
    """``v.x`` of a vector of floats; ``threadIdx.x``."""
    holder = bare(node.child_by_field_name("argument"))
    if holder is None or text(node.child_by_field_name("field")) not in ("x", "y", "z", "w"):
        return None
    if text(holder) in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
        return "int"
    root = holder if holder.type == "identifier" else bare(holder.child_by_field_name("argument"))
    symbol = symbols.resolve(root) if root is not None and root.type == "identifier" else None
    dtype = from_c_type(symbol.type) if symbol is not None else None
    scalar = base(dtype)[0] if dtype is not None else ""
    return scalar if scalar in ("f32", "f64") else None


def _call(node: Node, symbols: Symbols) -> str | None:
    name, given = callee(node), arguments(node)
    if name in _SINGLE:
        return "f32"
    if name in ("float", "double"):
        return _name(name)
    if name in OVERLOADED and len(given) == 1:
        inner = type_of(given[0], symbols)
        return "f64" if inner == "int" else inner
    function = node.child_by_field_name("function")
    if name == "static_cast" and function is not None:
        return _name(text(function.child_by_field_name("arguments")).strip("<>"))
    return _name(text(function))
