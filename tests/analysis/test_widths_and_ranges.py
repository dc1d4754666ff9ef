"""Integer types by the rules of C++, and bounds that can be proved; expected values by hand."""

import pytest

from agent.analysis.facts import Facts, analyse
from agent.analysis.ranges import most, never_negative
from agent.analysis.syntax import descendants, text
from agent.analysis.values import value
from agent.analysis.widths import integer_type
from agent.source.document import parse

HEAD = (
    "__global__ void k(float* x, int n, unsigned u, long long w, size_t z, unsigned char b, float f, "
    "const unsigned char* bytes) {\n"
)


def facts(body: str) -> Facts:
    document = parse((HEAD + body + "\n}\n").encode())
    return analyse(document, document.kernels[0])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n + 1", "i32"),
        ("n + u", "u32"),
        ("n * w", "i64"),
        ("u * w", "i64"),
        ("w + z", "u64"),
        ("b + b", "i32"),
        ("threadIdx.x / 32", "u32"),
        ("n << w", "i32"),
        ("(size_t)n * u", "u64"),
        ("static_cast<long>(n)", "i64"),
        ("0x7", "i32"),
        ("5000000000", "i64"),
        ("7ull", "u64"),
        ("-b", "i32"),
        ("n + f", None),
        ("n + missing", None),
        ("x[0]", None),
        ("bytes[3]", "u8"),
        ("bytes[3] + 1", "i32"),
        ("1.5f", None),
    ],
)
def test_the_type_of_an_expression(expression: str, expected: str | None) -> None:
    known = facts(f"auto r = {expression};")
    (declared,) = (symbol for symbol in known.symbols.all() if symbol.name == "r")
    assert integer_type(declared.init, known.symbols) == expected
    assert integer_type(declared.declarator, known.symbols) == expected


@pytest.mark.parametrize(
    ("start", "step", "index", "expected"),
    [
        ("threadIdx.x", "blockDim.x", "i", True),
        ("0", "1", "i * 4 + 3", True),
        ("0", "1", "i - 1", False),
        ("0", "1", "i % 4", True),
        ("0", "1", "(i - 9) & 3", True),
        ("0", "1", "(i - 9) / 3", False),
        ("n", "1", "i", False),
        ("0", "n", "i", False),
        ("4", "1", "i * n", False),
    ],
)
def test_what_is_never_negative(start: str, step: str, index: str, expected: bool) -> None:
    known = facts(f"for (int i = {start}; i < 100; i += {step}) x[{index}] = 0.0f;")
    (access,) = known.accesses
    assert access.index is not None
    assert never_negative(access.index, known.loops_around(access.node)) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n & 63", 63),
        ("n % 10", 9),
        ("(n & 7) * 2 + 1", 15),
        ("n & -2", None),
        ("n", None),
        ("min(n & 3, u)", 3),
        ("blockDim.x / 32", 32),
        ("threadIdx.x >> 5", 31),
        ("n / 4", None),
        ("-(n & 3)", None),
    ],
)
def test_the_most_that_it_can_be(expression: str, expected: int | None) -> None:
    known = facts(f"x[{expression}] = 0.0f;")
    (place,) = descendants(known.body, "subscript_expression")
    listing = place.child_by_field_name("indices")
    assert listing is not None and text(listing) == f"[{expression}]"
    assert most(value(listing.named_children[0], known.scope)) == expected
