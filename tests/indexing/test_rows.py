"""Positions without the text are those of the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.index.reading import read_facts
from cuda_lsp.columns import UTF8, UTF16, UTF32
from cuda_lsp.indexing import rows
from cuda_lsp.indexing.files import as_utf8
from cuda_lsp.lines import LineIndex
from tests.source.strategies import clean_texts, texts

ENCODINGS = st.sampled_from([UTF8, UTF16, UTF32])


@given(texts | clean_texts, ENCODINGS)
def test_ranges_of_all_facts(data: bytes, encoding: str) -> None:
    text = as_utf8(data.replace(b"\0", b""))
    facts = read_facts(text)
    known = rows.unpack(rows.pack(rows.rows_of(text, facts)))
    whole = LineIndex(text, encoding)
    spans = [one.span for one in (*facts.mentions, *facts.definitions)] + [one.extent for one in facts.definitions]
    for span in spans:
        found, expected = known.range_of(span, encoding), whole.range_of(span)
        assert (found.line, found.character) == (expected.start.line, expected.start.character)
        assert (found.end_line, found.end_character) == (expected.end.line, expected.end.character)
        assert known.offset_of(found.line, found.character, encoding) == span.start


@pytest.mark.parametrize("line, character", [(0, 99), (7, 0), (-1, 0)])
def test_a_position_outside_the_text_is_none(line: int, character: int) -> None:
    text = b"__global__ void k() {}\nint x;\n"
    known = rows.rows_of(text, read_facts(text))
    assert known.offset_of(line, character, UTF16) is None
