"""An editor of our own to test against: it keeps text, sends changes, and applies edits well or badly.

Positions are counted here by themselves and not by the code under test.
"""

import asyncio
import re
from collections.abc import Callable

from attrs import define, field
from lsprotocol import types

from cuda_lsp.session import Session

STRICT, LAX, LIAR, REFUSES, FAILS, SILENT = "strict", "lax", "liar", "refuses", "fails", "silent"
FORMATS, TYPES = "formats", "types"
"""How an editor answers ``workspace/applyEdit``: as VS Code does (versions are compared); as Neovim does (an edit of
an old version is dropped and called applied); says applied and does nothing; refuses; answers with an error; never
answers; applies and formats; takes another keystroke just before."""


_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def units(text: str, encoding: str) -> int:
    """How long a text is as the protocol counts."""
    codec, size = _UNITS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def index_of(text: str, position: types.Position, encoding: str = "utf-16") -> int:
    """The index of a position."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]
    at, left = starts[position.line], position.character
    while left > 0:
        left -= units(text[at], encoding)
        at += 1
    assert left == 0, "a position inside a character"
    return at


def position_of(text: str, index: int, encoding: str = "utf-16") -> types.Position:
    """The position of an index."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text[:index] + "\0"))]
    line = max(number for number, start in enumerate(starts) if start <= index)
    return types.Position(line, units(text[starts[line] : index], encoding))


@define(eq=False)
class Editor:
    """One open document. ``late`` sends the change after the answer, as editors may."""

    session: Session
    uri: str
    text: str
    manner: str = STRICT
    late: bool = False
    version: int = 1
    asked: list[types.ApplyWorkspaceEditParams] = field(factory=list)
    encoding: str = "utf-16"
    watch: Callable[[str, str], None] = lambda before, after: None
    """Called with both texts when an edit of the server's was carried out."""

    def open(self) -> None:
        self.session.open(types.TextDocumentItem(self.uri, "cuda-cpp", self.version, self.text))

    def close(self) -> None:
        self.session.close(self.uri)

    def type(self, start: int, end: int, new: str) -> None:
        """A change by the user: what stands at ``start`` to ``end`` becomes ``new``."""
        place = self._range(start, end)
        self.text = self.text[:start] + new + self.text[end:]
        self._send([types.TextDocumentContentChangePartial(place, new)])

    def replace(self, old: str, new: str) -> None:
        start = self.text.index(old)
        self.type(start, start + len(old), new)

    def _range(self, start: int, end: int) -> types.Range:
        return types.Range(position_of(self.text, start, self.encoding), position_of(self.text, end, self.encoding))

    def _send(self, changes: list[types.TextDocumentContentChangeEvent]) -> None:
        self.version += 1
        self.session.change(self.uri, self.version, changes)

    async def apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.asked.append(params)
        await asyncio.sleep(0)
        if self.manner == TYPES:
            self.type(0, 0, "/")
        if self.manner == FAILS:
            raise RuntimeError("no such method")
        if self.manner == SILENT:
            await asyncio.sleep(3600)
        if self.manner == REFUSES:
            return types.ApplyWorkspaceEditResult(False, "the file is read-only")
        version, edits = _edits_of(params, self.uri)
        if version is not None and version != self.version and self.manner != LAX:
            return types.ApplyWorkspaceEditResult(False)
        if self.manner == LIAR or (version is not None and version < self.version):
            return types.ApplyWorkspaceEditResult(True)
        if self.late:
            asyncio.get_running_loop().call_later(0.01, self._carry_out, edits)
        else:
            self._carry_out(edits)
        return types.ApplyWorkspaceEditResult(True)

    def _carry_out(self, edits: list[types.TextEdit]) -> None:
        before = self.text
        spans = sorted(
            (
                (
                    index_of(self.text, edit.range.start, self.encoding),
                    index_of(self.text, edit.range.end, self.encoding),
                    edit.new_text,
                )
                for edit in edits
            ),
            reverse=True,
        )
        changes: list[types.TextDocumentContentChangeEvent] = []
        for start, end, new in spans:
            place = self._range(start, end)
            changes.append(types.TextDocumentContentChangePartial(place, new))
            self.text = self.text[:start] + new + self.text[end:]
        if self.manner == FORMATS:
            place = types.Range(types.Position(0, 0), types.Position(0, 0))
            changes.append(types.TextDocumentContentChangePartial(place, "\n"))
            self.text = "\n" + self.text
        self._send(changes)
        self.watch(before, self.text)


def _edits_of(params: types.ApplyWorkspaceEditParams, uri: str) -> tuple[int | None, list[types.TextEdit]]:
    if params.edit.document_changes is not None:
        (change,) = params.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit) and change.text_document.uri == uri
        return change.text_document.version, [edit for edit in change.edits if isinstance(edit, types.TextEdit)]
    assert params.edit.changes is not None and list(params.edit.changes) == [uri]
    return None, list(params.edit.changes[uri])
