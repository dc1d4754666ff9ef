"""Edits, jobs, cancels, accepts, rejects, closes and renames in any order: no misplaced edit, ever.

Once with the server's parts and no connection between, and once with a real server over its standard streams, where
the order is also that of the messages (``python -m tests.benchmarks interleaving`` for a long run). The worker is a
scripted one that speaks the real protocol in a real process, so that answers arrive whenever they do. The model of what
an accept may do is plain text replacement.
"""

import asyncio
import contextlib
import gc
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from pygls.protocol import default_converter

from cuda_lsp.applying import Applied
from cuda_lsp.client import Client
from cuda_lsp.jobs import JobRefused, Jobs
from cuda_lsp.jobs.pool import Pool
from cuda_lsp.proposals.proposal import READY, REJECTED, Proposal
from cuda_lsp.session import Session
from cuda_lsp.worker.asked import Options
from tests.server.buffer import Buffer, typed
from tests.server.desk import Desk
from tests.server.editor import FAILS, LAX, LIAR, REFUSES, STRICT
from tests.server.interleaver import KINDS, TEXTS, Kind, played
from tests.server.observed import COMMAND, written
from tests.server.promise import fits
from tests.server.talk import talking
from tests.server.texts import SCALE

STEPS = int(os.environ.get("CUDA_LSP_STEPS", "4000"))
SCRIPTS = (
    ("fresh",), ("fresh",), ("fresh:launch",), ("fresh:launch",), ("rewrites:4",), ("sleep:0.01", "fresh"),
    ("stage:a", "stage:b", "sleep:0.02", "fresh:launch"), ("end:failed",), ("end:done",), ("sleep:0.2",),
)  # fmt: skip
PIECES = (
    "",
    " ",
    "\n",
    "// é \U0001f600\n",
    "\r\n",
    "x",
    "{",
    "}",
    "/*",
    "*/",
    "\u2028",
    "\x0c",
    "<<<",
    "#if 1\n",
    "\t",
)


