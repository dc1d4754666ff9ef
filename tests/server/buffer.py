"""A document in a client: what its user sees, what the server was told, and every kind of edit between the two."""

import random
from collections.abc import Sequence
from typing import Any

from attrs import define, field
from lsprotocol import types

from tests.server.editor import index_of, position_of

Json = dict[str, Any]
Splice = tuple[int, int, str]
"""What stands from one index to another becomes a text."""

_UNDOS = 30


@define(eq=False)
class Buffer:
    """``told`` is the text that the server was told last; ``waiting`` are the changes since, that it was not."""

    uri: str
    text: str
    encoding: str
    version: int = 1
    told: str = ""
    opened: bool = False
    waiting: list[Json] = field(factory=list)
    _before: list[str] = field(factory=list)
    _after: list[str] = field(factory=list)

    # --- edits -------------------------------------------------------------------------------------------------------

    def splice(self, *splices: Splice) -> None:
        """One edit of the user's: splices one after the other, each in the text that the one before it left."""
        self._begin()
        for start, end, new in splices:
            self._put(start, end, new)

    def rewrite(self, text: str) -> None:
        """The whole text anew, as clients send it that cannot tell what changed."""
        self._begin()
        self._whole(text)

    def touch(self) -> None:
        """A version without a change."""
        self.version += 1

    def undo(self) -> None:
        if self._before:
            self._after.append(self.text)
            self._become(self._before.pop())

    def redo(self) -> None:
        if self._after:
            self._before.append(self.text)
            self._become(self._after.pop())

    def carry_out(self, edits: Sequence[Json]) -> None:
        """Edits of the server's, all in the text as it is. Raises IndexError, AssertionError for a place that is
        none."""
        spans = [(*self._indices(edit["range"]), edit["newText"]) for edit in edits]
        self._begin()
        for start, end, new in sorted(spans, reverse=True):
            self._put(start, end, new)

    def after(self, edits: Sequence[Json]) -> str:
        """The text that such edits make. Raises as ``carry_out`` does."""
        text = self.text
        spans = [(*self._indices(edit["range"]), edit["newText"]) for edit in edits]
        for start, end, new in sorted(spans, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    # --- to the server -----------------------------------------------------------------------------------------------

    @property
    def item(self) -> Json:
        """As ``didOpen`` tells it."""
        return {"uri": self.uri, "languageId": "cuda-cpp", "version": self.version, "text": self.text}

    def changes(self) -> Json:
        """As ``didChange`` tells all that waits."""
        changes, self.waiting, self.told = self.waiting, [], self.text
        return {"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": changes}

    # --- inside ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._before = [*self._before[-_UNDOS:], self.text]
        self._after.clear()

    def _become(self, text: str) -> None:
        """By the smallest splice; of texts with halves of characters, as a whole."""
        old = self.text
        if any("\ud800" <= c <= "\udfff" for c in old + text):
            self._whole(text)
            return
        head = next((at for at, (a, b) in enumerate(zip(old, text, strict=False)) if a != b), min(len(old), len(text)))
        most = min(len(old), len(text)) - head
        tail = next((at for at in range(most) if old[-1 - at] != text[-1 - at]), most)
        while head and (old[head - 1] == "\r" or text[head - 1] == "\r"):
            head -= 1
        while tail and (old[len(old) - tail] == "\n" or text[len(text) - tail] == "\n"):
            tail -= 1
        self._put(head, len(old) - tail, text[head : len(text) - tail])

    def _put(self, start: int, end: int, new: str) -> None:
        start, end = self._sound(start, -1), self._sound(end, 1)
        place = types.Range(position_of(self.text, start, self.encoding), position_of(self.text, end, self.encoding))
        self.version += 1
        self.waiting.append({"range": _json(place), "text": new})
        self.text = _mended(self.text[:start] + new + self.text[end:])

    def _whole(self, text: str) -> None:
        self.version += 1
        self.waiting.append({"text": text})
        self.text = _mended(text)

    def _sound(self, index: int, step: int) -> int:
        """There is no position between the two characters of a line end."""
        return index + step if self.text[max(0, index - 1) : index + 1] == "\r\n" else index

    def _indices(self, place: Json) -> tuple[int, int]:
        start, end = (types.Position(place[name]["line"], place[name]["character"]) for name in ("start", "end"))
        return index_of(self.text, start, self.encoding), index_of(self.text, end, self.encoding)


def _json(place: types.Range) -> Json:
    ends = (("start", place.start), ("end", place.end))
    return {name: {"line": end.line, "character": end.character} for name, end in ends}


def _mended(text: str) -> str:
    """Two halves of a character that came to stand side by side are that character."""
    if not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


# --- what users type -------------------------------------------------------------------------------------------------

PIECES = (
    "", " ", "\n", "\r\n", "\r", "x", "{", "}", "(", "/*", "*/", "//", '"', "// é \U0001f600\n", "größe 🚀 ",
    "\u2028", "\x0c", "\x85", "<<<", "#if 1\n", "#endif\n", "\t", "\x00", "float größe = 1.0f;\n", "e\u0301", "\ufeff",
)  # fmt: skip
HALVES = ("\ud83d", "\ude00")
LINES = ("\n", "// é \U0001f600\r\n", "\n\n", "// n\n", "int größe = 1;\n", "// 🚀\n", "#include <größe.h>\r\n")


def typed(buffer: Buffer, dice: random.Random) -> str:
    """One random edit of the user's; what kind it was."""
    kind = dice.choice(_KINDS)
    text, length = buffer.text, len(buffer.text)
    if kind == "between":  # on a line of its own outside of any function: what users do while they wait
        places = [at + 1 for at in range(length) if text.startswith(("\n__", "\nint", "\n#"), at)]
        if places:
            at = dice.choice(places)
            buffer.splice((at, at, dice.choice(LINES)))
    elif kind == "anywhere":
        start = dice.randrange(length + 1)
        end = min(length, start + dice.choice((0, 0, 0, 1, 3)))
        buffer.splice((start, end, dice.choice(PIECES if dice.random() < 0.97 else HALVES)))
    elif kind == "several":
        buffer.splice(*_several(text, dice))
    elif kind == "whole":
        buffer.rewrite(dice.choice((text, text + "// more\n", "// é\n" + text, "", "\n" * 3)))
    elif kind == "line ends":
        plain = text.replace("\r\n", "\n")
        buffer.rewrite(plain if "\r\n" in text else plain.replace("\n", "\r\n"))
    elif kind == "undo":
        for _ in range(dice.choice((1, 1, 1, 3))):
            buffer.undo()
    elif kind == "redo":
        buffer.redo()
    else:
        buffer.touch()
    return kind


_KINDS = (
    ["between"] * 8 + ["anywhere"] * 4 + ["several"] * 3 + ["undo"] * 8 + ["redo"] * 2 + ["whole", "line ends", "touch"]
)  # fmt: skip


def _several(text: str, dice: random.Random) -> list[Splice]:
    """As several cursors do it, or a formatter: from the end of the text to its beginning, in one message."""
    places = sorted((dice.randrange(len(text) + 1) for _ in range(dice.choice((2, 3, 5)))), reverse=True)
    new = dice.choice(("// é 🚀\n", " ", "\r\n", "x"))
    return [(at, at, new) for at in dict.fromkeys(places)]
