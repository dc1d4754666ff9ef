"""A job as a value: what was asked on which text, and how far it is."""

from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import field, frozen

from agent.source.document import Document
from cuda_lsp.worker.asked import Options

if TYPE_CHECKING:  # takes long to import, and the server's start must not wait for it
    from cuda_lsp.worker.messages import Ended, Message

HELD, QUEUED, RUNNING, DONE, FAILED, CANCELLED = "held", "queued", "running", "done", "failed", "cancelled"


class Text(Protocol):
    """The part of a snapshot that a job needs."""

    @property
    def uri(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def document(self) -> Document: ...


class JobRefused(Exception):
    """Why no job was started, in words for the user."""


@frozen
class Job:
    """``kernel`` is a qualified name. One that is ``held`` waits for its user's answer. ``stage`` is what is being
    done, ``done`` of ``total`` where that is known. ``ended`` is what the worker answered; ``message`` says how it
    ended where no answer came. Once it has ended, the jobs remember it without its document and rewrites; listeners are
    told of the end with both."""

    id: str
    kind: str
    uri: str
    version: int
    kernel: str
    options: Options
    document: Document = field(repr=False, eq=False)
    state: str = QUEUED
    stage: str = "waiting"
    done: int = 0
    total: int = 0
    message: str = ""
    ended: "Ended | None" = None

    @property
    def active(self) -> bool:
        """Waiting or running."""
        return self.state in (HELD, QUEUED, RUNNING)

    @property
    def path(self) -> str:
        """Of an unsaved document there is none, whatever its parse was labelled."""
        return self.document.path if self.uri.startswith("file:") else ""


Listened: TypeAlias = "Message | None"
"""What a listener is told beside the job: the worker's message, or None where only the state changed."""
