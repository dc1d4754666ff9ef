"""One random interleaving of what a user, an editor and the server's jobs do, over a connection with a real server.

After each step the server's text is the one that the editor told it. An edit of the server's is carried out by the
editor's own means, and what it makes of the text is compared with what was promised: by the review that the user saw,
and by replacing what the proposal replaces, byte for byte, and nothing else.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from attrs import define, field, frozen

from tests.server.buffer import Buffer, Json, typed
from tests.server.observed import BUSY, PROPOSALS, TEXT, TREE
from tests.server.promise import fits, replaced
from tests.server.talk import PATIENCE, Refused, Talk, result
from tests.server.texts import SCALE
from tests.server.wire import CLIENTS

SCRIPTS = (
    ["fresh"], ["fresh"], ["fresh:launch"], ["fresh:launch"], ["rewrites:4"], ["sleep:0.01", "fresh"], ["end:done"],
    ["stage:a", "stage:b", "sleep:0.02", "fresh:launch"], ["end:failed"], ["sleep:0.1"],
)  # fmt: skip
MANNERS = ["well"] * 30 + ["late"] * 5 + ["types"] * 5 + ["refuses"] * 2 + ["formats", "fails", "lies"]
"""How an editor answers an edit of the server's: carried out and told; answered first and told afterwards; another
keystroke of the user's just before; refused; carried out and formatted; an error; called applied and not done."""
SILENT = 0.01
"""How often an editor answers only when all else is over."""


class Fault(AssertionError):
    """What must not happen."""


@frozen
class Kind:
    """A kind of client: what it announces, how it counts columns, whether it takes versioned edits and compares
    versions as VS Code does (else as Neovim does: an old edit is dropped and called applied), whether it tells several
    changes in one message, and whether the server compiles in the pauses."""

    name: str
    capabilities: Json
    encoding: str
    versioned: bool
    strict: bool
    gathers: bool
    compiles: bool = False


def _announcing(name: str, encoding: str) -> Json:
    return {**CLIENTS[name], "general": {"positionEncodings": [encoding]}}


KINDS = (
    Kind("vscode", CLIENTS["vscode"], "utf-16", versioned=True, strict=True, gathers=False),
    Kind("neovim", CLIENTS["neovim"], "utf-8", versioned=True, strict=False, gathers=True),
    Kind("neovim-utf-32", _announcing("neovim", "utf-32"), "utf-32", True, False, True, compiles=True),
    Kind("minimal", {"workspace": {"applyEdit": True}}, "utf-16", versioned=False, strict=False, gathers=False),
)
NAMESPACED = SCALE.replace("__global__ void scale", "namespace größe {\n__global__ void scale").replace(
    "\n\n__global__ void shift", "\n}\nusing größe::scale;\n\n__global__ void shift"
)
TEXTS = (
    SCALE,
    SCALE.replace("\n", "\r\n"),
    "\ufeff// größe 🚀\n" + SCALE,
    NAMESPACED,
    SCALE.replace("// Scales", "// 🚀"),
)


@define(eq=False)
class Accepting:
    """An acceptance under way: ``texts`` are those that the server was told since, ``seen`` what a review promised on
    which text. ``due``: it was carried out and told as it should be."""

    uri: str
    anchors: Json
    texts: list[str]
    seen: tuple[str, str] | None = None
    due: bool = False


