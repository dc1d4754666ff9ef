"""compute-sanitizer as a request to a device that has it: which tool, and what it reported."""

import re
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from attrs import evolve, frozen

from agent.execution.device import NOWHERE, Fault, Request, Where

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
"""Its tools (Compute Sanitizer user manual, "Compute Sanitizer Tools")."""

PREFIX = "========="

_PLACE = re.compile(
    r"\bat (?:\[clone .*?\] )?(?P<name>[^\s(+]+)[^+]*?(?:\+|:)0x[0-9a-f]+(?: in (?P<file>.*?):(?P<line>\d+))?"
)
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_ACCESS = re.compile(r"(?:Potential i|I)nvalid __\w+__ (\w+)")
_SAYS_NOTHING = (
    *("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY"),
    *("Warning: Detected overflow", "Program hit", "Error: process", "Target application", "Tracking kernels"),
)
_BROKEN = ("Internal Sanitizer Error", "Error: Target application terminated", "Error: No attachable", "Unable to")


@frozen
class Sanitized:
    """What one tool said of one run. ``status``: ``ok`` (it watched the whole run; ``faults`` are its reports),
    ``cancelled``, or ``unavailable`` with a ``message`` why it saw nothing."""

    status: str
    faults: tuple[Fault, ...] = ()
    message: str = ""


@runtime_checkable
class Sanitizes(Protocol):
    """A device that can run programs under compute-sanitizer."""

    def sanitize(self, request: Request, tool: str) -> Sanitized:
        """Run it under one tool, each buffer in an allocation of its own size that nothing has written to but its
        contents. Never raises for what the program does."""
        ...


def read_log(log: str) -> Sanitized:
    """A log as compute-sanitizer writes it. Reports of one kind at one line of a kernel are counted as one."""
    found: dict[tuple[str, str, str, int], Fault] = {}
    for head, details in _reports(log):
        if head.startswith(_BROKEN):
            return Sanitized("unavailable", message=head)
        if head.startswith(_SAYS_NOTHING):
            continue
        fault = _fault(head, details)
        key = (fault.kind, fault.kernel, fault.where.file, fault.where.line)
        known = found.get(key)
        found[key] = fault if known is None else evolve(known, count=known.count + 1)
    if "SUMMARY:" not in log:
        return Sanitized("unavailable", message="it did not come to the end of its report")
    return Sanitized("ok", tuple(found.values()))


def _reports(log: str) -> Iterator[tuple[str, list[str]]]:
    """(first line, lines that belong to it)."""
    head, details = "", []
    for line in log.splitlines():
        if not line.startswith(PREFIX):
            continue
        said = line[len(PREFIX) :]
        if said.startswith("    ") and head:
            details.append(said.strip())
        elif said.strip():
            if head:
                yield head, details
            head, details = said.strip(), []
    if head:
        yield head, details


def _fault(head: str, details: list[str]) -> Fault:
    places = [found for line in (head, *details) if (found := _PLACE.search(line)) is not None]
    thread = next((found for line in details if (found := _THREAD.search(line)) is not None), None)
    wheres = [_where(place, thread) for place in places]
    kernel = places[0]["name"] if places else ""
    kind = _kind(head, details)
    other = wheres[1] if kind == "shared-memory race" and len(wheres) > 1 else None
    words = " ".join(line for line in details if line.startswith(("Address", "and is ")))
    return Fault(kind, kernel, wheres[0] if wheres else NOWHERE, f"{head}. {words}".strip(". "), other)


def _kind(head: str, details: list[str]) -> str:
    access = _ACCESS.match(head)
    if access is not None:
        if any("is misaligned" in line for line in details):
            return "misaligned access"
        return "out-of-bounds read" if access[1] == "read" else "out-of-bounds write"
    lowered = head.lower()
    if "race reported" in lowered or "hazard detected" in lowered:
        return "shared-memory race"
    if lowered.startswith("uninitialized"):
        return "uninitialised read"
    return "divergent barrier" if lowered.startswith("barrier error") else "reported by compute-sanitizer"


def _where(place: re.Match[str], thread: re.Match[str] | None) -> Where:
    numbers = [int(number) for number in thread.groups()] if thread is not None else [0] * 6
    at, block = (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])
    return Where(place["file"] or "", int(place["line"] or 0), block, at)
