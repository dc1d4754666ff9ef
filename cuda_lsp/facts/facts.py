"""What is known about one kernel once it was compiled, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from agent.source.document import Document

if TYPE_CHECKING:  # the compiler's package takes long to import, and the server's start must not wait for it
    from agent.execution.compiler.result import Resources
    from agent.execution.occupancy import Occupancy


@frozen
class Cost:
    """A kernel on one architecture. ``occupancy`` is None where nobody knows the size of a block."""

    arch: str
    resources: Resources
    occupancy: Occupancy | None
    shared: int
    """Static and, where the launch is known, dynamic shared memory, in bytes."""


@frozen
class Message:
    """A message of the compiler. ``line`` is 1-based in the text it was made from and ``anchor`` is what stands there,
    by which it is found again after an edit; 0 and empty where it concerns the kernel as a whole."""

    severity: str
    text: str
    line: int
    anchor: bytes


@frozen
class Facts:
    """``costs`` has the chosen card's architecture first, then the project's others. ``workload`` and ``origin`` are
    lines for people; where there is no workload, ``questions`` says why. ``problem`` says why nothing was compiled."""

    costs: tuple[Cost, ...] = ()
    messages: tuple[Message, ...] = ()
    workload: str = ""
    origin: str = ""
    questions: str = ""
    problem: str = ""
    built: str = ""
    """The flags that the file's build has for it, and where they come from."""
    block: int | None = None
    """Threads of a block at the launch, where they are known."""
    draft: bool = False
    """Where there is no workload: whether a directive with blanks can be written for the user to fill in."""


def line_text(document: Document, number: int) -> bytes:
    """A 1-based line without its line end."""
    starts = document.line_starts
    end = starts[number] if number < len(starts) else len(document.text)
    return document.text[starts[number - 1] : end].rstrip(b"\r\n")