@define(eq=False)
class World:
    desk: Desk
    jobs: Jobs
    dice: random.Random
    undo: list[tuple[int, str, str]] = field(factory=list)
    accepting: dict[asyncio.Task[Applied], Proposal] = field(factory=dict)
    asked_on: dict[asyncio.Task[Applied], str] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)
    kept: set[str] = field(factory=set)
    faults: list[str] = field(factory=list)
    open: bool = True

    # --- what may happen -------------------------------------------------------------------------------------------

    def type_anywhere(self) -> None:
        text = self.desk.editor.text
        start = self.dice.randrange(len(text) + 1)
        self._type(start, min(len(text), start + self.dice.choice((0, 0, 0, 1, 3))), self.dice.choice(PIECES))

    def type_between(self) -> None:
        """On a line of its own, outside of any function: what users do while they wait."""
        text = self.desk.editor.text
        places = [at + 1 for at in range(len(text)) if text.startswith(("\n__", "\nint", "\n#"), at)]
        if places:
            self._type(
                self.dice.choice(places), None, self.dice.choice(("\n", "// é \U0001f600\r\n", "\n\n", "// n\n"))
            )

    def type_undo(self) -> None:
        if self.undo:
            start, old, new = self.undo.pop()
            if self.desk.editor.text[start : start + len(new)] == new:
                self.desk.editor.type(start, start + len(new), old)

    def start_over(self) -> None:
        self.undo.clear()
        self.desk.editor.type(0, len(self.desk.editor.text), SCALE)

    def start_job(self) -> None:
        snapshot = self.desk.session.snapshot(self.desk.uri)
        if snapshot is None:
            return
        snapshot.read()
        try:
            script = self.dice.choice(SCRIPTS)
            self.jobs.start("optimize", snapshot, self.dice.choice(("scale", "shift")), Options(only=script))
            self.counts["jobs"] += 1
        except JobRefused:
            self.counts["refused"] += 1

    def cancel(self) -> None:
        active = [job for job in self.jobs.all() if job.active]
        # Each costs a process, and the next job the time to start one.
        if active and self.dice.random() < 0.05:
            self.counts["cancelled"] += self.jobs.cancel(self.dice.choice(active).id)

    def accept(self) -> None:
        found = self._any()
        if found is not None:
            task = asyncio.get_running_loop().create_task(self.desk.proposals.accept(found.id))
            self.accepting[task] = found
            if found.anchors is not None:
                self.asked_on[task] = self.desk.editor.text

    def reject(self) -> None:
        found = self._any()
        if found is not None:
            before = self.desk.editor.text
            self.counts["rejected"] += self.desk.proposals.reject(found.id, "no").ok
            assert self.desk.editor.text == before

    def close_or_open(self) -> None:
        (self.desk.editor.close if self.open else self.desk.editor.open)()
        self.open = not self.open

    def change_manner(self) -> None:
        self.desk.editor.manner = self.dice.choice((STRICT, STRICT, STRICT, LAX, LAX, LIAR, REFUSES, FAILS))

    def check(self) -> None:
        self.desk.proposals.check(self.desk.uri)

    def _any(self) -> Proposal | None:
        found = self.desk.proposals.all(self.desk.uri)
        mostly = [p for p in found if p.state == READY] or found
        return self.dice.choice(mostly if self.dice.random() < 0.8 else found) if found else None

    def _type(self, start: int, end: int | None, new: str) -> None:
        text = self.desk.editor.text
        end = start if end is None else end
        # A position between the two halves of a line end is none.
        if any(text[at - 1 : at + 1] == "\r\n" for at in (start, end)):
            return
        self.undo.append((start, text[start:end], new))
        del self.undo[:-20]
        self.desk.editor.type(start, end, new)

    # --- what must hold --------------------------------------------------------------------------------------------

    def written(self, before: str, after: str) -> None:
        """The editor carried out an edit of the server's. What is wrong is kept: the server would take it for an error
        of the editor's."""
        pending = [p for task, p in self.accepting.items() if not task.done() and p.anchors is not None]
        fitting = {p.id for p in pending if promised(before, after, p)}
        if not fitting:
            self.faults.append(f"a misplaced edit: {before!r} became {after!r}")
        self.kept |= fitting
        self.undo.clear()
        self.counts["written"] += 1

    def holds(self) -> None:
        assert not self.faults, self.faults[0]
        snapshot = self.desk.session.snapshot(self.desk.uri)
        assert (snapshot is not None) == self.open
        if snapshot is not None:
            assert snapshot.lines.text.decode() == self.desk.editor.text
        for task, proposal in list(self.accepting.items()):
            # An editor may lie, and the user's own next edit be the very text that was promised: then it is there.
            if self.open and task in self.asked_on and promised(self.asked_on[task], self.desk.editor.text, proposal):
                self.kept.add(proposal.id)
            if task.done():
                del self.accepting[task]
                self.asked_on.pop(task, None)
                self.counts["accepted" if task.result().ok else "not accepted"] += 1
                assert task.result().ok or task.result().message
                assert not task.result().ok or proposal.id in self.kept, "called accepted, and was not"

    def states(self) -> None:
        """A ready proposal fits the text; one that does not fit is not ready."""
        text = self.desk.editor.text
        for proposal in self.desk.proposals.all(self.desk.uri):
            self.counts[f"seen {proposal.state}"] += 1
            if proposal.anchors is None or proposal.state == REJECTED:
                continue
            fits = proposal.anchors.old.decode() in text
            assert fits or proposal.state != READY
            if proposal.state == READY:
                assert all(launch.decode() in text for launch in proposal.anchors.sites)


def promised(before: str, after: str, proposal: Proposal) -> bool:
    return proposal.anchors is not None and fits(before, after, written(proposal.anchors))


