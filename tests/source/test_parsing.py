"""An incremental parse is a parse from scratch, whatever is edited."""

from hypothesis import given, settings

from agent.source.document import Document, parse
from tests.source.same import shape
from tests.source.strategies import clean_texts, edits, texts


def assert_same(incremental: Document, scratch: Document) -> None:
    assert str(incremental.tree.root_node) == str(scratch.tree.root_node)
    assert shape(incremental) == shape(scratch)
    assert incremental.blanks == scratch.blanks
    assert incremental.kernels == scratch.kernels
    assert incremental.launches == scratch.launches


@settings(max_examples=150, deadline=None)
@given(texts, edits)
def test_any_edit_sequence_gives_the_tree_of_a_parse_from_scratch(text, changes):
    check_edits(text, changes)


@settings(max_examples=150, deadline=None)
@given(clean_texts, edits)
def test_edits_of_sound_files_too(text, changes):
    check_edits(text, changes)


def check_edits(text, changes):
    document = parse(text)
    for where, gone, new in changes:
        at = int(where * len(document.text))
        edited = document.text[:at] + new + document.text[at + gone :]
        before = shape(document)
        incremental = parse(edited, "", document)
        assert_same(incremental, parse(edited))
        assert shape(document) == before, "the old document must not change"
        document = incremental


def test_an_edit_far_away_changes_what_is_blanked():
    body = b"MY int f() { return 1; }\n" * 50
    before = parse(b"#define NY __host__ __device__\n" + body)
    assert not before.blanks
    after = parse(b"#define MY __host__ __device__\n" + body, "", before)
    assert_same(after, parse(after.text))
    assert not after.tree.root_node.has_error
    assert len(after.blanks) == 50


def test_a_sound_file_is_parsed_incrementally_and_stays_equal():
    text = b"".join(b"__global__ void k%d(float* x) { x[%d] = 1.f; }\n" % (i, i) for i in range(300))
    document = parse(text)
    for at in (17, len(text) // 2, len(text) - 3):
        edited = text[:at] + b" " + text[at:]
        assert_same(parse(edited, "", document), parse(edited))


def test_every_kind_of_line_end_counts_as_one_line():
    document = parse(b"\r\n\r\n\f__global__ void k(int* p)\r\n{\r\n}\r\n\r__global__ void j() {}")
    assert [(k.name, k.line) for k in document.kernels] == [("k", 3), ("j", 7)]
    assert document.line(0) == 1
    assert document.line(len(document.text)) == 7


def test_a_byte_order_mark_is_no_code():
    document = parse(b"\xef\xbb\xbf__global__ void k() {}")
    assert not document.tree.root_node.has_error
    assert document.kernels[0].span.start == 3
