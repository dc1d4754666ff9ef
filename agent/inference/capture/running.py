"""The user's own program, run under the recorder: its input, output, terminal and exit code are its own."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from attrs import evolve, field, frozen

from agent.inference.capture.cupti import Cupti
from agent.inference.capture.errors import CaptureError
from agent.source.document import Document
from agent.workload import dtypes, types
from agent.workload.static.usage import device_symbols

PATIENCE = 5.0
"""Seconds between the request to end and the end by force."""

_PASSED_ON = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
LOOK = 0.25
"""Seconds between two looks at what was recorded so far."""

_NAME = re.compile(r"(?:::)?(?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)")


@frozen
class Wanted:
    """What is recorded. Of each kernel the first launch (``per_shape``) of each of the first ``shapes`` different
    shapes (grid, block, shared bytes, sizes that the arguments point to); or its launch number ``launch`` alone.
    ``buffer`` and ``total``: most bytes of one buffer, and of all of one process. ``kernels``: bare names, all where
    there are none.
    ``symbols`` are variables of the kernels' module. ``sizes``: bytes of each parameter, by the kernel's bare name, for
    drivers that do not tell."""

    kernels: tuple[str, ...] = ()
    launch: int = 0
    per_shape: int = 1
    shapes: int = 3
    buffer: int = 1 << 30
    total: int = 4 << 30
    after: bool = False
    symbols: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(factory=dict)


@frozen
class Ended:
    """How the program ended: its exit code (128 and the signal's number where a signal ended it), and what we did to
    it."""

    code: int
    note: str = ""


def bare(kernel: str) -> str:
    """The last part of a kernel's name. Raises CaptureError for what is none."""
    match = _NAME.fullmatch(kernel.strip())
    if match is None:
        raise CaptureError(f"`{kernel}` is no kernel's name; write `softmax` or `ns::softmax`", machine=False)
    return match[1]


def told_by(document: Document, wanted: Wanted) -> Wanted:
    """``wanted`` with what the user's file tells beside: parameter sizes, and the variables that kernels use."""
    sizes: dict[str, tuple[int, ...]] = {}
    for kernel in document.kernels:
        found = [
            8 if one.pointer_depth else _bytes(types.parameter_dtype(document, kernel, one, ()))
            for one in kernel.parameters
        ]
        if found and all(found):
            sizes[kernel.name] = tuple(found)
    symbols = tuple(dict.fromkeys(symbol[0] for symbol in device_symbols(document)))
    return evolve(wanted, sizes=sizes, symbols=symbols)


def _bytes(dtype: str | None) -> int:
    return 0 if dtype is None else dtypes.size_of(dtype)


@contextlib.contextmanager
def folder(chosen: Path | None, cache: Path) -> Iterator[Path]:
    """A private, empty folder: ``chosen``, or one below ``cache`` that is gone afterwards. Raises CaptureError."""
    try:
        if chosen is not None:
            chosen.mkdir(parents=True, exist_ok=True, mode=0o700)
            if any(chosen.iterdir()):
                raise CaptureError(f"{chosen} is not empty: name a new folder with --out", machine=False)
            chosen.chmod(0o700)
            yield chosen.resolve()
            return
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = tempfile.TemporaryDirectory(dir=cache, prefix="run-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CaptureError(f"no folder to capture into: {chosen or cache}: {error.strerror}", machine=False) from None
    with temporary as made:
        yield Path(made).resolve()


def record(
    command: Sequence[str], place: Path, wanted: Wanted, recorder: Path, cupti: Cupti, seconds: float | None = None,
    quiet: bool = False, enough: Callable[[], bool] | None = None,
) -> Ended:  # fmt: skip
    """Run ``command`` until it ends, for ``seconds``, or until ``enough`` says that all that is wanted was recorded
    (then its exit code is taken for 0). ``quiet``: its standard output goes to standard error.

    Ctrl-C is the program's own affair (it is in the terminal's foreground as we are); a second one ends it. Raises
    CaptureError where it cannot be started.
    """
    environment = _environment(place, recorder)
    _configure(place, wanted, cupti)
    with _signals() as asked:
        try:
            running = subprocess.Popen(list(command), env=environment, stdout=2 if quiet else None)
        except OSError as error:
            words = shlex.join(command)
            raise CaptureError(f"`{words}` cannot be started: {error.strerror or error}", machine=False) from None
        note = _until_end(running, asked, seconds, enough)
    code = 0 if note == RECORDED else running.returncode
    return Ended(code if code >= 0 else 128 - code, note)


def _environment(place: Path, recorder: Path) -> dict[str, str]:
    other = os.environ.get("CUDA_INJECTION64_PATH")
    if other:
        raise CaptureError(
            f"CUDA_INJECTION64_PATH names another tool's library already ({other}), and the driver loads one alone: "
            "unset it first",
            machine=False,
        )
    return {**os.environ, "CUDA_INJECTION64_PATH": str(recorder), "CUDA_LSP_CAPTURE": str(place)}


def _configure(place: Path, wanted: Wanted, cupti: Cupti) -> None:
    lines = [
        f"cupti {cupti.library}",
        *(f"kernel {name}" for name in wanted.kernels),
        *(f"symbol {name}" for name in wanted.symbols),
        *(f"sizes {name} {' '.join(map(str, sizes))}" for name, sizes in wanted.sizes.items()),
        f"launch {wanted.launch}",
        f"per-shape {wanted.per_shape}",
        f"shapes {wanted.shapes}",
        f"buffer {wanted.buffer}",
        f"total {wanted.total}",
        f"after {int(wanted.after)}",
    ]
    try:
        (place / "config").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        (place / "config").chmod(0o600)
    except OSError as error:
        raise CaptureError(f"{place} cannot be written: {error.strerror}", machine=False) from None


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that came for us meanwhile, in order."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in _PASSED_ON}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


RECORDED = "the program was ended as soon as what was asked for had been recorded"


def _until_end(
    running: "subprocess.Popen[bytes]", came: list[int], seconds: float | None, enough: Callable[[], bool] | None
) -> str:
    """What we did to it. It is asked to end first, and made to after PATIENCE."""
    begun = looked = time.monotonic()
    deadline = None if seconds is None else begun + seconds
    seen, note = 0, ""
    while True:
        try:
            running.wait(0.05)
            return note
        except subprocess.TimeoutExpired:
            pass
        if len(came) > seen:
            seen = len(came)
            _pass_on(running, came)
        now, over = time.monotonic(), ""
        if deadline is not None and now >= deadline:
            over = f"the program was ended after {seconds:g} s, as asked"
        elif enough is not None and not note and now - looked >= LOOK:
            looked = now
            over = RECORDED if enough() else ""
        if over and not note:
            note = over
            running.terminate()
            deadline = now + PATIENCE
        elif over:
            running.kill()
            deadline = None


def _pass_on(running: "subprocess.Popen[bytes]", came: list[int]) -> None:
    """The terminal sends Ctrl-C to the program as well, so the first is not sent twice; who asks again means it."""
    if came[-1] != signal.SIGINT:
        running.terminate()
    elif came.count(signal.SIGINT) == 1:
        if not _in_foreground():
            running.send_signal(signal.SIGINT)
    elif came.count(signal.SIGINT) == 2:
        running.terminate()
    else:
        running.kill()


def _in_foreground() -> bool:
    """Whether we are what the terminal's keys go to."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
