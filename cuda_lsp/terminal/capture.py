"""What a capture gives, for people and for ``--json``."""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from agent.inference.capture import naming, stating
from agent.inference.capture.launches import KEPT, Argument, Capture, Launch
from agent.source.document import Document
from agent.source.edits import Edit, apply_edits
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from agent.workload.directive import find_directive, format_directive
from agent.workload.errors import WorkloadError

MOST_SHOWN = 12


@frozen
class Seen:
    """One recorded launch. ``number`` counts the launches of its kernel in its process; ``arguments`` say of each
    parameter how many bytes it has and where it points to."""

    kernel: str
    process: int
    number: int
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[str, ...]


@frozen
class Directive:
    """The directive of one kernel of the file, or why there is none (``problem``)."""

    kernel: str
    line: int
    number: int
    text: str
    notes: tuple[str, ...]
    problem: str


FIELDS: dict[str, Any] = {
    "program": tuple[str, ...],
    "returned": int,
    "launches": tuple[Seen, ...],
    "directives": tuple[Directive, ...],
    "notes": tuple[str, ...],
}
"""What `--json` has beside the envelope."""


def seen(launch: Launch) -> Seen:
    return Seen(
        naming.spoken(launch), launch.process, launch.number, launch.device, launch.grid, launch.block, launch.shared,
        tuple(_argument(one) for one in launch.arguments),
    )  # fmt: skip


def _argument(one: Argument) -> str:
    if one.memory is None:
        return f"{len(one.data)} B {one.data[:8][::-1].hex()}" if len(one.data) <= 8 else f"{len(one.data)} B"
    memory = one.memory
    place = f" at byte {memory.offset}" if memory.offset else ""
    kind = "managed" if memory.managed else memory.kind
    held = "" if memory.held == KEPT else f", contents not recorded ({memory.held})"
    return f"{kind} {memory.extent} B{place}{held}"


def shown(found: Seen) -> str:
    """One line for people."""
    grid, block = ("x".join(map(str, _short(size))) for size in (found.grid, found.block))
    shared = f", {found.shared} B shared" if found.shared else ""
    card = f" on card {found.device}" if found.device > 0 else ""
    return f"{found.kernel} launch {found.number}{card}: {grid} blocks of {block}{shared}; {'; '.join(found.arguments)}"


def _short(size: tuple[int, int, int]) -> tuple[int, ...]:
    x, y, z = size
    return (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)


def directives(capture: Capture, document: Document, name: str | None) -> Iterator[Directive]:
    """For each kernel of the file that was recorded (or the named one) the directive of its first recorded launch that
    one can state; where none can be, why the first cannot. Raises OSError where contents cannot be kept."""
    kernels = [document.kernel(name)] if name else list(document.kernels)
    for kernel in kernels:
        matching = [one for one in capture.launches if naming.kernel_of(one, document) == kernel]
        problems = []
        for launch in matching:
            try:
                found = stating.state(launch, kernel, document)
            except WorkloadError as error:
                problems.append(Directive(kernel.qualified_name, kernel.line, launch.number, "", (), error.message))
                continue
            text = format_directive(found.workload)
            yield Directive(kernel.qualified_name, kernel.line, launch.number, text, found.notes, "")
            break
        else:
            yield from problems[:1]


def written(document: Document, found: Directive) -> bytes:
    """The file with the directive above its kernel. Raises WorkloadError where there is one already."""
    kernel = document.kernel(found.kernel)
    there = find_directive(document, kernel)
    if there is not None:
        raise WorkloadError(
            f"`{kernel.name}` has a directive already, at line {there.line}: delete it first, or put the new one in "
            "its place by hand"
        )
    start = _line_start(document, kernel)
    text = found.text.encode().replace(b"\n", line_end(document.text))
    return apply_edits(document.text, [Edit(Span(start, start), text)])


def _line_start(document: Document, kernel: Kernel) -> int:
    return document.text.rfind(b"\n", 0, kernel.span.start) + 1