async def scenario(folder: Path, seed: int, steps: int) -> Counter[str]:
    loop = asyncio.get_running_loop()
    pool = Pool("tests.server.scripted_worker")
    desk = Desk(folder)

    def post(work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(work)

    jobs = Jobs(post, pool, limit=2)
    jobs.subscribe(lambda job, message: desk.proposals.heard(job, message))
    world = World(desk, jobs, random.Random(seed))
    desk.editor.watch = world.written
    happenings = (
        [world.type_between] * 6 + [world.type_undo] * 5 + [world.type_anywhere] + [world.start_job] * 6
        + [world.accept] * 6 + [world.reject, world.cancel, world.check, world.change_manner, world.close_or_open]
        + [world.start_over] * 4
    )  # fmt: skip
    objects = 0
    try:
        for step in range(steps):
            if not world.open and world.dice.random() < 0.5:
                world.close_or_open()
            what = world.dice.choice(happenings)
            if world.open or what not in (
                world.type_between, world.type_undo, world.type_anywhere, world.start_over,
            ):  # fmt: skip
                what()
            world.holds()
            await asyncio.sleep(world.dice.choice((0, 0, 0, 0.002)))
            world.holds()
            if step % 7 == 0 and world.open:
                world.states()
            if step == steps // 2:
                gc.collect()
                objects = len(gc.get_objects())
        gc.collect()
        assert len(gc.get_objects()) < 1.2 * objects + 20_000, "memory grows"
        await asyncio.gather(*world.accepting, return_exceptions=False)
        world.holds()
    finally:
        jobs.close()
    return world.counts


def test_no_misplaced_edit_in_any_order(tmp_path: Path) -> None:
    counts = asyncio.run(scenario(tmp_path, seed=20240607, steps=STEPS))
    # how often depends on how fast the worker is, and so on what else the machine does
    for what in ("jobs", "refused", "written", "accepted", "not accepted", "rejected", f"seen {READY}"):
        assert counts[what], f"{what} never happened: {counts}"


# --- with a real server ----------------------------------------------------------------------------------------------

INTERLEAVINGS = 8


@pytest.mark.skipif(sys.platform == "win32", reason="the paths of POSIX systems")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_misplaced_edit_over_a_connection(tmp_path: Path, kind: Kind) -> None:
    counts: Counter[str] = Counter()
    with talking(COMMAND, tmp_path) as talk:
        for number, play, fault in played(talk, kind, tmp_path, 20240607, range(INTERLEAVINGS), counts):
            assert fault is None, f"in interleaving {number}, after {', '.join(play.trace)}: {fault}"
    assert counts["compared"] >= INTERLEAVINGS
    assert "Traceback" not in (log := (tmp_path / "log").read_text(encoding="utf-8", errors="replace")), log


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.sampled_from(TEXTS), st.integers(0, 2**32), st.integers(1, 30)
)
def test_the_server_has_the_text_that_the_client_has(encoding: str, text: str, seed: int, edits: int) -> None:
    """Every kind of edit, told one by one or several at once."""
    session, dice, read = Session(), random.Random(seed), default_converter()  # type: ignore[no-untyped-call]
    session.client = Client(encoding=encoding)
    buffer = Buffer("file:///a.cu", text, encoding)
    session.open(read.structure(buffer.item, types.TextDocumentItem))
    for _ in range(edits):
        typed(buffer, dice)
        if dice.random() < 0.7:
            params = read.structure(buffer.changes(), types.DidChangeTextDocumentParams)
            snapshot = session.change(buffer.uri, params.text_document.version, params.content_changes)
            assert snapshot is not None and snapshot.lines.text.decode("utf-8", "surrogatepass") == buffer.text


OLD, NEW = "void k() {\n}", "void k() { // fast\n}"
BEFORE = f"int a;\n/* of k */\n// and more\n{OLD}\nk<<<1, 2>>>();\n"
ANCHORS = {"kernel": (OLD, NEW), "above": "int h;\n", "others": [("k<<<1, 2>>>()", "k<<<1, 4>>>()")]}
RIGHT = f"int a;\nint h;\n/* of k */\n// and more\n{NEW}\nk<<<1, 4>>>();\n"


def test_what_is_promised_is_all_of_a_rewrite_in_its_place() -> None:
    assert fits(BEFORE, RIGHT, ANCHORS)
    assert fits(BEFORE, RIGHT.replace("int h;\n", "").replace("// and", "int h;\n// and"), ANCHORS), "nearer to it"
    wrong = [
        BEFORE,
        RIGHT + "\n",
        RIGHT.replace("1, 4", "1, 2"),
        RIGHT.replace("int h;\n", ""),
        RIGHT.replace("int a;\nint h;\n", "int h;\nint a;\n"),
        RIGHT.replace(" // fast", ""),
        RIGHT.replace("int a", "int  a"),
    ]
    for text in wrong:
        assert not fits(BEFORE, text, ANCHORS), text
    assert not fits(BEFORE.replace("{\n}", "{\n }"), RIGHT, ANCHORS), "there is nothing to replace"
