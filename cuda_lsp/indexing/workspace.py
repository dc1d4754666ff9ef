"""The index of a workspace as the process that holds it has it: files on disk, and open documents in their place."""

import contextlib
import os
import queue
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

from attrs import define, field

from agent.source.document import Document, parse
from agent.source.index import packing
from agent.source.index.reading import facts_of, read_facts
from agent.source.index.table import Table
from cuda_lsp.indexing import rows, shelves
from cuda_lsp.indexing.files import LARGEST, Looking, Stamp, Unread, read, stamp
from cuda_lsp.indexing.messages import Look, Progress, Text
from cuda_lsp.indexing.rows import Rows
from cuda_lsp.indexing.shelves import Record
from cuda_lsp.terminal.hints.walk import Problem

MOST_FILES = 50_000
"""Files of a workspace that are known at most: whoever opens a home folder does not mean all of it."""
_OPENED = 64
_A_WHILE = 1.0


@define(eq=False)
class Workspace:
    """Looking through the folders and reading files is done in steps, so that questions are answered between them."""

    table: Table = field(factory=Table)
    most: int = MOST_FILES
    _records: dict[str, Record] = field(factory=dict)
    _texts: dict[str, tuple[str, Rows]] = field(factory=dict)
    _documents: dict[str, Document] = field(factory=dict)
    _opened: OrderedDict[str, Rows] = field(factory=OrderedDict)
    _walk: Looking | None = None
    _avoid: frozenset[str] = frozenset()
    _met: set[str] = field(factory=set)
    _waiting: deque[tuple[str, Stamp]] = field(factory=deque)
    _open_shelves: Counter[str] = field(factory=Counter)
    _shelf: tuple[str, dict[str, Record]] = ("", {})
    _left: list[str] = field(factory=list)
    _told: set[str] = field(factory=set)
    _to_read: int = 0

    # --- files on disk ---------------------------------------------------------------------------------------------

    def look(self, wanted: Look) -> None:
        """Begin to look through the folders. What is known stays until it is known better."""
        self._avoid = frozenset(wanted.avoid)
        if self._walk is not None:
            self._walk.stop()
        self._walk = Looking(wanted.folders)
        self._met = set()
        self._waiting.clear()
        self._open_shelves.clear()
        self._to_read = 0

    def work(self, seconds: float) -> Progress:
        """Go on for a while, or, where there is no time, through one file once all are found."""
        deadline = time.monotonic() + seconds
        if self._walk is not None:
            self._go_on(deadline if seconds else deadline + _A_WHILE)
            return self._progress()
        while self._waiting:
            self._read(*self._waiting.popleft())
            if time.monotonic() >= deadline:
                break
        return self._progress()

    def _progress(self) -> Progress:
        left, self._left = tuple(self._left), []
        walked = self._walk is None
        following = self._waiting[0][0] if walked and self._waiting else ""
        read_ = self._to_read - len(self._waiting)
        return Progress(len(self._met), self._to_read, read_, walked, walked and not self._waiting, following, left)

    def _go_on(self, deadline: float) -> None:
        with contextlib.suppress(queue.Empty):
            while self._walk is not None and (left := deadline - time.monotonic()) > 0:
                self._take_in(self._walk, self._walk.next(left))

    def _take_in(self, walk: Looking, one: str | Problem | None) -> None:
        if one is None or len(self._met) >= self.most:
            if one is not None:
                self._leave("", f"there are more than {self.most} files: the rest is not in the index")
            walk.stop()
            self._walk = None
            self._forget(set(self._records) - self._met)
            shelves.prune()
        elif isinstance(one, Problem):
            self._leave(one.path, one.message)
        elif one not in self._avoid:
            self._meet(one)

    def _meet(self, path: str) -> None:
        try:
            now = stamp(path, time.time_ns())
        except OSError:
            return  # it went meanwhile
        self._met.add(path)
        record = self._records.get(path) or self._kept(path)
        if record is None or record.stamp != now or not (path in self._records or self._knew(path, record)):
            self._waiting.append((path, now))
            self._open_shelves[os.path.dirname(path)] += 1  # noqa: PTH120
            self._to_read += 1

    def _knew(self, path: str, record: Record) -> bool:
        """Whether what was kept can be read."""
        try:
            self._know(path, record)
        except ValueError:
            return False
        return True

    def _kept(self, path: str) -> Record | None:
        folder, name = os.path.split(path)
        if self._shelf[0] != folder:
            self._shelf = folder, shelves.load(folder)
        return self._shelf[1].get(name)

    def _read(self, path: str, now: Stamp) -> None:
        self._renew(path, now)
        folder = os.path.dirname(path)  # noqa: PTH120
        self._open_shelves[folder] -= 1
        if not self._open_shelves[folder]:
            self._put_away({folder})

    def _renew(self, path: str, now: Stamp) -> None:
        try:
            self._know(path, _record(read(path), now))
        except Unread as reason:
            self._leave(path, str(reason))
            self._know(path, _record(b"", now))  # and is not tried again before it changes
        except Exception as fault:
            self._leave(path, f"a fault of cuda-lsp ({type(fault).__name__}: {fault})")
            self._know(path, _record(b"", now))

    def _know(self, path: str, record: Record) -> None:
        if path not in self._texts:
            self._opened.pop(path, None)
            self.table.put(path, record.facts)
        self._records[path] = record

    def _forget(self, paths: Iterable[str]) -> None:
        gone = set(paths)
        for path in gone:
            del self._records[path]
            if path not in self._texts:
                self._opened.pop(path, None)
                self.table.drop(path)
        self._put_away({os.path.dirname(path) for path in gone})  # noqa: PTH120

    def _put_away(self, folders: set[str]) -> None:
        inside: dict[str, list[tuple[str, Record]]] = {folder: [] for folder in folders}
        for path, record in self._records.items():
            folder, name = os.path.split(path)
            if folder in inside:
                inside[folder].append((name, record))
        for folder, records in inside.items():
            shelves.save(folder, records)

    def _leave(self, path: str, reason: str) -> None:
        words = f"{path}: {reason}" if path else reason
        if words not in self._told:
            self._told.add(words)
            self._left.append(words)

    # --- open documents --------------------------------------------------------------------------------------------

    def take(self, texts: Iterable[Text], gone: Iterable[str]) -> None:
        """What is open holds, and not what is on disk."""
        for one in texts:
            key = one.path or one.uri
            text = one.text if len(one.text) <= LARGEST else b""
            # of a text that was known before, only what was edited is parsed
            document = self._documents[key] = parse(text, "", self._documents.get(key))
            facts = facts_of(document)
            self.table.put(key, packing.pack(facts))
            self._texts[key] = one.uri, rows.rows_of(one.text, facts)
        for key in gone:
            self._documents.pop(key, None)
            if self._texts.pop(key, None) is not None:
                record = self._records.get(key)
                if record is not None:
                    self.table.put(key, record.facts)
                else:
                    self.table.drop(key)

    def uri(self, key: str) -> str:
        """As its client calls an open document; empty for others."""
        return self._texts[key][0] if key in self._texts else ""

    def rows(self, key: str) -> Rows:
        if key in self._texts:
            return self._texts[key][1]
        if key not in self._opened:
            self._opened[key] = rows.unpack(self._records[key].rows)
        self._opened.move_to_end(key)
        while len(self._opened) > _OPENED:
            self._opened.popitem(last=False)
        return self._opened[key]

    def renewed(self, keys: Iterable[str]) -> bool:
        """Read again those of the files that changed on disk since they were read. Whether there were any."""
        changed = False
        for path in {key for key in keys if key in self._records and key not in self._texts}:
            try:
                now = stamp(path, time.time_ns())
            except OSError:
                self._forget({path})
                changed = True
                continue
            known = self._records[path].stamp
            if (known.modified, known.size) != (now.modified, now.size):
                self._renew(path, now)
                changed = True
        return changed


def _record(text: bytes, now: Stamp) -> Record:
    facts = read_facts(text)
    return Record(now, packing.pack(facts), rows.pack(rows.rows_of(text, facts)))
