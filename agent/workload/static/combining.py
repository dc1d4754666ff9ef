"""``left op right`` for what host expressions hold: numbers, pointers, texts, random numbers."""

from agent.workload.expression import PRECEDENCE, build, number
from agent.workload.static import arguments, hints, integers, options
from agent.workload.static.state import Facts
from agent.workload.static.values import ONE, ZERO, Pointer, Random, Ref, Scalar, Text, Unknown, Value


def combine(op: str, left: Value, right: Value, facts: Facts | None = None) -> Value:
    """``left op right`` for numbers, pointers and random numbers. With ``facts`` numbers wrap as C's do."""
    if isinstance(left, Text) and isinstance(right, Text) and (told := options.operator(op, left, right)) is not None:
        return told
    if isinstance(left, Random) or isinstance(right, Random):
        return hints.combine_random(op, left, right)
    if arguments.is_argv(left) or arguments.is_argv(right):
        return Unknown("it is a part of the command line")
    if isinstance(left, Unknown):
        return left
    if isinstance(right, Unknown):
        return right
    if isinstance(left, Pointer | Ref) or isinstance(right, Pointer | Ref):
        return _pointer_arithmetic(op, left, right)
    if isinstance(left, Scalar) and isinstance(right, Scalar) and op in PRECEDENCE:
        return (
            Scalar(build(op, (left.expression, right.expression)))
            if facts is None
            else integers.arithmetic(op, left, right, facts)
        )
    return Unknown(f"`{op}` of what is no number")


def _pointer_arithmetic(op: str, left: Value, right: Value) -> Value:
    if op in ("==", "!="):
        null = ZERO in (left, right)
        return Scalar(number(int(op == "!="))) if null else Unknown("two pointers are compared")
    if op in ("&&", "||"):
        first, second = (ONE if isinstance(part, Pointer | Ref) else part for part in (left, right))
        return combine(op, first, second)
    if op == "+" and isinstance(right, Pointer) and isinstance(left, Scalar):
        left, right = right, left
    if op in "+-" and isinstance(left, Pointer) and isinstance(right, Scalar):
        return Pointer(left.memory, build(op, (left.offset, right.expression)), left.element)
    return Unknown("pointer arithmetic that is not followed")
