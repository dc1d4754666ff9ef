"""Expressions over names, with the semantics of C: what sizes, grids and scalar arguments are written in.

Integer division truncates toward zero, ``%`` takes the sign of the dividend, ``float`` arithmetic is rounded to 32
bits, comparisons give 0 or 1. Two differences from C, both on purpose: an ``int`` does not wrap at 32 bits (a value
beyond 64 bits is an error, as is a signed cast that does not fit), and nothing is undefined: what C leaves undefined
raises :class:`ExpressionError`.

Text comes from files that nobody vetted: length, depth and size are limited, and nothing is ever passed to ``eval``.
"""

import math
from collections.abc import Callable, Mapping

from attrs import field, frozen

from agent.workload import arithmetic, dtypes
from agent.workload.arithmetic import Typed

MAX_DEPTH = 120
MAX_NODES = 4000

# Binding strength of each operator, as in C; ``?:`` binds loosest.
PRECEDENCE = {
    "?": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, "<=": 8, ">": 8, ">=": 8,
    "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11,
}  # fmt: skip
_UNARY = 12
_PRIMARY = 13


class ExpressionError(ValueError):
    """The text is not an expression, or it has no value here. The message says what and where."""


@frozen
class Expression:
    """One node of an expression; immutable, hashable, equal when written alike.

    ``op`` is ``number`` (``value`` is the number; ``single`` marks a ``float``), ``name`` (``value`` is the name),
    ``cast`` and ``sizeof`` (``value`` is the element type), ``call`` (``value`` is the function), or an operator over
    ``operands``; unary operators are ``neg``, ``not`` and ``~``. ``record`` is no number but a struct passed by value,
    ``{.scale = 0.5, .data = x}``: its members are ``operands``, and ``value`` names them, ``scale,data``, or is None
    where they stand in order.
    """

    op: str
    operands: "tuple[Expression, ...]" = ()
    value: int | float | str | None = None
    single: bool = False
    names: frozenset[str] = field(init=False, eq=False, repr=False)
    depth: int = field(init=False, eq=False, repr=False)
    nodes: int = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        own = {self.value} if self.op == "name" else set()
        object.__setattr__(self, "names", frozenset(own).union(*(part.names for part in self.operands)))
        object.__setattr__(self, "depth", 1 + max((part.depth for part in self.operands), default=0))
        object.__setattr__(self, "nodes", 1 + sum(part.nodes for part in self.operands))
        if self.depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise ExpressionError("the expression is too deeply nested or too long; give it a simpler form")

    @staticmethod
    def parse(text: str) -> "Expression":
        """The expression that ``text`` writes. Raises ExpressionError with the column of the first fault."""
        return parse(text)

    @staticmethod
    def parse_argument(text: str) -> "Expression":
        """The argument of a launch that ``text`` writes: an expression, or members of a struct in braces."""
        from agent.workload.grammar import parse_argument

        return parse_argument(text)

    def members(self) -> "tuple[tuple[str, Expression], ...]":
        """(name, value) of each member of a ``record``; names are empty where members stand in order."""
        told = str(self.value).split(",") if self.value else [""] * len(self.operands)
        return tuple(zip(told, self.operands, strict=True))

    def evaluate(self, names: Mapping[str, int | float]) -> int | float:
        """The value at these names. Raises ExpressionError for an unknown name or what C leaves undefined."""
        return _evaluate(self, names).number

    def integer(self, names: Mapping[str, int | float]) -> int:
        """The value as C would convert it to an integer."""
        return int(self.evaluate(names))

    def substitute(self, mapping: "Mapping[str, Expression]") -> "Expression":
        """The same with names replaced, simplified where a part became constant."""
        if not self.names & mapping.keys():
            return self
        if self.op == "name":
            return mapping[str(self.value)]
        return build(self.op, [part.substitute(mapping) for part in self.operands], self.value)

    def simplify(self) -> "Expression":
        """Constants folded and neutral elements dropped; the value is the same wherever there was one."""
        if not self.operands:
            return build(self.op, (), self.value) if self.op == "sizeof" else self
        return build(self.op, [part.simplify() for part in self.operands], self.value)

    @property
    def constant(self) -> int | float | None:
        """The number that this is, when it is one written down."""
        return self.value if self.op == "number" and not isinstance(self.value, str) else None

    def __str__(self) -> str:
        return _text(self)


def number(value: int | float, single: bool = False) -> Expression:
    if isinstance(value, float) and math.isnan(value):
        raise ExpressionError("not a number")
    return Expression("number", (), value, single)


def name(text: str) -> Expression:
    return Expression("name", (), text)


def record(members: "list[tuple[str, Expression]]") -> Expression:
    """A struct of these members; their names are all empty where they stand in order."""
    named = any(called for called, _ in members)
    return Expression("record", tuple(held for _, held in members), ",".join(n for n, _ in members) if named else None)


def parse(text: str) -> Expression:
    """See :meth:`Expression.parse`."""
    from agent.workload.grammar import parse_text

    return parse_text(text)


def build(
    op: str, operands: "tuple[Expression, ...] | list[Expression]", value: int | float | str | None = None
) -> Expression:
    """A node with its constants folded and neutral elements dropped."""
    parts = tuple(operands)
    plain = Expression(op, parts, value)
    if op in ("number", "name", "record"):
        return plain
    if all(part.op == "number" for part in parts):
        return _folded(plain)
    if op == "?" and parts[0].op == "number":
        return parts[1] if parts[0].value else parts[2]
    return _without_neutral(op, parts) or plain


