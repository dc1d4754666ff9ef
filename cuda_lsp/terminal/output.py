"""Where lines go: results to standard output, progress and notes to standard error, one JSON object for machines."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import attrs
import click
from attrs import define, field
from rich.console import Console
from rich.status import Status

import cuda_lsp
from agent.evaluation.plain import unstructure
from agent.search import events
from agent.search.proposal import Proposal

SCHEMA = 1

HIDDEN = frozenset({(Proposal, "document")})
"""Fields that no JSON shows: a proposal's text is its diff."""


def envelope(command: str, code: int, **content: object) -> dict[str, Any]:
    """The object that every ``--json`` prints. ``schema`` grows when a field changes its meaning or goes away."""
    return {
        "schema": SCHEMA,
        "tool": f"cuda-lsp {cuda_lsp.__version__}",
        "command": command,
        "exit": int(code),
        **{name: unstructure(value) for name, value in content.items()},
    }


def events_json(seen: Sequence[events.Event]) -> list[dict[str, Any]]:
    return [{"type": type(event).__name__, **unstructure(event)} for event in seen]


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    names = [field.name for field in attrs.fields(Proposal) if (Proposal, field.name) not in HIDDEN]
    return {name: unstructure(getattr(proposal, name)) for name in names}


@define
class Screen:
    """Lines as they come, and on a terminal a spinner that says what is going on. Quiet when piped: no progress."""

    quiet: bool
    _console: Console = field(factory=lambda: Console(stderr=True, highlight=False))
    _status: Status | None = None

    def __enter__(self) -> "Screen":
        if self._console.is_terminal and not self.quiet:
            self._status = self._console.status("reading")
            self._status.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status:
            self._status.stop()

    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(text)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        click.echo(f"cuda-lsp: {text}", err=True)

    def progress(self, event: events.Event) -> None:
        self.stage(_stage(event))

    def stage(self, what: str) -> None:
        """What is going on now."""
        if self._status:
            self._status.update(what)


def _stage(event: events.Event) -> str:
    match event:
        case events.Started():
            return "finding the workload"
        case events.WorkloadFound():
            return "checking the original's contract"
        case events.ContractFound():
            return "counting traffic"
        case events.HeadroomFound():
            return "looking for ideas"
        case events.RoundStarted():
            return f"round {event.number}: judging {event.candidates} candidates"
        case events.CandidateJudged():
            return f"round {event.round}: judged {event.identifier}"
        case events.RoundEnded():
            return "confirming what would be shown"
        case _:
            return "working"
