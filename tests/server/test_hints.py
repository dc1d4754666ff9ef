"""Hints between two keystrokes: those that are kept and moved are those that a fresh look finds."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from lsprotocol.converters import get_converter

from cuda_lsp.hints import HintStore, find
from cuda_lsp.lines import decoded
from cuda_lsp.session import Session, Snapshot
from tests.server.large_file import UNIT

URI = "file:///large.cu"
KERNEL = "__global__ void wide{n}(double* x) {{ x[threadIdx.x * 9] = 1.0; }}\n"
TEXT = "".join(UNIT.format(n=number) + KERNEL.format(n=number) for number in range(4))
INSERTED = ["\n", "// a note\n", "// é 😀\n", "  ", "\t", "\n\n\n"]
edits = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(INSERTED)), min_size=1, max_size=5)


def opened(text: str) -> tuple[Session, HintStore]:
    session = Session()
    hints = HintStore(session)
    snapshot = session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, text))
    assert snapshot is not None
    examined(session, hints, snapshot)
    return session, hints


def examined(session: Session, hints: HintStore, snapshot: Snapshot) -> None:
    found = find(snapshot.document, snapshot.document.kernels, session.settings, lambda: False)
    hints.put(snapshot, found)


CONVERTER = get_converter()


def written(found: list[types.Diagnostic]) -> str:
    return json.dumps(found, default=CONVERTER.unstructure)


def shown(hints: HintStore, snapshot: Snapshot) -> list[tuple[int, types.Range, str]]:
    def show(finding):
        related = [
            types.DiagnosticRelatedInformation(types.Location(URI, snapshot.lines.range_of(one.span)), one.words)
            for one in finding.related
        ]
        own = types.DiagnosticRelatedInformation(
            types.Location(URI, snapshot.lines.range_of(finding.span)), 'as in {"line": 7}'
        )
        return types.Diagnostic(
            snapshot.lines.range_of(finding.span), finding.message, related_information=[*related, own]
        )

    found = dict(hints.every(snapshot, show))
    for at, one in found.items():
        anew = [show(finding) for finding in hints.of(snapshot, snapshot.document.kernels[at])]
        assert one.written(written) == written(anew)[1:-1], "what was written before and moved is as if written anew"
        assert one.diagnostics == anew
    return [(at, one.range, one.message) for at, all_ in found.items() for one in all_.diagnostics]


def typed(session: Session, line: int, text: str, column: int = 0) -> Snapshot:
    place = types.Position(line, column)
    change = types.TextDocumentContentChangePartial(types.Range(place, place), text)
    snapshot = session.change(URI, session.snapshot(URI).version + 1, [change])
    assert snapshot is not None
    return snapshot


@settings(max_examples=60, deadline=None)
@given(edits)
def test_layout_moves_hints_and_changes_none(changes):
    session, hints = opened(TEXT)
    assert shown(hints, session.snapshot(URI))
    for where, text in changes:
        lines = len(session.snapshot(URI).lines.starts)
        snapshot = typed(session, int(where * (lines - 1)), text)
        fresh, all_anew = opened(decoded(snapshot.text))
        assert shown(hints, snapshot) == shown(all_anew, fresh.snapshot(URI))
        for at, kernel in enumerate(snapshot.document.kernels):
            assert hints.of(snapshot, kernel) == all_anew.of(
                fresh.snapshot(URI), fresh.snapshot(URI).document.kernels[at]
            )


def test_a_copy_above_a_kernel_does_not_take_its_hints():
    session, hints = opened("\n" + KERNEL.format(n=1))
    before = shown(hints, session.snapshot(URI))
    snapshot = typed(session, 0, KERNEL.format(n=1))
    assert {at: place.start.line for at, place, _ in shown(hints, snapshot)}[0] == 0
    examined(session, hints, snapshot)
    assert [(at, place.start.line) for at, place, _ in shown(hints, snapshot)] == [
        *((0, 0) for _ in before), *((1, 2) for _ in before)
    ]  # fmt: skip


def test_half_a_statement_leaves_the_hints_of_other_kernels_where_their_text_is():
    session, hints = opened(TEXT)
    before = shown(hints, session.snapshot(URI))
    line = next(number for number, written in enumerate(TEXT.split("\n")) if written == "    s[t] = sum;")
    snapshot = typed(session, line, "    if (t < 4) {\n")
    after = shown(hints, snapshot)
    others = [(at, place.start.line + 1, message) for at, place, message in before if at > 0]
    assert others and others == [(at, place.start.line, message) for at, place, message in after if at > 0]


def test_a_key_has_only_the_kernel_examined_that_it_is_typed_into(monkeypatch):
    session = Session()
    hints = HintStore(session)
    opened_now = session.open(types.TextDocumentItem(URI, "cuda-cpp", 1, TEXT))
    assert {at for at, _, _ in shown(hints, opened_now)} == {0}, (
        "a file that was opened need not wait for its first hint"
    )
    looked_at = []
    monkeypatch.setattr("agent.analysis.rules.check", lambda document, kernel, **_: looked_at.append(kernel.name) or ())
    lines = TEXT.split("\n")
    for number in (2, 0, 3):
        snapshot = typed(session, next(at for at, line in enumerate(lines) if f"wide{number}" in line), " ", 35)
        shown(hints, snapshot)
        shown(hints, snapshot)
    assert looked_at == ["wide2", "wide0", "wide3"]
    snapshot = typed(session, len(lines) - 1, "// a remark behind all of them\n")
    shown(hints, snapshot)
    assert looked_at == ["wide2", "wide0", "wide3"]
    assert len(hints.stale(snapshot)) == len(snapshot.document.kernels), "the others have their turn after a pause"
