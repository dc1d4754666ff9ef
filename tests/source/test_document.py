"""Reading files: what is refused, and in which words."""

import pytest

from agent.analysis.launches import launches_of
from agent.source.document import SourceError, parse, read
from agent.source.nodes import kernel_node, node_text
from agent.source.slicing import device_slice
from agent.source.span import Span


def test_read_gives_the_bytes_of_the_file(tmp_path):
    place = tmp_path / "a b.cu"
    place.write_bytes(b"\xef\xbb\xbf__global__ void k() {}\r\n// \xff\xe9\f\n")
    document = read(place)
    assert document.path == str(place)
    assert document.text == place.read_bytes()
    assert [k.name for k in document.kernels] == ["k"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF\0\0", "binary"),
        ("__global__ void k() {}".encode("utf-16"), "save it as UTF-8"),
        (b"\xfe\xff\0a\0b", "UTF-16"),
    ],
)
def test_what_is_no_cuda_text_is_refused(tmp_path, content, message):
    place = tmp_path / "x.cu"
    place.write_bytes(content)
    with pytest.raises(SourceError, match=message):
        read(place)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        read(tmp_path / "missing.cu")
    with pytest.raises(SourceError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        read("a\0b.cu")
    with pytest.raises(SourceError, match="cannot be read"):
        read(tmp_path / ("x" * 5000))


def test_empty_and_strange_texts_have_no_kernels():
    for text in (b"", b"\0", b"\n", b"\xff", b"__global__", b"__global__ void", "\U0001f600".encode()):
        document = parse(text)
        assert document.kernels == ()
        assert document.launches == ()
        assert document.line(len(text)) == text.count(b"\n") + 1


def test_documents_are_values():
    assert parse(b"int x;", "a") == parse(b"int x;", "a")
    assert hash(parse(b"int x;", "a")) == hash(parse(b"int x;", "a"))
    assert parse(b"int x;", "a") != parse(b"int y;", "a")


def test_node_text_is_what_the_user_wrote():
    document = parse(b"__global__ void __maxnreg__(64) k(float* __restrict p) { p[0] = 1; }")
    node = kernel_node(document, document.kernels[0])
    assert "__maxnreg__(64)" in node_text(document, node)
    assert node.type == "function_definition"
    assert document.slice_text(Span(0, 10)) == "__global__"


def test_nested_kernels_are_told_apart():
    document = parse(b"struct S { static __global__ void k() {} };\n__global__ void j() {}")
    for kernel in document.kernels:
        assert node_text(document, kernel_node(document, kernel).child_by_field_name("body")) == "{}"
        assert kernel_node(document, kernel).child_by_field_name("body").start_byte == kernel.body.start


HOSTILE = {
    "braces": b"void f() {" + b"{" * 20000 + b"k<<<1, 2>>>();" * 50 + b"}" * 20001,
    "parentheses": b"__global__ void k(int x) { x = " + b"(" * 20000 + b"x" + b")" * 20000 + b"; }",
    "sum": b"__global__ void k(int x) { x = " + b"x + " * 30000 + b"x; }",
    "conditions": b"#if A\n" * 2000 + b"__global__ void k(int x) {}\n" + b"#endif\n" * 2000,
    "namespaces": b"namespace a {" * 2000 + b"__global__ void k(int x) {}\n" + b"}" * 2000,
    "long line": b"__global__ void k(int x) { " + b"x += 1; " * 2500 + b"}",
    "kernels": b"__global__ void k(float* __restrict p) { CHECK(f(1))\n p[0] = 1; }\n" * 1500,
    "errors": b"__global__ void k(int x { " * 3000,
    "templates": b"template <typename T> " * 3000 + b"__global__ void k(T x) {}",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_read_and_sliced_or_refused(text):
    document = parse(text)
    assert all(one.span.end <= len(text) for one in document.launches)
    for kernel in document.kernels[:2]:
        try:
            assert device_slice(document, [kernel.name]).text
        except SourceError as error:
            assert str(error)


def test_what_was_read_in_haste_is_not_taken_for_what_was_read_with_care():
    """What is computed of a document is remembered under it, and hasty kernels and launches are others."""
    text = b"__global__ void k() {}\nvoid run() {\n  k<<<1, 2>>>();\n}\n/* */ }\n"
    base = parse(text)
    open_ = text.replace(b"  k<<<1, 2>>>();", b"  /* k<<<1, 2>>>();")
    hasty, careful = parse(open_, "", base, hasty=True), parse(open_, "", base)
    assert hasty.hasty and hasty.text == careful.text
    assert len(hasty.launches) != len(careful.launches)
    assert hasty != careful and careful != hasty and hasty == hasty
    assert careful == parse(open_) and careful != parse(open_, "other.cu") and careful != open_
    assert len({hasty, careful, parse(open_)}) == 2
    for document in (hasty, careful):
        kernel = document.kernels[0]
        assert len(launches_of(document, kernel)) == sum(site.damage is None for site in document.launches)
