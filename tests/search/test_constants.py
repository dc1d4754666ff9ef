"""A constant that a rewrite needs with another value keeps its name."""

import pytest

from agent.search.constants import with_constants
from agent.search.host.named import with_names
from agent.source.document import parse

TEXT = """\
const int THREADS = 256;

__global__ void k(const float* x, float* y) {
    __shared__ float s[THREADS];
    s[threadIdx.x] = x[0];
    y[0] = s[1];
}

void f(float* x, float* y, int rows) {
    k<<<rows, THREADS>>>(x, y);
}
"""
WRITTEN = TEXT.replace("s[THREADS]", "s[1024]").replace("void k", "void __launch_bounds__(1024) k")
KEPT = TEXT.replace("= 256", "= 1024").replace("void k", "void __launch_bounds__(THREADS) k")


def kept(before: str, written: str, launched: str) -> str:
    old = parse(before.encode())
    made = with_constants(old, old.kernel("k"), parse(written.encode()), lambda: parse(launched.encode()))
    return made.text.decode()


def test_it_is_declared_with_the_new_value_and_used_as_before() -> None:
    assert kept(TEXT, WRITTEN, WRITTEN.replace("<<<rows, THREADS", "<<<rows, 1024")) == KEPT
    edited = parse(KEPT.replace("<<<rows, THREADS", "<<<rows, 1024").encode())
    assert with_names(parse(KEPT.encode()), edited).text.decode() == KEPT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<<<rows, 1024>>>", "<<<rows, 512>>>"),
        ("<<<rows, 1024>>>", "<<<rows, n>>>"),
        ("    k<<<", "    use(THREADS);\n    k<<<"),
        ("<<<rows, 1024>>>", "<<<rows, THREADS>>>"),
    ],
)
def test_where_its_places_hold_other_things_or_it_is_used_elsewhere_it_stays(old: str, new: str) -> None:
    launched = WRITTEN.replace("<<<rows, THREADS", "<<<rows, 1024")
    assert kept(TEXT, WRITTEN, launched.replace(old, new)) == WRITTEN


@pytest.mark.parametrize("declared", ["int THREADS = 256;", "#define THREADS 256", "const int THREADS = 8 * 32;"])
def test_what_is_no_plain_number_with_a_name_stays(declared: str) -> None:
    before, written = (text.replace("const int THREADS = 256;", declared) for text in (TEXT, WRITTEN))
    assert kept(before, written, written.replace("<<<rows, THREADS", "<<<rows, 1024")) == written


def test_an_array_of_another_extent_or_none_leaves_it() -> None:
    for written in (TEXT.replace("s[THREADS]", "s[1024 + 1]"), TEXT.replace("    __shared__ float s[THREADS];\n", "")):
        assert kept(TEXT, written, written.replace("<<<rows, THREADS", "<<<rows, 1024")) == written
