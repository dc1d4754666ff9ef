"""Which names of a kernel are its place in the grid, and how they make it up."""

import pytest

from agent.analysis.affine import Atom, number, unknown
from agent.analysis.facts import analyse
from agent.analysis.patterns.coordinates import Coordinates, coordinates, quotient
from agent.source.document import parse


def found(definitions: str, use: str) -> Coordinates | str:
    text = f"__global__ void k(float* y, int m, int n, int w, int h) {{\n{definitions}\ny[{use}] = 1.0f;\n}}\n"
    document = parse(text.encode(), "test.cu")
    return coordinates(analyse(document, document.kernels[0], {"blockDim.x": 64}))


def digits(answer: Coordinates | str) -> list[tuple[str, str, bool, str, str]]:
    """(name, axis, counts threads, low, extent) of each digit."""
    assert isinstance(answer, Coordinates), answer
    return [(one.name, one.axis, one.threads, str(one.low), str(one.extent)) for one in answer.digits]


def test_whole_places() -> None:
    answer = found(
        "int a = blockIdx.x * 64 + threadIdx.x; int b = threadIdx.y + blockIdx.y * blockDim.y; int c = blockIdx.z;",
        "a + b + c",
    )
    assert digits(answer) == [
        ("a", "x", True, "1", "None"),
        ("b", "y", True, "1", "None"),
        ("c", "z", False, "1", "None"),
    ]


def test_an_index_in_three_digits() -> None:
    """at = (z * h + y) * w + x, taken apart again."""
    answer = found(
        "int at = blockIdx.x * blockDim.x + threadIdx.x;\nint x = at % w; int y = at / w % h; int z = at / (w * h);",
        "x + y + z + at",
    )
    assert digits(answer) == [
        ("x", "x", True, "1", "w"),
        ("y", "x", True, "w", "h"),
        ("z", "x", True, "h*w", "None"),
    ]
    assert isinstance(answer, Coordinates) and [one.name for one in answer.places] == ["at"]
    assert [one.name for one in answer.of(answer.places[0].symbol)] == ["x", "y", "z"]


def test_a_remainder_by_subtraction() -> None:
    answer = found("int at = blockIdx.x * 64 + threadIdx.x; int r = at / n; int c = at - r * n;", "r + c")
    assert digits(answer) == [("c", "x", True, "1", "n"), ("r", "x", True, "n", "None")]


def test_names_in_between_are_no_coordinates() -> None:
    answer = found("int t = threadIdx.x, b = blockIdx.x; int at = b * 64 + t;", "at")
    assert digits(answer) == [("at", "x", True, "1", "None")]
    assert isinstance(answer, Coordinates) and {one.name for one in answer.declared} == {"t", "b", "at"}


@pytest.mark.parametrize(
    ("definitions", "use", "words"),
    [
        ("int at = blockIdx.x * 32 + threadIdx.x;", "at", "no place in the grid"),
        ("int at = blockIdx.x * 64 + threadIdx.x; at += n;", "at", "outside the definition"),
        ("int at = blockIdx.x * 64 + threadIdx.x; int c = at % n;", "c", "does not make up the whole"),
        ("int at = blockIdx.x * 64 + threadIdx.x; int c = at % n, r = at / m;", "c + r", "does not make up the whole"),
        ("int at = blockIdx.x * 64 + threadIdx.x;", "at + threadIdx.x", "outside the definition"),
        ("int at = blockIdx.x * 64 + threadIdx.x; int b = blockIdx.x;", "at + b", "used by themselves"),
        ("int at = 2 * (blockIdx.x * 64 + threadIdx.x);", "at", "no place in the grid"),
    ],
)
def test_what_is_no_place(definitions: str, use: str, words: str) -> None:
    answer = found(definitions, use)
    assert isinstance(answer, str) and words in answer


def test_quotients_come_out_even_or_not_at_all() -> None:
    n, m = (unknown(Atom(name)) for name in "nm")
    assert quotient(number(6) * n * m + number(4) * m, number(2) * m) == number(3) * n + number(2)
    assert quotient(n * m, n * n) is None and quotient(number(3) * n, number(2) * n) is None
    assert quotient(n + m, n + m) == number(1) and quotient(n, n + m) is None
