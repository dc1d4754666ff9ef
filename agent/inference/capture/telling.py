"""What a capture lacks, and why, in words."""

from collections.abc import Iterator

from agent.inference.capture.launches import KEPT, Capture, Launch, Memory, Process

UNSEEN = (
    "the recorder saw no CUDA in the program: it may use none, clear its environment (sudo, a container, ssh), or end "
    "before its first CUDA call"
)


def notes(capture: Capture) -> tuple[str, ...]:
    """Everything that was seen and not recorded, and all that went wrong; once each."""
    if not capture.processes:
        return (UNSEEN,)
    return tuple(dict.fromkeys(note for process in capture.processes for note in _of(process)))


def _of(process: Process) -> Iterator[str]:
    for trouble in process.troubles:
        yield f"nothing was recorded in process {process.pid}: {trouble}{_advice(trouble)}"
    if process.graphs:
        yield f"{_times(process.graphs, 'launch')} of captured graphs: the kernels in a graph are not recorded"
    if process.in_capture:
        yield (
            f"{_times(process.in_capture, 'launch')} while a graph was being captured: not recorded, as looking would "
            "break the graph"
        )
    if process.old_calls:
        yield f"{_times(process.old_calls, 'launch')} through calls that are not recorded (cuLaunchGrid and its like)"
    if process.beyond:
        yield f"{_times(process.beyond, 'launch')} beyond the first of each shape: not recorded (--shapes, --launch)"
    if process.counts is None and not process.troubles:
        yield f"process {process.pid} crashed, was killed, or replaced itself: how often it launched is not known"
    if process.torn:
        yield f"the log of process {process.pid} ends in the middle: what comes before is used"
    if not process.kernels and not process.troubles:
        yield f"process {process.pid} launched no kernel"
    for launch in process.launches:
        yield from _contents(launch)


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 'es'}"


def _advice(trouble: str) -> str:
    if "MULTIPLE_SUBSCRIBERS" in trouble:
        return "; another profiler is at work in it: capture without that"
    if "CUPTI" in trouble:
        return "; a CUPTI of the driver's own CUDA version may help (`cuda-lsp doctor` shows both)"
    return ""


def _contents(launch: Launch) -> Iterator[str]:
    what = f"launch {launch.number} of {launch.readable}"
    if launch.layout == "unknown":
        yield f"{what}: this driver does not tell the parameters (12.4 is needed); name the file with --file"
    for memory in (*(one.memory for one in launch.arguments), *(symbol.memory for symbol in launch.symbols)):
        if memory is not None and memory.held not in (KEPT, "no extent"):
            yield f"{what}: contents of {memory.extent} bytes were not recorded: {why_not(memory)}"


def why_not(memory: Memory) -> str:
    """Why the contents of an allocation are not there."""
    reasons = {
        "too large": "more than --max-buffer allows",
        "over the total": "more than is left of --max-total",
        "disk": "the disk is full, or the capture's folder cannot be written",
        "copy failed": f"the driver could not copy them (CUDA error {memory.code})",
    }
    return reasons.get(memory.held, "they are not in the capture's folder")
