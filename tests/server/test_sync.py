"""Whatever is edited, the server's text is the client's, and its parse is of that text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from pygls.protocol import default_converter

from agent.source.document import parse
from agent.source.line_ends import with_newlines
from cuda_lsp.client import Client
from cuda_lsp.lines import decoded
from cuda_lsp.session import Session, is_cuda
from tests.server.test_lines import ENCODINGS, units

CONVERTER = default_converter()
PIECES = [
    "__global__ void k(float* x, int n) {\n    x[threadIdx.x] = n; // größe 🚀\n}\n",
    "void f() {\r\n    k<<<1, 32>>>(x, n);\r\n}\r\n",
    "\f", "\u2028", "\x85", "\v", "\r", "\n", "\r\n", "🚀", "é", "漢", "{", "}", "a", "  ", "/*", "*/", '"', "",
]  # fmt: skip
pieces = st.one_of(st.sampled_from(PIECES), st.text(max_size=3))
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), pieces), min_size=1, max_size=8)
URI = "untitled:Untitled-1"


def boundaries(text: str) -> list[int]:
    """Where a client may put a cursor: between two characters, and not inside a line end."""
    return [0, *(match.end() for match in re.finditer(r"\r\n|[\s\S]", text))]


def position(text: str, index: int, encoding: str) -> types.Position:
    lines = re.split(r"\r\n|\r|\n", text[:index])
    return types.Position(len(lines) - 1, units(lines[-1], encoding))


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=150, deadline=None)
@given(start=st.lists(pieces, max_size=4).map("".join), changes=edits, batch=st.integers(1, 3))
def test_random_edits_keep_both_texts_equal(encoding, start, changes, batch):
    session, text = session_with(encoding), start
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, text))
    for version in range(2, len(changes) + 2):
        sent = []
        for where, length, new in changes[(version - 2) * batch : (version - 1) * batch]:
            places = boundaries(text)
            first = int(where * (len(places) - 1))
            last = min(first + length, len(places) - 1)
            a, b = places[first], places[last]
            sent.append({"range": range_of(text, a, b, encoding), "text": new})
            text = text[:a] + new + text[b:]
        params = {"textDocument": {"uri": URI, "version": version}, "contentChanges": sent}
        read = CONVERTER.structure(params, types.DidChangeTextDocumentParams)
        session.change(URI, version, read.content_changes)
        snapshot = session.snapshot(URI)
        assert decoded(snapshot.lines.text) == text
        assert snapshot.document.text == with_newlines(text.encode()) == snapshot.text
        if not snapshot.document.hasty:
            assert snapshot.document.kernels == parse(text.encode()).kernels


def range_of(text, a, b, encoding):
    return CONVERTER.unstructure(types.Range(position(text, a, encoding), position(text, b, encoding)))


def session_with(encoding: str) -> Session:
    session = Session()
    session.client = Client(encoding=encoding)
    return session


def test_a_snapshot_does_not_change_when_the_document_does():
    session = session_with("utf-16")
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, "__global__ void a() {}"))
    old = session.snapshot(URI)
    session.change(URI, 2, [types.TextDocumentContentChangeWholeDocument("__global__ void b() {}")])
    assert [kernel.name for kernel in old.document.kernels] == ["a"]
    assert [kernel.name for kernel in session.snapshot(URI).document.kernels] == ["b"]


def test_listeners_hear_of_every_state():
    session, heard = session_with("utf-16"), []
    session.subscribe(lambda old, new: heard.append((old and old.version, new and new.version)))
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, "a"))
    session.change(URI, 2, [types.TextDocumentContentChangeWholeDocument("b")])
    session.close(URI)
    assert heard == [(None, 1), (1, 2), (2, None)]


@pytest.mark.parametrize(
    ("language", "uri", "wanted"),
    [
        ("cuda-cpp", "untitled:Untitled-1", True),
        ("cuda", "file:///a", True),
        ("cpp", "file:///a/b.cu", True),
        ("cpp", "file:///a/b.CUH", True),
        ("cpp", "file:///a/b.cpp", False),
        ("python", "file:///a/cu.py", False),
    ],
)
def test_what_is_taken_for_cuda(language, uri, wanted):
    assert is_cuda(language, uri) is wanted


def test_what_is_not_open_is_not_known():
    session = session_with("utf-16")
    assert session.change(URI, 2, [types.TextDocumentContentChangeWholeDocument("b")]) is None
    session.close(URI)
    assert session.open(types.TextDocumentItem("file:///a.cpp", "cpp", 1, "int x;")) is None
    assert session.snapshots() == ()


def test_the_parse_that_the_next_builds_on_is_the_newest_sound_one():
    session = session_with("utf-16")
    text = "__global__ void a(int* x) {\n  x[0] = 1;\n}\n__global__ void b(int* x) {\n  x[0] = 1;\n}\n"
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, text))
    first = session.snapshot(URI)
    assert not first.document.hasty
    here = types.Range(types.Position(1, 2), types.Position(1, 2))
    session.change(URI, 2, [types.TextDocumentContentChangePartial(here, "if (x) { ")])
    second = session.snapshot(URI)
    assert second.document.hasty
    assert second.next_base is first.document
    there = types.Range(types.Position(1, 20), types.Position(1, 20))
    session.change(URI, 3, [types.TextDocumentContentChangePartial(there, "} ")])
    third = session.snapshot(URI)
    assert not third.document.hasty
    assert third.next_base is third.document


def test_a_listener_that_fails_keeps_no_other_from_hearing(caplog):
    session, heard = session_with("utf-16"), []
    session.subscribe(lambda old, new: 1 / 0)
    session.subscribe(lambda old, new: heard.append(new.version))
    session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, "a"))
    assert heard == [1]
    assert "ZeroDivisionError" in caplog.text
