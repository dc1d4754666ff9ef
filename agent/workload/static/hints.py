"""What host arrays hold: random numbers, distributions, and stores that tell about a whole array."""

import re
from collections.abc import Mapping

from tree_sitter import Node

from agent.workload import dtypes
from agent.workload.arithmetic import INT
from agent.workload.expression import Expression, build, kind, number
from agent.workload.static.state import Facts, State
from agent.workload.static.values import Content, Distribution, Random, Scalar, Unknown, Value
from agent.workload.workload import Domain


def random_range(kind: str, low: Expression, high: Expression) -> Random:
    return Random(Domain(kind, low, high, True))


RANDOM: Mapping[str, Value] = {
    "rand": random_range("integers", number(0), number(2**31)),
    "random": random_range("integers", number(0), number(2**31)),
    "drand48": random_range("uniform", number(0), number(1)),
}


def distribution(type_text: str, values: list[Value]) -> Value | None:
    """``std::uniform_real_distribution<float> d(a, b)`` and its kin; None for any other type."""
    match = re.search(r"\b(uniform_real|uniform_int|normal)_distribution\b", type_text)
    if not match:
        return None
    if match[1] == "normal":
        return Distribution(Domain("normal", given=True))
    bounds = [value.expression for value in values if isinstance(value, Scalar)]
    if len(bounds) != 2:
        return (
            Distribution(Domain("uniform", number(0), number(1), True))
            if not values
            else Unknown("its range is not known")
        )
    if match[1] == "uniform_int":
        return Distribution(Domain("integers", bounds[0], build("+", (bounds[1], number(1))), True))
    return Distribution(Domain("uniform", bounds[0], bounds[1], True))


def domain_of(value: Value | None, facts: Facts) -> Domain | None:
    """What one stored value tells about a whole array. Numbers that the program starts from are constants."""
    if isinstance(value, Random):
        return value.domain
    if isinstance(value, Scalar):
        constant = value.expression.constant
        if constant == 0:
            return Domain("zeros", given=True)
        if constant is not None or value.expression.names <= facts.roots.keys():
            return Domain("constant", value.expression, value.expression, True)
        if value.expression.op == "%":
            return Domain("integers", number(0), value.expression.operands[1], True)
    return None


def note_store(memory: int, value: Value, node: Node, facts: Facts, state: State) -> None:
    """Host code stored ``value`` somewhere in a host array."""
    domain = domain_of(value, facts)
    before = state.contents.get(memory)
    if before is not None and before.kind == "zeros" and domain is not None and domain.kind == "constant":
        domain = None  # perhaps not everywhere: some elements may still be zero
    if before is not None and before.kind == "host" and before.domain != domain:
        domain = None  # two different things are stored: no statement about all
    state.contents[memory] = Content("host", domain)


def listed(values: list[Value], count: Value, facts: Facts) -> Domain | None:
    """What an initialiser tells about an array of ``count`` elements; those that it does not reach are zero."""
    domains = [domain_of(value, facts) for value in values]
    if any(domain is None or domain != domains[0] for domain in domains):
        return None
    first = domains[0] if domains else Domain("zeros", given=True)
    whole = isinstance(count, Scalar) and count.expression.constant == len(values)
    return first if first is not None and (whole or first.kind == "zeros") else None


def combine_random(op: str, left: Value, right: Value) -> Value:
    """Affine maps of a random number: the bounds move with it."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left if isinstance(left, Unknown) else right
    low, high = _range(left), _range(right)
    if low is None or high is None:
        return Unknown("a random number")
    if op == "%" and isinstance(left, Random) and isinstance(right, Scalar):
        return random_range("integers", number(0), right.expression)
    whole = _is_integer(left) and _is_integer(right)
    if whole:  # the upper end of an integer range is excluded
        low, high = (_inclusive(side, part) for side, part in ((left, low), (right, high)))
    ends = _ends(op, low, high)
    if ends is None:
        return Unknown("a random number")
    if whole:
        ends = ends[0], build("+", (ends[1], number(1)))
    kind = "integers" if _is_integer(left) and _is_integer(right) else "uniform"
    return random_range(kind, *ends)


def _inclusive(value: Value, ends: tuple[Expression, Expression]) -> tuple[Expression, Expression]:
    return (ends[0], build("-", (ends[1], number(1)))) if isinstance(value, Random) else ends


def converted(value: Random, dtype: str) -> Random:
    """A random number as another class of type: an integer range leaves out its upper end, a floating one has it."""
    low, high, floating = value.domain.low, value.domain.high, dtypes.is_float(dtype)
    if floating == (value.domain.kind != "integers") or low is None or high is None:
        return value
    if floating:
        last = build("-", (high, number(1)))
        return random_range("uniform", build("cast", (low,), dtype), build("cast", (last,), dtype))
    return random_range(
        "integers", build("cast", (low,), "i64"), build("+", (build("cast", (high,), "i64"), number(1)))
    )


def _is_integer(value: Value) -> bool:
    if isinstance(value, Random):
        return value.domain.kind == "integers"
    return isinstance(value, Scalar) and kind(value.expression) == INT


def _range(value: Value) -> tuple[Expression, Expression] | None:
    if isinstance(value, Scalar):
        return value.expression, value.expression
    if isinstance(value, Random) and value.domain.low is not None and value.domain.high is not None:
        return value.domain.low, value.domain.high
    return None


def _ends(
    op: str, left: tuple[Expression, Expression], right: tuple[Expression, Expression]
) -> tuple[Expression, Expression] | None:
    """Interval arithmetic for what is written in practice: scale by a positive number, shift."""
    if op == "+":
        return build("+", (left[0], right[0])), build("+", (left[1], right[1]))
    if op == "-":
        return build("-", (left[0], right[1])), build("-", (left[1], right[0]))
    if op == "*":
        if left[0] == left[1]:
            left, right = right, left
        scale = right[0].constant
        if right[0] != right[1] or not isinstance(scale, int | float):
            return None
        ends = build("*", (left[0], right[0])), build("*", (left[1], right[0]))
        return ends if scale >= 0 else (ends[1], ends[0])
    if op == "/" and right[0] == right[1]:
        divisor = right[0].constant
        if isinstance(divisor, int | float) and divisor > 0:
            return build("/", (left[0], right[0])), build("/", (left[1], right[0]))
    return None
