"""Two places far apart, edited without a pause: each key costs what stands around it, and nothing is known wrongly."""

from collections.abc import Iterator

import pytest
from lsprotocol import types

from agent.source import incremental
from agent.source.document import parse
from agent.source.incremental import State
from agent.source.parsing import changed_range
from cuda_lsp.lines import LineIndex
from cuda_lsp.session import FAR, Snapshot
from tests.server.large_file import generated

TEXT = generated(0).encode()
HERE, THERE = b"void run5(const float* x, float* y, int rows, int cols) {", b"int row = blockIdx.x;\n"


def typed(snapshot: Snapshot, at: int, new: str) -> Snapshot:
    line = snapshot.text.count(b"\n", 0, at)
    place = types.Position(line, at - snapshot.text.rfind(b"\n", 0, at) - 1)
    return snapshot.changed(
        snapshot.version + 1, [types.TextDocumentContentChangePartial(types.Range(place, place), new)]
    )


def session(broken: str) -> Iterator[Snapshot]:
    """A key that leaves something half said near the top, then a statement near the end and back at the top."""
    snapshot = Snapshot("file:///a.cu", "/a.cu", 1, "cuda-cpp", LineIndex(TEXT, "utf-8"))
    snapshot.read()
    yield snapshot
    snapshot = typed(snapshot, TEXT.index(HERE) + len(HERE), broken)
    yield snapshot
    at = snapshot.text.rindex(THERE) + len(THERE)
    for count, letter in enumerate("int v = rows;"):
        yield (snapshot := typed(snapshot, at + count, letter))
    yield typed(snapshot, TEXT.index(HERE) + len(HERE), " ")


@pytest.mark.parametrize("broken", ["int x = ;", "a b c", "f(x"])
def test_each_key_is_read_around_it(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def glance(old: State, text: bytes) -> State:
        start, _, end = changed_range(old.text, text)
        read.append(end - start)
        return incremental.glance(old, text)

    monkeypatch.setattr("agent.source.document.glance", glance)
    for snapshot in session(broken):
        found = snapshot.document
        names = [kernel.name for kernel in found.kernels]
        assert names == [kernel.name for kernel in parse(TEXT).kernels]
        for kernel in found.kernels:
            assert snapshot.text[kernel.name_span.start : kernel.name_span.end].decode() == kernel.name
    assert len(read) > 13 and max(read) <= FAR


@pytest.mark.parametrize("broken", ["int x = ;", "f(x", "f(x);"])
def test_a_pause_reads_it_as_it_is(broken: str) -> None:
    for last in session(broken):
        assert last.document is not None
    settled, whole = last.read(), parse(last.text, "/a.cu")
    assert not settled.hasty
    assert [(one.name, one.span, one.damage) for one in settled.kernels] == [
        (one.name, one.span, one.damage) for one in whole.kernels
    ]
    assert settled.blanked == whole.blanked and str(settled.tree.root_node) == str(whole.tree.root_node)
