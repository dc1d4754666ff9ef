"""The value of an expression in a kernel as a polynomial, seen through local definitions; and what it depends on.

Names that stay what they were declared as are replaced by their definition; a loop's own variable is one unknown for
the whole loop; anything that cannot be followed becomes an unknown of its own, which equals nothing but itself.
"""

from collections.abc import Mapping

from attrs import define, field
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.dependence import BUILT_IN, DEEPEST, VARYING, parts, sources, symbol_sources
from agent.analysis.symbols import Symbol, Symbols
from agent.analysis.syntax import LOOPS, ancestors, arguments, bare, callee, contains, statements, text
from agent.workload.expression import Expression

MOST_TERMS = 200
"""A product of more terms than this is not multiplied out."""

INTEGERS = frozenset(
    (
        *("int", "unsigned", "long", "short", "size_t", "ssize_t", "ptrdiff_t", "uint"),
        *("int32_t", "uint32_t", "int64_t", "uint64_t"),
    )
)


@define(eq=False)
class Scope:
    """Everything that gives an expression its value: the symbols, and numbers that are known for the launch
    (``blockDim.x`` where every launch has the same block). Remembers what was asked before."""

    symbols: Symbols
    known: Mapping[str, int] = field(factory=dict)
    sources: Mapping[Symbol, frozenset[str]] = field(init=False)
    _values: dict[tuple[int, int], Poly] = field(factory=dict, init=False)
    _differences: dict[tuple[int, int], Poly] = field(factory=dict, init=False)
    _dependences: dict[tuple[int, int], frozenset[str]] = field(factory=dict, init=False)
    _depth: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.sources = symbol_sources(self.symbols)


def value(node: Node | None, scope: Scope) -> Poly:
    """The value of an integer expression. Never fails: what it cannot follow is an unknown."""
    node = bare(node)
    if node is None:
        return unknown(Atom("nothing", frozenset({"unknown"})))
    key = (node.start_byte, node.end_byte)
    if key not in scope._values:
        # A definition that leads back to itself (`i = i + 1`) meets this unknown and goes no further.
        scope._values[key] = _opaque(node, frozenset({"unknown"}))
        if scope._depth < DEEPEST:
            scope._depth += 1
            scope._values[key] = _value(node, scope)
            scope._depth -= 1
    return scope._values[key]


def difference(comparison: Node, scope: Scope) -> Poly:
    """Left side minus right side of a comparison."""
    key = (comparison.start_byte, comparison.end_byte)
    if key not in scope._differences:
        left, right = comparison.child_by_field_name("left"), comparison.child_by_field_name("right")
        scope._differences[key] = value(left, scope) - value(right, scope)
    return scope._differences[key]


def dependence(node: Node | None, scope: Scope) -> frozenset[str]:
    """What an expression of any type depends on: ``threadIdx.x`` and the like, ``blockIdx.x``, ``memory`` (read from
    an array at an address that is the same for all threads), ``unknown``. Empty for what is the same in the whole
    grid."""
    if node is None:
        return frozenset()
    key = (node.start_byte, node.end_byte)
    if key not in scope._dependences:
        scope._dependences[key] = sources(parts(node, scope.symbols), scope.sources)
    return scope._dependences[key]


def is_uniform(node: Node | None, scope: Scope) -> bool:
    """Whether all threads of a block get the same value: proved, not assumed."""
    return not any(source.startswith("threadIdx") or source == "unknown" for source in dependence(node, scope))


def thread_dependent(node: Node | None, scope: Scope) -> bool | None:
    """True or False where that is known, None where it is not."""
    sources = dependence(node, scope)
    if any(source.startswith("threadIdx") for source in sources):
        return True
    return None if "unknown" in sources else False


def loop_atom(symbol: Symbol, loop: Node, scope: Scope) -> Atom:
    """The unknown that stands for a loop's variable inside that loop."""
    return Atom(f"{symbol.name}@loop{loop.start_byte}", scope.sources.get(symbol, frozenset()))


