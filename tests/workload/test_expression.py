"""Expressions: C's semantics, readable text that reads back, and hostile text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.workload.expression import PRECEDENCE, Expression, ExpressionError, build, kind, name, number, parse

# Values worked out by hand from the C standard (6.5), with n=1000, b=256, f=0.1 (a double).
C_VALUES = [
    ("(n + b - 1) / b", 4),
    ("-7 / 2", -3),
    ("7 / -2", -3),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("1 << 20", 1048576),
    ("-16 >> 2", -4),
    ("n * sizeof(float)", 4000),
    ("sizeof(unsigned long long) + sizeof(float4) + sizeof(half)", 26),
    ("ceil(n / (float)b)", 4.0),
    ("(n - 1) / b + 1", 4),
    ("n & ~31", 992),
    ("!(n == 3) && b > 5", 1),
    ("0 && 1 / 0", 0),
    ("1 || 1 / 0", 1),
    ("n > b ? n : b", 1000),
    ("(n > 0 ? 1 : 2.0) / 2", 0.5),
    ("static_cast<int>(3.99)", 3),
    ("(int)-3.99", -3),
    ("(unsigned char)300", 44),
    ("(unsigned)-1", 4294967295),
    ("0x1Fu + 010 + 0b11", 42),
    ("1'000'000", 1000000),
    ("1.0f / 3.0f", 0.3333333432674408),
    ("16777217 / 1.0f", 16777216.0),
    ("0.1f", 0.10000000149011612),
    ("std::max<int>(n, 3) + min(b, 2)", 1002),
    ("ceil_div(n, b) + std::abs(-3)", 7),
    ("log2f(1024.0f) + sqrt(16.0) + floor(2.7)", 16.0),
    ("a.b + c::d", 7),
    ("2 - 3 - 4", -5),
    ("2 * -3", -6),
    ("1 ? 2 : 0 ? 3 : 4", 2),
    ("true + false", 1),
    ("int(7.9) / 2", 3),
]
NAMES = {"n": 1000, "b": 256, "f": 0.1, "a.b": 3, "c::d": 4}


@pytest.mark.parametrize(("text", "expected"), C_VALUES)
def test_values_are_those_of_c(text: str, expected: int | float) -> None:
    value = parse(text).evaluate(NAMES)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found nothing"),
        ("n +", "expected a number"),
        ("(n", "expected `)`"),
        ("n b", "expected an operator"),
        ("n $ 2", "`$` has no meaning"),
        ("foo(3)", "`foo` is not a known function"),
        ("min(1)", "takes 2 arguments"),
        ("sizeof(Foo)", "sizeof"),
        ("x[3]", "`[` has no meaning"),
        ("__import__('os')", "has no meaning"),
        ("99999999999999999999999", "expected a number"),
        ("1e999", "expected a number"),
        ("(" * 5000, "characters"),
        ("(" * 500, "deeply nested"),
        ("-" * 500 + "1", "deeply nested"),
        ("+".join(["n"] * 900), "too deeply nested or too long"),
        ("1 ? " * 400, "deeply nested"),
    ],
)
def test_bad_text_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n / 0", "division by zero"),
        ("n % 0", "division by zero"),
        ("1.0 / 0.0", "division by zero"),
        ("1 << 200", "shift by 200"),
        ("m + 1", "`m` has no value"),
        ("(int)3000000000", "does not fit `int`"),
        ("(1 << 62) * 8", "64 bits"),
        ("1.5 % 2", "floating-point operand"),
        ("sqrt(-1.0)", "sqrt"),
        ("ceil_div(3, 0)", "ceil_div"),
        ("exp(100000.0)", "too large"),
    ],
)
def test_what_c_leaves_undefined_has_no_value(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text).evaluate(NAMES)
    assert words in str(raised.value)


BINARY = [op for op in PRECEDENCE if op != "?"]


def expressions() -> st.SearchStrategy[Expression]:
    numbers = st.integers(-1000, 1000).map(number) | st.floats(-1e6, 1e6, width=32).map(lambda v: number(v, True))
    leaves = numbers | st.sampled_from(["n", "m", "ns::k", "p->x"]).map(name) | st.floats(-1e9, 1e9).map(number)

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        binary = st.sampled_from(BINARY)
        return (
            st.tuples(binary, inner, inner).map(lambda t: build(t[0], t[1:]))
            | st.tuples(st.sampled_from(["neg", "not", "~"]), inner).map(lambda t: build(t[0], t[1:]))
            | st.tuples(st.just("?"), inner, inner, inner).map(lambda t: build(t[0], t[1:]))
            | st.tuples(st.sampled_from(["f32", "f64", "i32", "u8", "u64"]), inner).map(
                lambda t: build("cast", t[1:], t[0])
            )
            | st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: build("call", t[1:], t[0]))
            | st.tuples(st.sampled_from(["ceil", "sqrtf", "abs"]), inner).map(lambda t: build("call", t[1:], t[0]))
        )

    return st.recursive(leaves, grow, max_leaves=12)


def outcome(expression: Expression) -> tuple[str, object]:
    try:
        return "value", expression.evaluate({"n": 37, "m": -5, "ns::k": 3, "p->x": 8})
    except ExpressionError:
        return "error", None


@settings(max_examples=400, deadline=None)
@given(expressions())
def test_text_reads_back_as_the_same_expression(expression: Expression) -> None:
    assert parse(str(expression)) == expression
    assert hash(parse(str(expression))) == hash(expression)


@settings(max_examples=300, deadline=None)
@given(expressions())
def test_simplifying_and_substituting_keep_the_value(expression: Expression) -> None:
    value = outcome(expression)
    if value[0] == "value":
        assert outcome(expression.simplify()) == value
        told = expression.substitute({"n": number(37), "m": number(-5), "ns::k": number(3), "p->x": number(8)})
        assert outcome(told) == value and not told.names


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="nb01.f+-*/%<>=!&|?:(), xus\n\0é", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text).evaluate(NAMES)
    except ExpressionError as error:
        assert str(error)


@given(st.integers(-(2**31), 2**31), st.integers(-(2**31), 2**31).filter(bool))
def test_division_and_remainder_agree_with_exact_truncation(left: int, right: int) -> None:
    quotient = build("/", (number(left), number(right))).evaluate({})
    remainder = build("%", (number(left), number(right))).evaluate({})
    assert isinstance(quotient, int) and isinstance(remainder, int)
    assert quotient * right + remainder == left
    assert abs(remainder) < abs(right) and (remainder == 0 or (remainder < 0) == (left < 0))


def test_kinds_follow_the_usual_conversions() -> None:
    from agent.workload.arithmetic import DOUBLE, FLOAT, INT

    told = {"n / 2": INT, "n / 2.0f": FLOAT, "n / 2.0": DOUBLE, "n < 2.0": INT, "ceil(n)": DOUBLE, "ceilf(n)": FLOAT}
    assert {text: kind(parse(text)) for text in told} == told


def test_names_are_those_that_occur() -> None:
    assert parse("a + min(b, c ? d : 3)").names == {"a", "b", "c", "d"}


@pytest.mark.parametrize("text", ["((uint4)0)", "(float4)(n)", "static_cast<int4>(3)"])
def test_a_vector_is_no_number(text: str) -> None:
    with pytest.raises(ExpressionError, match="is no number"):
        parse(text).evaluate({"n": 1})


def test_an_infinity_of_single_precision_reads_back() -> None:
    huge = build("*", [number(2.0**100, True), number(2.0**100, True)])
    assert parse(str(huge)) == huge and huge.evaluate({}) == float("inf")