def _folded(expression: Expression) -> Expression:
    try:
        result = _evaluate(expression, {})
    except ExpressionError:
        return expression
    # no text says that an infinity is single; as it stands it reads back
    if isinstance(result.number, float) and not math.isfinite(result.number):
        return expression
    return number(result.number, result.kind == arithmetic.FLOAT)


def _without_neutral(op: str, parts: tuple[Expression, ...]) -> Expression | None:
    """``x`` for ``x + 0``, ``x - 0``, ``x * 1`` and ``x / 1``: integer 0 and 1 keep both value and type."""
    if len(parts) != 2:
        return None
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1}.get(op)
    left, right = parts
    if neutral is None:
        return None
    if type(right.constant) is int and right.constant == neutral:
        return left
    if op in "+*" and type(left.constant) is int and left.constant == neutral:
        return right
    return None


def kind(expression: Expression, names: Mapping[str, int | float] | None = None) -> int:
    """The C type class of the value: ``arithmetic.INT``, ``FLOAT`` or ``DOUBLE``. An unknown name counts as integer."""
    op, parts, value = expression.op, expression.operands, expression.value
    if op == "number":
        return arithmetic.typed(value, expression.single).kind if isinstance(value, int | float) else arithmetic.INT
    if op == "name":
        return arithmetic.typed((names or {}).get(str(value), 0)).kind
    if op == "cast":
        return arithmetic.kind_of_type(str(value))
    if op in arithmetic.INTEGER_RESULT or op == "record":
        return arithmetic.INT
    kinds = [kind(part, names) for part in (parts[1:] if op == "?" else parts)]
    return arithmetic.result_kind(str(value), kinds) if op == "call" else max(kinds)


def _evaluate(expression: Expression, names: Mapping[str, int | float]) -> Typed:
    op, parts = expression.op, expression.operands
    try:
        if op == "number":
            assert not isinstance(expression.value, str) and expression.value is not None
            return arithmetic.typed(expression.value, expression.single)
        if op == "name":
            if expression.value not in names:
                raise ExpressionError(f"`{expression.value}` has no value here")
            return arithmetic.typed(names[str(expression.value)])
        if op == "sizeof":
            return arithmetic.size_of(str(expression.value))
        if op == "record":
            raise ExpressionError(f"`{expression}` is a struct, and a number is needed")
        if op in _LAZY:
            return _LAZY[op](parts, names)
        values = [_evaluate(part, names) for part in parts]
        if op == "cast":
            return arithmetic.cast(values[0], str(expression.value))
        if op == "call":
            return arithmetic.call(str(expression.value), values)
        return arithmetic.unary(op, values[0]) if len(values) == 1 else arithmetic.binary(op, *values)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"{error} in `{expression}`") from None


def _truth(condition: bool) -> Typed:
    return arithmetic.typed(int(condition))


def _choose(parts: tuple[Expression, ...], names: Mapping[str, int | float]) -> Typed:
    """``a ? b : c``: only the branch taken is evaluated, but the other one has a say in the type, as in C."""
    chosen = _evaluate(parts[1 if _evaluate(parts[0], names).number else 2], names)
    return arithmetic.convert(chosen, max(kind(part, names) for part in parts[1:]))


_LAZY: Mapping[str, Callable[[tuple[Expression, ...], Mapping[str, int | float]], Typed]] = {
    "?": _choose,
    "&&": lambda parts, names: _truth(all(_evaluate(part, names).number for part in parts)),
    "||": lambda parts, names: _truth(any(_evaluate(part, names).number for part in parts)),
}


def _text(expression: Expression) -> str:
    op, parts, value = expression.op, expression.operands, expression.value
    if op == "number":
        assert value is not None and not isinstance(value, str)
        return arithmetic.literal(value, expression.single)
    if op == "name":
        return str(value)
    if op == "sizeof":
        return f"sizeof({dtypes.c_name(str(value))})"
    if op == "call":
        return f"{value}({', '.join(map(_text, parts))})"
    if op == "cast":
        return f"({dtypes.c_name(str(value))}){_wrapped(parts[0], _UNARY)}"
    if op == "record":
        told = (f".{named} = {_text(part)}" if named else _text(part) for named, part in expression.members())
        return "{" + ", ".join(told) + "}"
    if len(parts) == 1:
        return {"neg": "-", "not": "!", "~": "~"}[op] + _wrapped(parts[0], _PRIMARY)
    level = PRECEDENCE[op]
    if op == "?":
        return f"{_wrapped(parts[0], level + 1)} ? {_text(parts[1])} : {_wrapped(parts[2], level)}"
    return f"{_wrapped(parts[0], level)} {op} {_wrapped(parts[1], level + 1)}"


def _wrapped(expression: Expression, level: int) -> str:
    text = _text(expression)
    return text if _level(expression) >= level else f"({text})"


def _level(expression: Expression) -> int:
    if expression.op == "number":
        return _UNARY if _text(expression).startswith("-") else _PRIMARY
    if expression.op in ("name", "sizeof", "call", "record"):
        return _PRIMARY
    return _UNARY if expression.op == "cast" or len(expression.operands) == 1 else PRECEDENCE[expression.op]