def own_loop(symbol: Symbol, node: Node) -> Node | None:
    """The loop around ``node`` that steps ``symbol`` once a turn and changes it nowhere else: in its header, or
    (``while``) in the last statement of its body, ``node`` being before that."""
    for loop in ancestors(node):
        if loop.type not in LOOPS:
            continue
        inside = [write for write in symbol.writes if contains(loop, write)]
        if not inside:
            continue
        step = loop.child_by_field_name("update")
        if step is None:
            body = statements(loop.child_by_field_name("body"))
            step = body[-1] if body else None
        if step is None or contains(step, node):
            return None
        header = loop.child_by_field_name("initializer")
        stepped = all(contains(step, write) or (header is not None and contains(header, write)) for write in inside)
        return loop if stepped else None
    return None


def _value(node: Node, scope: Scope) -> Poly:
    if node.type == "number_literal":
        literal = _integer(text(node))
        return _opaque(node, frozenset()) if literal is None else number(literal)
    if node.type == "identifier":
        return _name(node, scope)
    if node.type == "field_expression":
        return _field(node, scope)
    if node.type == "binary_expression":
        return _binary(node, scope)
    if node.type == "unary_expression" and text(node.child_by_field_name("operator")) in "+-":
        inner = value(node.child_by_field_name("argument"), scope)
        return inner if text(node.child_by_field_name("operator")) == "+" else -inner
    if callee(node) in ("min", "max") and len(arguments(node)) == 2:
        one, two = (value(argument, scope) for argument in arguments(node))
        return _formula(callee(node), one, two)
    if (cast := _cast(node)) is not None:
        return value(cast, scope)
    if callee(node) in scope.symbols.formulas:
        found = _expanded(node, scope)
        if found is not None:
            return found
    return _opaque(node, dependence(node, scope))


def _expanded(call: Node, scope: Scope) -> Poly | None:
    """The value of a call to a macro or function that is one expression over its arguments and constants."""
    formula = scope.symbols.formulas[callee(call)]
    given = arguments(call)
    if len(given) != len(formula.parameters) or not formula.stands_alone(given, call):
        return None
    names = {name: value(argument, scope) for name, argument in zip(formula.parameters, given, strict=True)}
    return _written(formula.expression, names, scope)


