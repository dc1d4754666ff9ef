"""A lone carriage return ends a line: what is read, where it stands, and what is written back."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent.source.document import parse
from agent.source.line_ends import ended_as, restored, with_newlines
from agent.source.slicing import device_slice
from tests.source.strategies import texts

LINES = b"""\
// a comment
#define FACTOR 3
__device__ float twice(float v) { return 2 * v; }
__global__ void scale(float* x) {
    // note
    x[threadIdx.x] = twice(x[threadIdx.x]) * FACTOR;
}
void run(float* x) { scale<<<1, 32>>>(x); }
"""


def test_a_file_with_carriage_returns_alone_is_read_like_any_other():
    plain, old = parse(LINES, "a.cu"), parse(LINES.replace(b"\n", b"\r"), "a.cu")
    assert old.kernels == plain.kernels and [kernel.line for kernel in old.kernels] == [4]
    assert old.launches == plain.launches and [site.line for site in old.launches] == [8]
    assert device_slice(old, ["scale"]).text == device_slice(plain, ["scale"]).text


def test_lines_are_counted_as_nvcc_counts_them_whatever_ends_them():
    document = parse(b"// a\r// b\r\n// c\n\r\r__global__ void k() {}\n")
    assert [kernel.line for kernel in document.kernels] == [6]


@given(texts, st.lists(st.sampled_from([b"\r", b"\n", b"\r\n"]), max_size=4).map(b"x".join), st.floats(0, 1))
def test_lengths_stay_and_what_was_written_over_a_file_is_that_file(text, more, where):
    at = round(where * len(text))
    raw = text[:at] + more + text[at:]
    read = with_newlines(raw)
    assert len(read) == len(raw) and re.search(rb"\r(?!\n)", read) is None
    assert read.splitlines() == raw.splitlines()
    assert restored(raw, read) == raw
    assert parse(raw).text == read


def test_a_change_is_written_with_the_ends_that_the_file_has():
    assert restored(b"a\rb\rc\r", b"a\nnew\nc\n") == b"a\rnew\rc\r"
    assert restored(b"a\rb\nc\n", b"a\nnew\nmore\nc\n") == b"a\rnew\nmore\nc\n"
    assert restored(b"a\r\nb\r\n", b"new\r\nb\r\n") == b"new\r\nb\r\n"
    assert ended_as(b"a\rb\r", b"x\ny") == b"x\ry" and ended_as(b"a\nb\rc\n", b"x\ny") == b"x\ny"
