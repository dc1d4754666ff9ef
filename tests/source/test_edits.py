"""Edits, finding a kernel again, and diffs that give the new file byte by byte."""

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.source.diff import unified
from agent.source.document import SourceError, parse
from agent.source.edits import Edit, apply_edits, reanchor, splice
from agent.source.line_ends import with_newlines
from agent.source.span import Span
from tests.source.strategies import texts

TWO = b"__global__ void a(int* p) {\n  p[0] = 1;\n}\n\n__global__ void b(int* p) {\n  p[0] = 2;\n}\n"


def test_edits_refer_to_the_text_as_it_is():
    edits = [Edit(Span(4, 5), b"E"), Edit(Span(0, 1), b""), Edit(Span(2, 2), b"++")]
    assert apply_edits(b"abcdef", edits) == b"b++cdEf"


def test_overlapping_edits_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        apply_edits(b"abcdef", [Edit(Span(0, 3), b""), Edit(Span(2, 4), b"")])
    with pytest.raises(ValueError, match="outside"):
        apply_edits(b"abc", [Edit(Span(2, 9), b"")])


def test_a_kernel_is_found_again_after_edits_elsewhere():
    old = parse(TWO)
    new = parse(b"// more\nint x;\n" + TWO.replace(b"p[0] = 1", b"p[1] = 1"))
    found = reanchor(old.kernel("b"), old, new)
    assert found == new.kernel("b")
    assert reanchor(old.kernel("a"), old, new) is None, "its text changed"


def test_a_kernel_that_is_gone_renamed_or_moved_to_another_namespace_is_not_found():
    old = parse(TWO)
    for changed in (b"", TWO.replace(b" b(", b" c("), b"namespace n {\n" + TWO + b"}\n"):
        assert reanchor(old.kernel("b"), old, parse(changed)) is None


def test_equal_kernels_are_told_apart_by_their_order():
    code = b"#if A\n__global__ void k() {}\n#else\n__global__ void k() {}\n#endif\n"
    old, new = parse(code), parse(b"\n\n" + code)
    for place in (0, 1):
        assert reanchor(old.kernels[place], old, new) == new.kernels[place]


def test_splice_replaces_the_definition_and_nothing_else():
    document = parse(TWO, "f.cu")
    code = "__global__ void b(int* p) {\n  p[0] = 3;\n}"
    assert splice(document, document.kernel("b"), code).text == TWO.replace(b"= 2", b"= 3")


def test_splice_takes_the_line_ends_of_the_file():
    text = TWO.replace(b"\n", b"\r\n")
    document = parse(text)
    spliced = splice(document, document.kernel("a"), "__global__ void a(int* p) {\n  p[0] = 4;\n}")
    assert spliced.text == text.replace(b"= 1", b"= 4")


def test_splice_refuses_a_kernel_of_another_document():
    document = parse(TWO)
    with pytest.raises(SourceError, match="does not stand"):
        splice(parse(b"\n" + TWO), document.kernel("a"), "")


def test_the_diff_in_words():
    old, new = parse(TWO, "src/f.cu"), parse(TWO.replace(b"= 2", b"= 3"), "src/f.cu")
    assert unified(old, new) == (
        "--- a/src/f.cu\n+++ b/src/f.cu\n@@ -3,5 +3,5 @@\n }\n \n __global__ void b(int* p) {\n"
        "-  p[0] = 2;\n+  p[0] = 3;\n }\n"
    )
    assert unified(old, old) == ""


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")


def applied(folder, name: str, old: bytes, new: bytes) -> bytes:
    place = folder / name
    place.write_bytes(old)
    diff = unified(parse(old, name), parse(new, name)).encode("utf-8", "surrogateescape")
    if diff:
        command = ["git", "apply", "--whitespace=nowarn", "-p1", "-"]
        done = subprocess.run(command, cwd=folder, input=diff, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr, diff)
    return place.read_bytes()


@needs_git
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts, texts, texts, st.sampled_from(["f.cu", "a b.cu"]))
def test_splice_then_diff_is_byte_faithful(tmp_path, before, inside, after, name):
    text = with_newlines(before.replace(b"\0", b"") + b"\n" + TWO + after.replace(b"\0", b""))
    document = parse(text, name)
    kernel = next((k for k in document.kernels if k.name == "b"), None)
    if kernel is None:
        return
    spliced = splice(document, kernel, inside.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    assert spliced.text[: kernel.span.start] == text[: kernel.span.start]
    assert spliced.text.endswith(text[kernel.span.end :])
    assert applied(tmp_path, name, text, spliced.text) == spliced.text


@needs_git
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"x\fy\n\x0b\n", b"x\fz\n\x0b\n"),
        (b"\xe2\x80\xa8a\n\xc2\x85b\nc\n", b"\xe2\x80\xa8a\n\xc2\x85B\nc\n"),
        (b"\xff\xfe\n", b"\xff\xfd\n"),
        (b"x\n" * 9, b"x\n" * 5),
        (b"x\n" * 5, b"x\n" * 9),
        (b"", b"x\n"),
        (b"x\n", b""),
        (b"".join(b"%d\n" % i for i in range(40)), b"".join(b"%d\n" % (i // 7 * 7) for i in range(40))),
        (b"x\n" * 50 + b"y\n" + b"x\n" * 50, b"x\n" * 49 + b"y\n" + b"x\n" * 51),
    ],
)
def test_diffs_apply(tmp_path, old, new):
    assert applied(tmp_path, "f.cu", old, new) == new