def _written(expression: Expression, names: Mapping[str, Poly], scope: Scope) -> Poly | None:
    if expression.op == "number":
        return number(expression.value) if isinstance(expression.value, int) else None
    if expression.op == "name":
        name = str(expression.value)
        if name in names:
            return names[name]
        constant = scope.symbols.constants.get(name)
        return None if constant is None or name in scope.symbols.table else number(constant)
    parts = [_written(operand, names, scope) for operand in expression.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if expression.op == "neg":
        return -known[0]
    return combined(expression.op, known[0], known[1]) if len(known) == 2 else None


def _cast(node: Node) -> Node | None:
    """What an integer-to-integer cast is applied to. Widths are not modelled: an index that overflows is a fault of
    its own."""
    if node.type == "cast_expression" and "*" not in text(node.child_by_field_name("type")):
        return node.child_by_field_name("value") if _is_integer(text(node.child_by_field_name("type"))) else None
    if node.type != "call_expression":
        return None
    function = node.child_by_field_name("function")
    given = arguments(node)
    if function is None or len(given) != 1:
        return None
    if function.type == "template_function" and callee(node) == "static_cast":
        return given[0] if _is_integer(text(function.child_by_field_name("arguments")).strip("<>")) else None
    return given[0] if _is_integer(text(function)) else None


def _is_integer(type_name: str) -> bool:
    words = set(type_name.replace("std::", "").split()) - {"const"}
    return bool(words) and words <= INTEGERS


def _integer(literal: str) -> int | None:
    digits = literal.rstrip("uUlLzZ").replace("'", "")
    try:
        return int(digits, 8) if len(digits) > 1 and digits.startswith("0") and digits.isdigit() else int(digits, 0)
    except ValueError:
        return None


def _name(node: Node, scope: Scope) -> Poly:
    symbol = scope.symbols.resolve(node)
    if symbol is None:
        constant = scope.symbols.constants.get(text(node))
        if constant is not None:
            return number(constant)
        return unknown(Atom(text(node), scope.symbols.outside(text(node))))
    if symbol.is_memory:
        return unknown(Atom(symbol.key))
    if symbol.fixed:
        if symbol.space == "parameter":
            return unknown(Atom(symbol.key))
        if symbol.init is not None and (_is_integer(symbol.type) or symbol.type == "auto"):
            return value(symbol.init, scope)
    if not symbol.escapes and (loop := own_loop(symbol, node)) is not None:
        return unknown(loop_atom(symbol, loop, scope))
    # Changed somewhere: its value here need not be its value there, so each use is an unknown of its own.
    return unknown(Atom(f"{symbol.key}:{node.start_byte}", scope.sources.get(symbol, frozenset())))


def _field(node: Node, scope: Scope) -> Poly:
    base, name = text(node.child_by_field_name("argument")), text(node.child_by_field_name("field"))
    if base in BUILT_IN and name in "xyz":
        full = f"{base}.{name}"
        if full in scope.known:
            return number(scope.known[full])
        return unknown(Atom(full, frozenset({full}) if base in VARYING else frozenset()))
    return _opaque(node, dependence(node, scope))


def _binary(node: Node, scope: Scope) -> Poly:
    operator = text(node.child_by_field_name("operator"))
    left, right = value(node.child_by_field_name("left"), scope), value(node.child_by_field_name("right"), scope)
    found = combined(operator, left, right)
    return _opaque(node, left.depends | right.depends) if found is None else found


def combined(operator: str, left: Poly, right: Poly) -> Poly | None:
    """What an operator makes of two values; None where that cannot be written down."""
    if operator in ("+", "-"):
        return left + right if operator == "+" else left - right
    if operator == "*":
        return left * right if len(left.terms) * len(right.terms) <= MOST_TERMS else None
    one, two = left.constant, right.constant
    if operator == "<<" and two is not None and 0 <= two < 63:
        return left * number(1 << two)
    if one is not None and two is not None and one >= 0:
        if operator in "/%" and two > 0:
            return number(one // two if operator == "/" else one % two)
        if operator == ">>" and 0 <= two < 63:
            return number(one >> two)
        if operator in ("&", "|", "^") and two >= 0:
            return number({"&": one & two, "|": one | two, "^": one ^ two}[operator])
    return _formula(operator, left, right) if operator in ("/", "%", "&", "|", "^", ">>") else None


def _formula(operation: str, left: Poly, right: Poly) -> Poly:
    """An operation that is no polynomial: named by its operands, so that equal ones are equal."""
    return unknown(Atom(f"({left}){operation}({right})", left.depends | right.depends, (operation, (left, right))))


def _opaque(node: Node, depends: frozenset[str]) -> Poly:
    return unknown(Atom(f"<{text(node)}>{node.start_byte}", depends))


def replaced(poly: Poly, names: Mapping[str, Poly]) -> Poly:
    """The value with unknowns replaced, inside operations that are no polynomials too."""
    total = number(0)
    for product, factor in poly.terms:
        term = number(factor)
        for atom in product:
            term = term * _replaced_atom(atom, names)
        total = total + term
    return total


def _replaced_atom(atom: Atom, names: Mapping[str, Poly]) -> Poly:
    if atom.name in names:
        return names[atom.name]
    if atom.formula is None:
        return unknown(atom)
    operation, operands = atom.formula
    left, right = (replaced(operand, names) for operand in operands)
    found = combined(operation, left, right)
    return _formula(operation, left, right) if found is None else found


def leaves(poly: Poly) -> frozenset[Atom]:
    """The unknowns that a value is made of, those inside operations instead of the operations."""
    found: set[Atom] = set()
    for atom in poly.atoms:
        found |= {atom} if atom.formula is None else frozenset().union(*(leaves(part) for part in atom.formula[1]))
    return frozenset(found)
