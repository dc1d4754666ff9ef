"""Forms from numbers: what was generated comes back, and what is no such form is refused."""

import itertools
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.inference.probing.fitting import fit
from agent.inference.probing.polynomials import substitute, written

Numbers = Mapping[str, int]


def samples(*names: str) -> list[dict[str, int]]:
    base = dict(zip(names, (7, 11, 5, 9), strict=False))
    found = [base]
    found += [{**base, name: value} for name in names for value in (13, 17, 129, 259, 384, 514, 1029)]
    for chosen in itertools.product((0, 6), repeat=len(names)):
        found.append({name: base[name] + more for name, more in zip(names, chosen, strict=True)})
    rng = random.Random(1)
    return [*found, *({name: rng.randint(3, 60) for name in names} for _ in range(6))]


CASES: list[tuple[str, tuple[str, ...], Callable[..., int]]] = [
    ("n", ("n",), lambda n: n),
    ("12", ("n",), lambda n: 12),
    ("m * k", ("m", "k"), lambda m, k: m * k),
    ("(h + 2) * (w + 2)", ("h", "w"), lambda h, w: (h + 2) * (w + 2)),
    ("b * c * (h + 2) * w", ("b", "c", "h", "w"), lambda b, c, h, w: b * c * (h + 2) * w),
    ("(n * n + n) / 2", ("n",), lambda n: n * (n + 1) // 2),
    ("rows * ld + cols - ld", ("rows", "cols", "ld"), lambda rows, cols, ld: (rows - 1) * ld + cols),
    ("ceil_div(n, 128)", ("n",), lambda n: -(-n // 128)),
    ("ceil_div(n - 2, 128)", ("n",), lambda n: -(-(n - 2) // 128)),
    ("ceil_div(n, 128) * 128", ("n",), lambda n: -(-n // 128) * 128),
    ("n / 4 * 4", ("n",), lambda n: n // 4 * 4),
    ("ceil_div(r * c, 128)", ("r", "c"), lambda r, c: -(-r * c // 128)),
    ("r * ceil_div(c, 32) + 1", ("r", "c"), lambda r, c: r * -(-c // 32) + 1),
]


@pytest.mark.parametrize(("text", "names", "function"), CASES, ids=[case[0] for case in CASES])
def test_forms(text: str, names: tuple[str, ...], function: Callable[..., int]) -> None:
    tried = samples(*names)
    found = fit(tried, [function(**one) for one in tried], (128, 32, 4))
    assert found is not None and str(found.expression) == text
    far = {name: 1000 + 37 * index for index, name in enumerate(names)}
    assert found.at(far) == function(**far)


@pytest.mark.parametrize(
    ("names", "function"),
    [
        (("n",), lambda n: n.bit_length()),
        (("n", "m"), lambda n, m: max(n, m)),
        (("n",), lambda n: n if n < 500 else n + 1),
        (("n", "m"), lambda n, m: n * m + (n % 7 == 3)),
        (("n",), lambda n: min(n, 300)),
    ],
)
def test_what_is_no_such_form_is_refused(names: tuple[str, ...], function: Callable[..., int]) -> None:
    tried = samples(*names)
    assert fit(tried, [function(**one) for one in tried], (128, 32, 4)) is None


def test_a_part_that_was_seen_at_whole_parts_only_is_rounded_up() -> None:
    tried = [{"n": 256 * count} for count in range(1, 14)]
    found = fit(tried, [one["n"] // 256 for one in tried])
    assert found is not None and str(found.expression) == "ceil_div(n, 256)" and found.at({"n": 700}) == 3


def test_a_form_that_fails_on_what_is_held_out_is_none() -> None:
    tried = samples("n")
    seen = [one["n"] for one in tried]
    seen[-1] += 1
    assert fit(tried, seen, (128,)) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-4, 4), min_size=8, max_size=8).filter(lambda factors: any(factors[1:])),
    st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]),
)
@example([-1, 0, 0, 0, 0, 0, 0, 1], ("a",))
def test_every_polynomial_comes_back(factors: list[int], names: tuple[str, ...]) -> None:
    subsets = [chosen for count in range(len(names) + 1) for chosen in itertools.combinations(names, count)]

    def value(at: Numbers) -> int:
        total = 0
        for factor, chosen in zip(factors, subsets, strict=False):
            term = factor
            for name in chosen:
                term *= at[name]
            total += term
        return total

    tried = samples(*names)
    found = fit(tried, [value(one) for one in tried])
    assert found is not None
    for at in ({"a": 101, "b": 77, "c": 53}, {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 900, "c": 31}):
        assert found.at(at) == value(at)


def test_a_count_of_blocks_becomes_a_part_of_a_size() -> None:
    # (16 g - 1) n + n elements at g blocks: with g = n / 16 that is n * n
    tried = [{"n": n, "g": g} for n in (5, 7, 11, 13) for g in (1, 2, 3, 5)]
    found = fit(tried, [16 * one["g"] * one["n"] for one in tried])
    assert found is not None and found.polynomial is not None
    assert str(written(substitute(found.polynomial, "g", "n", 16))) == "n * n"