@define(eq=False)
class Play:
    talk: Talk
    kind: Kind
    dice: random.Random
    folder: Path
    name: str
    counts: Counter[str]
    buffers: list[Buffer] = field(factory=list)
    accepting: dict[int, Accepting] = field(factory=dict)
    unanswered: list[Json] = field(factory=list)
    perhaps: list[Accepting] = field(factory=list)
    texts: dict[int, str | None] = field(factory=dict)
    """What the server must know, by the number of the request that asks; None where it must know nothing."""
    asked: set[int] = field(factory=set)
    known: dict[str, Json] = field(factory=dict)
    gathering: bool = False
    trace: list[str] = field(factory=list)

    def run(self) -> None:
        """Raises Fault."""
        for number in range(self.dice.choice((1, 1, 2))):
            scheme = "untitled:" if self.dice.random() < 0.1 else self.folder.as_uri() + "/"
            self.buffers.append(Buffer(f"{scheme}{self.name}-{number}.cu", self.dice.choice(TEXTS), self.kind.encoding))
            self._open(self.buffers[-1])
        if self.dice.random() < 0.75:
            self._searched(self._buffer())
        for _ in range(self.dice.randint(8, 24)):
            step = self.dice.choice(STEPS)
            self.trace.append(step.__name__)
            step(self, self._buffer())
            self._holds()
        self._end()

    # --- what a user does ------------------------------------------------------------------------------------------

    def types(self, buffer: Buffer) -> None:
        self.trace[-1] = typed(buffer, self.dice)
        self.counts[self.trace[-1]] += 1
        if self.kind.gathers and self.dice.random() < 0.3:
            self.gathering = True
        elif buffer.opened:
            self._tell(buffer)

    def searches(self, buffer: Buffer) -> None:
        self._start(buffer, self.dice.choice(SCRIPTS))

    def accepts(self, buffer: Buffer) -> None:
        found = self._any(buffer)
        if found is None or not buffer.opened:
            return
        seen = self._review(buffer, found) if self.dice.random() < 0.6 else None
        number = self.talk.ask_command("cuda-lsp.accept", found["id"])
        if found["anchors"]:
            self.accepting[number] = Accepting(buffer.uri, found["anchors"], [buffer.told], seen)
        else:
            self.asked.add(number)

    def reviews(self, buffer: Buffer) -> None:
        if (found := self._any(buffer)) is not None and buffer.opened:
            self._review(buffer, found)

    def rejects(self, buffer: Buffer) -> None:
        if (found := self._any(buffer)) is not None:
            self.counts["rejected"] += self.talk.command(
                "cuda-lsp.reject", found["id"], self.dice.choice(("", "größe 🚀"))
            )

    def cancels(self, buffer: Buffer) -> None:
        """Rarely: each costs a process, and the next job the time to start one."""
        if self.dice.random() < 0.04 and (reference := self._reference(buffer)) is not None:
            self.counts["cancelled"] += self.talk.command("cuda-lsp.cancel", reference)

    def looks(self, buffer: Buffer) -> None:
        """What editors ask all the time; nobody waits for the answers."""
        document = {"textDocument": {"uri": buffer.uri}}
        place = {"line": self.dice.randrange(30), "character": self.dice.randrange(20)}
        for method, more in (
            ("textDocument/hover", {"position": place}),
            ("textDocument/codeLens", {}),
            ("textDocument/documentSymbol", {}),
            ("textDocument/codeAction", {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}),
        ):
            if self.dice.random() < 0.5:
                self.asked.add(self.talk.ask(method, {**document, **more}))

    def saves(self, buffer: Buffer) -> None:
        if buffer.opened:
            self.talk.note("textDocument/didSave", {"textDocument": {"uri": buffer.uri}})

    def closes_or_opens(self, buffer: Buffer) -> None:
        """What is kept of a file is there again when it is opened again."""
        if not buffer.opened:
            self._open(buffer)
            return
        self._tell(buffer)
        before = self._settled(buffer)
        self.talk.note("textDocument/didClose", {"textDocument": {"uri": buffer.uri}})
        buffer.opened = False
        if self.dice.random() < 0.1:
            self.talk.note("workspace/didDeleteFiles", {"files": [{"uri": buffer.uri}]})
            before = before and set()
            self._same(buffer, before)
        if self.dice.random() < 0.7:
            self._open(buffer)
            self._same(buffer, before)

    def renames(self, buffer: Buffer) -> None:
        if buffer.uri.startswith("untitled:"):
            return
        self._tell(buffer)
        before = self._settled(buffer) if buffer.opened else None
        old, new = buffer.uri, buffer.uri.replace(".cu", "é.cu" if self.dice.random() < 0.5 else "_.cu")
        told: list[Callable[[], None]] = [
            lambda: self.talk.note("workspace/didRenameFiles", {"files": [{"oldUri": old, "newUri": new}]})
        ]
        if buffer.opened:
            told.insert(
                self.dice.randrange(2), lambda: self.talk.note("textDocument/didClose", {"textDocument": {"uri": old}})
            )
        for tell in told:
            tell()
        buffer.uri = new
        if buffer.opened:
            self._open(buffer)
            self._same(buffer, before)

    def waits(self, buffer: Buffer) -> None:
        self.talk.look(self.dice.choice((0.001, 0.005, 0.02)))

    # --- what an editor does ---------------------------------------------------------------------------------------

    def answers(self, buffer: Buffer | None = None) -> None:
        """Some requests of the server's, in the order in which they came."""
        self.talk.look(0.002 if self.accepting else 0.0)
        for _ in range(min(self.dice.choice((1, 2, 4, 8)), len(self.talk.inbox))):
            self._answer(self.talk.inbox.popleft())

    def _answer(self, request: Json) -> None:
        method, params = request["method"], request.get("params") or {}
        if method == "workspace/applyEdit":
            self._apply(request)
        elif method == "window/showMessageRequest":
            titles = [action["title"] for action in params["actions"]]
            chosen = self.dice.choice([None, *titles])
            if chosen == "Accept":
                self._accepted_from_a_message()
            self.talk.answer(request, chosen and {"title": chosen})
        elif method == "workspace/configuration":
            self.talk.answer(request, [None for _ in params["items"]])
        elif method == "window/showDocument":
            self.talk.answer(request, {"success": True})
        else:
            self.talk.answer(request, None)

    def _accepted_from_a_message(self) -> None:
        """Of a search that ended: which of them, and how it ends, only the server knows."""
        for buffer in self.buffers:
            for proposal in self._listed(buffer):
                if proposal["anchors"]:  # what is listed between two keys may be called outdated and not be
                    self.perhaps.append(Accepting(buffer.uri, proposal["anchors"], [buffer.told]))

    def tells(self, buffer: Buffer) -> None:
        self.gathering = False
        for one in self.buffers:
            if one.opened:
                self._tell(one)

    def _apply(self, request: Json) -> None:
        edit = request["params"]["edit"]
        uri, version, edits = _of(edit)
        buffer = next((one for one in self.buffers if one.uri == uri and one.opened), None)
        manner = "silent" if self.dice.random() < SILENT else self.dice.choice(MANNERS)
        self.trace.append(f"  {manner}")
        self.counts[f"editor {manner}"] += 1
        if manner == "fails":
            self.talk.fail(request, "no such method")
        elif manner == "refuses" or buffer is None:
            self.talk.answer(request, {"applied": False})
        elif manner == "lies":
            self.talk.answer(request, {"applied": True})
        elif manner == "silent":
            self.unanswered.append(request)
        else:
            if manner == "types":
                buffer.splice((0, 0, "/"))
                self._tell(buffer)
            if version is not None and version != buffer.version:
                self.talk.answer(request, {"applied": not self.kind.strict and version < buffer.version})
            else:
                self._carry_out(request, buffer, edits, manner)

    def _carry_out(self, request: Json, buffer: Buffer, edits: list[Json], manner: str) -> None:
        before, raced = buffer.text, not self.kind.versioned and self._raced(buffer)
        try:
            after = buffer.after(edits)
        except (IndexError, AssertionError):
            if not raced:
                raise Fault(f"an edit outside the text: {edits!r} in {before!r}") from None
            self.talk.answer(request, {"applied": False})
            return
        pending = [one for one in (*self.accepting.values(), *self.perhaps) if one.uri == buffer.uri]
        fitting = [one for one in pending if fits(before, after, one.anchors)]
        if raced:
            self.counts["raced without a version"] += 1
        elif not fitting:
            raise Fault(f"a misplaced edit: {before!r} became {after!r}; pending {pending!r}")
        for one in fitting:
            if one.seen is not None and one.seen[0] == before and one.seen[1] != after and len(fitting) == 1:
                raise Fault(f"not what the review promised: {one.seen[1]!r} became {after!r}")
        buffer.carry_out(edits)
        self.counts["written"] += 1
        if manner == "late":
            self.talk.answer(request, {"applied": True})
        if manner == "formats":
            buffer.splice((0, 0, "\n"))
        elif len(fitting) == 1 and not raced and manner != "late" and len(buffer.waiting) == len(edits):
            fitting[0].due = True
        self._tell(buffer)
        if manner != "late":
            self.talk.answer(request, {"applied": True})

    def _raced(self, buffer: Buffer) -> bool:
        """Whether the user typed since the server can have made an edit: without a version no editor can tell."""
        return any(
            text != buffer.text for one in self.accepting.values() if one.uri == buffer.uri for text in one.texts
        )

    # --- what must hold --------------------------------------------------------------------------------------------

    def _holds(self, wait: bool = False) -> None:
        """Asked after each step; most often the next is taken before the answer is there."""
        for buffer in self.buffers:
            self.texts[self.talk.ask_command(TEXT, buffer.uri)] = buffer.told if buffer.opened else None
            if buffer.opened and self.dice.random() < 0.15:
                self._states(buffer)
        if wait or self.dice.random() < 0.15:
            for number in tuple(self.texts):
                self._compare(number)
        self._responses()

    def _compare(self, number: int) -> None:
        found, told = self.talk.wait(number), self.texts.pop(number)
        text = None if found is None else found["text"]
        _check(text == told, f"the server has {text!r}, the client {told!r}")
        self.counts["compared"] += 1

    def _responses(self) -> None:
        self.talk.look()
        for number in [number for number in self.texts if number in self.talk.answers]:
            self._compare(number)
        for number in [number for number in self.accepting if number in self.talk.answers]:
            one, ok = self.accepting.pop(number), result(self.talk.answers.pop(number))
            self.counts["accepted" if ok else "not accepted"] += 1
            _check(ok or not one.due, f"carried out, and not taken for accepted: {list(self.talk.said)!r}")
            promised = ok and any(fits(a, b, one.anchors) for a, b in itertools.combinations(one.texts, 2))
            _check(promised or not ok, f"called accepted, and was not: {one!r}")
        for number in [number for number in self.asked if number in self.talk.answers]:
            self.asked.discard(number)
            try:
                result(self.talk.answers.pop(number))
            except Refused as error:
                _check(error.code != -32603, f"an error of the server's own: {error}")

    def _states(self, buffer: Buffer) -> None:
        """A ready proposal fits the text; one that does not fit is not ready."""
        for proposal in self._listed(buffer):
            self.counts[f"seen {proposal['state']}"] += 1
            if proposal["state"] == "ready" and proposal["anchors"]:
                there = [old in buffer.told for old, _ in replaced(proposal["anchors"])]
                _check(all(there), f"ready, and does not fit: {proposal!r} in {buffer.told!r}")

    def _review(self, buffer: Buffer, proposal: Json) -> tuple[str, str] | None:
        """Both sides of what the user is shown, checked."""
        found = self.talk.command("cuda-lsp.review", proposal["id"])
        if found is None or found["proposed"] is None:
            return None
        _check(found["original"] == buffer.told, f"a review of {found['original']!r} where there is {buffer.told!r}")
        _check(fits(buffer.told, found["proposed"], proposal["anchors"]), f"promises {found['proposed']!r}")
        self.counts["reviewed"] += 1
        return found["original"], found["proposed"]

    def _end(self) -> None:
        """Everything comes to rest; what is left is still right."""
        self.trace.append("end")
        deadline = time.monotonic() + PATIENCE
        while self.accepting or self.talk.inbox or self.asked:
            _check(time.monotonic() < deadline, f"no answer to {self.accepting!r} {self.asked!r}")
            self.talk.look(0.01)
            self.answers()
            while self.unanswered:
                self.talk.answer(self.unanswered.pop(), {"applied": False})
            self._responses()
        self.tells(self.buffers[0])
        self._holds(wait=True)
        for buffer in self.buffers:
            if buffer.opened:
                if self.dice.random() < 0.1:
                    wrong = self.talk.command(TREE, buffer.uri)
                    _check(not wrong, f"not as parsed from scratch, in {wrong}: {buffer.text!r}")
                    self.counts["trees compared"] += 1
                self.talk.note("textDocument/didClose", {"textDocument": {"uri": buffer.uri}})

    def leave(self) -> None:
        """Whatever went wrong, the next begins without it."""
        for buffer in self.buffers:
            if buffer.opened:
                self.talk.note("textDocument/didClose", {"textDocument": {"uri": buffer.uri}})

    # --- small things ----------------------------------------------------------------------------------------------

    def _buffer(self) -> Buffer:
        return self.dice.choice(self.buffers)

    def _open(self, buffer: Buffer) -> None:
        buffer.opened, buffer.told, buffer.waiting = True, buffer.text, []
        self._recall(buffer)
        self.talk.note("textDocument/didOpen", {"textDocument": buffer.item})

    def _tell(self, buffer: Buffer) -> None:
        if buffer.opened and buffer.told is not None and (buffer.waiting or self.dice.random() < 0.05):
            changes = buffer.changes()
            self.talk.note("textDocument/didChange", changes)
            self._recall(buffer)

    def _recall(self, buffer: Buffer) -> None:
        for one in (*self.accepting.values(), *self.perhaps):
            if one.uri == buffer.uri:
                one.texts.append(buffer.told)

    def _start(self, buffer: Buffer, script: list[str]) -> bool:
        reference = self._reference(buffer)
        started = reference is not None and self.talk.command("cuda-lsp.optimize", reference, {"only": script})
        self.counts["jobs" if started else "refused"] += 1
        return bool(started)

    def _searched(self, buffer: Buffer) -> None:
        """Begin with something to accept."""
        if self._start(buffer, self.dice.choice(SCRIPTS[:5])):
            while self.talk.command(BUSY):
                self.talk.look(0.002)

    def _reference(self, buffer: Buffer) -> Json | None:
        lenses = self.talk.request("textDocument/codeLens", {"textDocument": {"uri": buffer.uri}}) or []
        arguments = [lens["command"]["arguments"][0] for lens in lenses]
        fresh: Json | None = self.dice.choice(arguments) if arguments else None
        stale = self.known.get(buffer.uri)
        if fresh is not None:
            self.known[buffer.uri] = fresh
        return stale if stale is not None and self.dice.random() < 0.1 else fresh

    def _listed(self, buffer: Buffer) -> list[Json]:
        listed: list[Json] = self.talk.command(PROPOSALS, buffer.uri)
        return listed

    def _any(self, buffer: Buffer) -> Json | None:
        found = self._listed(buffer)
        mostly = [proposal for proposal in found if proposal["state"] == "ready"] or found
        return self.dice.choice(mostly if self.dice.random() < 0.8 else found) if found else None

    def _settled(self, buffer: Buffer) -> set[str] | None:
        """What is proposed, where no job may change that meanwhile and where it is kept."""
        lasting = buffer.uri.startswith("file:") and not self.talk.command(BUSY)
        return {one["id"] for one in self._listed(buffer)} if lasting else None

    def _same(self, buffer: Buffer, before: set[str] | None) -> None:
        if before is not None:
            now = {one["id"] for one in self._listed(buffer)}
            _check(now == before, f"proposals were {before!r} and are {now!r} in {buffer.uri}")


