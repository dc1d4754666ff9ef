"""Polynomials agree with plain integer arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from agent.analysis.affine import Atom, Poly, number, unknown

NAMES = ("a", "b", "c")
VALUES = st.fixed_dictionaries({name: st.integers(-9, 9) for name in NAMES})


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """An expression over a, b, c as Python (and C) text."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(NAMES) | st.integers(-4, 4).map(lambda value: f"({value})"))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    return f"({left} {draw(st.sampled_from('+-*'))} {right})"


class Term:
    """Lets Python's own evaluation of the text build a polynomial."""

    def __init__(self, poly: Poly) -> None:
        self.poly = poly

    def __add__(self, other: object) -> "Term":
        return Term(self.poly + polynomial(other))

    def __sub__(self, other: object) -> "Term":
        return Term(self.poly - polynomial(other))

    def __mul__(self, other: object) -> "Term":
        return Term(self.poly * polynomial(other))

    def __radd__(self, other: object) -> "Term":
        return Term(polynomial(other) + self.poly)

    def __rsub__(self, other: object) -> "Term":
        return Term(polynomial(other) - self.poly)

    def __rmul__(self, other: object) -> "Term":
        return Term(polynomial(other) * self.poly)


def polynomial(value: object) -> Poly:
    if isinstance(value, Term):
        return value.poly
    assert isinstance(value, int)
    return number(value)


def built(text: str) -> Poly:
    return polynomial(eval(text, {name: Term(unknown(Atom(name))) for name in NAMES}))


@given(expressions(), VALUES)
def test_evaluation_agrees_with_integers(text: str, values: dict[str, int]) -> None:
    assert built(text).evaluate(values) == eval(text, dict(values))


@given(expressions(), VALUES)
def test_a_polynomial_is_its_coefficient_times_the_name_plus_the_rest(text: str, values: dict[str, int]) -> None:
    poly = built(text)
    slope = poly.coefficient("a")
    if slope is None:
        assert any(product.count(Atom("a")) > 1 for product, _ in poly.terms)
        return
    rest = poly.without("a").evaluate(values)
    by = slope.evaluate(values)
    assert rest is not None and by is not None
    assert poly.evaluate(values) == by * values["a"] + rest


@given(expressions(), expressions(), VALUES)
def test_substitution_is_evaluation_at_the_substitute(text: str, other: str, values: dict[str, int]) -> None:
    inner = built(other).evaluate(values)
    assert inner is not None
    assert built(text).substitute("a", built(other)).evaluate(values) == built(text).evaluate({**values, "a": inner})


@given(expressions(), expressions())
def test_equal_polynomials_compare_equal(one: str, two: str) -> None:
    assert built(f"({one} + {two}) * ({one} - {two})") == built(f"{one} * {one} - {two} * {two}")


def test_a_name_hidden_in_another_unknown_has_no_coefficient() -> None:
    hidden = unknown(Atom("(threadIdx.x)/(3)", frozenset({"threadIdx.x"})))
    assert (hidden * number(4)).coefficient("threadIdx.x") is None
    assert hidden.depends == {"threadIdx.x"}


def test_evaluation_lacks_nothing_silently() -> None:
    assert unknown(Atom("a")).evaluate({}) is None
    assert number(7).constant == 7 and unknown(Atom("a")).constant is None and Poly().constant == 0
