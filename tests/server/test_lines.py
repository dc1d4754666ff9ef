"""Offsets and positions against a count of our own, in every encoding."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from agent.source.span import Span
from cuda_lsp.lines import LineIndex, encoded, mended

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
CHARACTERS = "ab\t {};/\r\n\f\v\x1c\x85\u2028\u2029é\u0301漢\ufeff\U0001f600\U00010000"
texts = st.text(alphabet=CHARACTERS, max_size=40)


def units(text: str, encoding: str) -> int:
    return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2, "utf-32": len(text)}[encoding]


def positions(text: str, encoding: str) -> list[tuple[int, types.Position]]:
    """Every index between two characters with its position, counted character by character."""
    found, line, column, index = [(0, types.Position(0, 0))], 0, 0, 0
    for piece in re.findall(r"\r\n|[\s\S]", text):
        index += len(piece)
        if piece in ("\n", "\r", "\r\n"):
            line, column = line + 1, 0
        else:
            column += units(piece, encoding)
        found.append((index, types.Position(line, column)))
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=200)
@given(text=texts)
def test_positions_and_offsets_are_inverse(encoding, text):
    lines = LineIndex(text.encode(), encoding)
    for index, position in positions(text, encoding):
        offset = len(text[:index].encode())
        assert lines.offset_of(position) == offset
        assert lines.position_of(offset) == position


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=200)
@given(text=texts, line=st.integers(0, 50), column=st.integers(0, 60))
def test_any_position_gives_a_place_between_characters(encoding, text, line, column):
    lines = LineIndex(text.encode(), encoding)
    offset = lines.offset_of(types.Position(line, column))
    assert 0 <= offset <= len(text.encode())
    text.encode()[:offset].decode()  # no character is cut
    if line < len(lines.starts):
        assert lines.position_of(offset).line == line, "a column past the end of a line stays on it"
        assert lines.position_of(offset).character <= column
    else:
        assert offset == len(text.encode())


def test_nothing_but_line_feeds_and_carriage_returns_ends_a_line():
    text = "a\fb\vc\x1cd\x85e\u2028f\u2029g\rh\r\ni\nj"
    assert [text.encode()[start : start + 1] for start in LineIndex(text.encode()).starts] == [b"a", b"h", b"i", b"j"]


def test_the_end_of_a_text_that_ends_a_line_is_a_line():
    assert LineIndex(b"").starts == [0]
    assert LineIndex(b"a\n").starts == [0, 2]
    assert LineIndex(b"a\r").starts == [0, 2]
    assert LineIndex(b"a").starts == [0]


def test_a_range_that_ends_before_it_begins_is_empty():
    lines = LineIndex(b"abc\ndef\n")
    assert lines.span_of(types.Range(types.Position(1, 1), types.Position(0, 1))) == Span(5, 5)


def test_halves_of_a_character_become_one_when_they_meet():
    half, other = encoded("\ud83d"), encoded("\ude00")
    assert mended(half + b"x" + other) == half + b"x" + other
    assert mended(half + other) == "\U0001f600".encode()
    lines = LineIndex(half + b"x")
    assert lines.position_of(3) == types.Position(0, 1)


@settings(max_examples=400)
@given(text=texts, changes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), texts), max_size=4))
def test_the_lines_after_an_edit_are_those_of_the_whole_text(text, changes):
    lines = LineIndex(text.encode())
    for start, gone, new in changes:
        start = min(start, len(text))
        before, after = text[:start].encode(), text[start + gone :].encode()
        span = Span(len(before), len(lines.text) - len(after))
        lines, text = lines.edited(span, new.encode()), text[:start] + new + text[start + gone :]
        assert lines.text == text.encode()
        assert lines.starts == LineIndex(lines.text).starts


def test_halves_of_a_character_that_an_edit_brings_together_are_one():
    halves = [encoded(half) for half in ("\ud83d", "\ude00")]
    lines = LineIndex(b"a\n" + halves[0] + b"\n").edited(Span(5, 5), halves[1])
    assert lines.text == "a\n\U0001f600\n".encode()
    assert lines.starts == [0, 2, 7]