STEPS: Sequence[Callable[[Play, Buffer], None]] = (
    [Play.types] * 13 + [Play.answers] * 13 + [Play.searches] * 3 + [Play.accepts] * 6 + [Play.reviews] * 2
    + [Play.rejects, Play.cancels, Play.looks, Play.saves, Play.closes_or_opens, Play.renames, Play.waits, Play.tells]
)  # fmt: skip


def played(
    talk: Talk, kind: Kind, folder: Path, seed: int, numbers: Iterable[int], counts: Counter[str]
) -> Iterator[tuple[int, Play, Exception | None]]:
    """One interleaving after the other, with what was wrong with it. Each is told by the seed and its number."""
    talk.request(
        "initialize",
        {
            "processId": None, "rootUri": folder.as_uri(), "capabilities": kind.capabilities,
            "initializationOptions": {"compile": kind.compiles},
        },
    )  # fmt: skip
    talk.note("initialized", {})
    for number in numbers:
        name = f"{seed}-{number}"
        play = Play(talk, kind, random.Random(f"{kind.name} {name}"), folder, name, counts)
        try:
            play.run()
        except (Fault, Refused) as fault:
            yield number, play, fault
            play.leave()
        else:
            yield number, play, None


def _of(edit: Json) -> tuple[str, int | None, list[Json]]:
    """The document that an edit is of, the version if it has one, and what it changes."""
    if "documentChanges" in edit:
        (change,) = edit["documentChanges"]
        return change["textDocument"]["uri"], change["textDocument"]["version"], change["edits"]
    ((uri, edits),) = edit["changes"].items()
    return uri, None, edits


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Fault(otherwise)
