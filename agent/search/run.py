"""The state of one search: what it was asked, what it spent, what it saw."""

import time
from collections.abc import Callable

from attrs import define, evolve, field

from agent.evaluation.deadline import until
from agent.evaluation.judge import examine, judge
from agent.evaluation.prepare import Prepared
from agent.evaluation.setting import Setting
from agent.evaluation.verdict import Verdict
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure
from agent.ideas.adviser import Adviser
from agent.ideas.idea import Candidate
from agent.ideas.rewriting import code_in
from agent.ideas.source import Request, program
from agent.search import events
from agent.search.constants import with_constants
from agent.search.duplicates import machine_key
from agent.search.facts import counters, facts
from agent.search.formatting.formatter import Formatter, unformatted
from agent.search.host.edits import host_edits
from agent.search.keeping import Kept
from agent.search.node import Node
from agent.search.options import SearchOptions
from agent.search.select import changed_lines, front
from agent.search.trace import Trace
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.workload import Workload

Emit = Callable[[events.Event], None]

CONFIRMING = 4.0
"""A full verdict takes about so many times as long as a screen, by measurement between three and seven."""

KEPT_BACK = 0.4
"""At most this part of a search's seconds is kept for it."""


@define
class Run:
    """The mutable state of one search. ``seen`` are hashes of texts and of machine code, ``expanded`` identifiers of
    nodes that were parents, ``tried`` (title, how it ended), ``judging`` the seconds of each screen. ``prepared`` is
    there once the original is. ``undone`` is what the time did not suffice for, in words. ``formatted`` puts what is
    written into the file's style."""

    kernel: Kernel
    workload: Workload
    original: Node
    setting: Setting
    options: SearchOptions
    trace: Trace
    listener: Emit
    adviser: Adviser | None = None
    kept: Kept | None = None
    prepared: Prepared | None = None
    began: float = field(factory=time.monotonic)
    judged: list[Node] = field(factory=list)
    seen: set[str] = field(factory=set)
    expanded: set[str] = field(factory=set)
    tried: list[tuple[str, str]] = field(factory=list)
    judging: list[float] = field(factory=list)
    undone: list[str] = field(factory=list)
    formatted: Formatter = unformatted

    def emit(self, event: events.Event) -> None:
        self.trace.event(event)
        self.listener(event)

    def exhausted(self) -> bool:
        return len(self.judged) >= self.options.candidates or self.spent(self._kept_back())

    def spent(self, kept_back: float = 0.0) -> bool:
        """Whether the seconds are over, but for those ``kept_back``."""
        return time.monotonic() - self.began > self.options.seconds - kept_back

    def _kept_back(self) -> float:
        """Seconds to confirm the best, once there is something to confirm: by what screens took here, and never so many
        that most of the search would be given up for it."""
        if not self.judging or not self.options.proposals or not front(self.judged, 1, self.options.lossy):
            return 0.0
        return min(CONFIRMING * max(self.judging), KEPT_BACK * self.options.seconds)

    def stopped(self) -> bool:
        return self.setting.cancelled() or self.exhausted()

    @property
    def limited(self) -> Setting:
        """The setting, in which whatever runs, compiles or waits for a card is given up when the seconds are over."""
        return until(self.setting, self.began + self.options.seconds, self.options.seconds)


def verdict_of(node: Node, prepared: Prepared, run: Run) -> Verdict:
    """The verdict on a node, at the depth of ``prepared``; kept where a record of it is wanted."""
    lossy = run.options.lossy
    if run.kept is None or not run.kept.wants(prepared):
        return judge(prepared, node.program, allow_lossy=lossy)
    judged = examine(prepared, node.program, allow_lossy=lossy)
    if not run.setting.cancelled():
        run.kept.keep(prepared, node, judged)
    return judged.verdict


def request_for(parent: Node, run: Run) -> Request:
    """What an idea source is asked about a node."""
    document = parent.program.document
    known = run.prepared if run.adviser is not None else None  # only who reasons in words needs facts in words
    return Request(
        document=document,
        kernel=document.kernel(run.kernel.qualified_name),
        workload=run.workload,
        plan=parent.program.plan,
        scope=run.options.scope,
        tried=tuple(run.tried),
        lossy=run.options.lossy,
        architectures=(run.setting.options.arch, run.setting.target.arch, *run.setting.architectures),
        applied=tuple(idea.name for idea in parent.candidate.ideas) if parent.candidate else (),
        facts=facts(parent, known) if known else (),
        counters=counters(parent, known) if known else (),
        target=run.setting.target.name,
        adviser=run.adviser,
    )


def child_of(candidate: Candidate, parent: Node, identifier: str, run: Run) -> Node:
    """A candidate as a node, not judged yet."""
    document = parent.program.document
    kernel = document.kernel(run.kernel.qualified_name)
    written = program(document, kernel, candidate, f"candidate {identifier}")

    def launched() -> Document:
        return host_edits(run.original.program, written, run.workload).document

    text = with_constants(document, kernel, written.document, launched)
    made = evolve(written, document=run.formatted(text, document))
    if made.document is not written.document:
        candidate = evolve(candidate, code=code_in(made.document, document, kernel) or candidate.code)
    if parent.candidate is not None:
        candidate = evolve(candidate, ideas=(*parent.candidate.ideas, *candidate.ideas))
    whole = host_edits(run.original.program, made, run.workload, run.formatted)
    lines = changed_lines(run.original.program.document.text, whole.document.text)
    return Node(identifier, made, candidate, parent, None, changed_lines=lines)


def machine_key_of(node: Node, run: Run) -> str | None:
    """None where the candidate does not compile: its verdict will say so."""
    built = build(node.program, run.setting.options, cancelled=run.limited.cancelled)
    if isinstance(built, CompileFailure):
        return None
    try:
        return machine_key(built, bind(run.workload, node.program.plan, document=node.program.document))
    except ValueError:
        return None
