"""Folders of programs with a Makefile each: copied, built, and run under the recorder, a line of ``run`` at a time."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from agent.inference.capture.complete import complete
from agent.inference.capture.cupti import Cupti
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Capture
from agent.inference.capture.log import read_capture
from agent.inference.capture.running import Wanted, record, told_by
from agent.source.document import read

_BESIDE = re.compile(r"\.\./([\w+.-]+)")
_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".c", ".cc", ".inc", ".mk")
_RUN = re.compile(r"\s*(?:\w+=\S+ +)*\./")
BUILD_SECONDS = 240
STALLED = 6.0
"""Seconds without a launch that is new, after which the next line of several is run: the rest repeats, to be timed."""
NOT_LAUNCHED = "it was not launched (the program ended with {code})"
TIME_OVER = 124
"""What ``timeout`` returns."""


@frozen
class Recorder:
    """``seconds`` for all lines of one program; ``arch`` is what its Makefile calls ARCH."""

    library: Path
    cupti: Cupti
    seconds: float = field(factory=lambda: float(os.environ.get("CUDA_LSP_CAPTURED_RUN", "60")))
    arch: str = field(factory=lambda: os.environ.get("CUDA_LSP_CAPTURED_ARCH", "sm_90"))


def copied(root: Path, programs: Sequence[str], place: Path) -> Path:
    """The programs' folders, and those beside them that their files name."""
    for program in programs:
        shutil.copytree(root / program, place / program, dirs_exist_ok=True)
    beside = {
        name
        for program in programs
        for path in (place / program).rglob("*")
        if path.is_file() and (path.suffix in _SOURCES or path.name.startswith("Makefile"))
        for name in _BESIDE.findall(path.read_text("utf-8", "replace"))
    }
    for name in sorted(beside - set(programs)):
        if (root / name).is_dir() and not (place / name).exists():
            shutil.copytree(root / name, place / name)
    return place


def build(folder: Path, arch: str) -> str:
    """Why the program could not be built; empty where it could."""
    try:
        done = subprocess.run(
            ["make", "-C", str(folder), f"ARCH={arch}"], capture_output=True, text=True, errors="replace",
            timeout=BUILD_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not built: {type(error).__name__}"
    errors = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line.lower()]
    return "" if done.returncode == 0 else f"not built: {(errors or ['make failed'])[0][:160]}"


def lines(folder: Path, arch: str) -> list[list[str]]:
    """The commands of the target ``run`` that start a program of the folder, in order; the target itself where none
    can be told apart."""
    made = ["make", "--no-print-directory", "-C", str(folder), f"ARCH={arch}"]
    told = subprocess.run([*made, "-n", "run"], capture_output=True, text=True, errors="replace", check=False).stdout
    found = [line for line in told.replace("\\\n", " ").splitlines() if _RUN.match(line)]
    return [["sh", "-c", f"cd {folder} && {line}"] for line in found] or [[*made, "run"]]


def captured(folder: Path, into: Path, kernels: Sequence[tuple[str, str]], recorder: Recorder) -> tuple[Capture, str]:
    """The first launch of each of ``kernels`` (file and qualified name), recorded into the new folder ``into``, and why
    those that lack do."""
    failure = build(folder, recorder.arch)
    if failure:
        return Capture(()), failure
    into.mkdir(mode=0o700)
    bare = tuple(kernel.rpartition("::")[2] for _, kernel in kernels)
    wanted = Wanted(kernels=bare, shapes=1, buffer=256 << 20, total=1 << 30)
    documents = {file: read(str(folder / file)) for file in dict.fromkeys(file for file, _ in kernels)}
    for document in documents.values():
        told = told_by(document, wanted)
        wanted = evolve(told, symbols=(*wanted.symbols, *told.symbols), sizes={**wanted.sizes, **told.sizes})
    of = {file: [document.kernel(name) for at, name in kernels if at == file] for file, document in documents.items()}
    enough = complete(into, wanted, [(document, of[file]) for file, document in documents.items()])
    code = _run(lines(folder, recorder.arch), into, wanted, recorder, enough)
    capture = read_capture(into)
    troubles = [trouble for process in capture.processes for trouble in process.troubles]
    return capture, "; ".join(troubles) or NOT_LAUNCHED.format(code=code)


def _run(
    commands: Sequence[list[str]], into: Path, wanted: Wanted, recorder: Recorder, enough: Callable[[], bool]
) -> int:
    """How the last line ended that was run; a program of several processes ends with ``timeout``."""
    ends, code = time.monotonic() + recorder.seconds, TIME_OVER
    for command in commands:
        left = ends - time.monotonic()
        if left <= 0 or enough():
            break
        over = enough if command is commands[-1] else _either(enough, _stalled(into))
        timed = ["timeout", "-k", "2", f"{left:.1f}", *command]
        silent = ["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh", *timed]
        code = record(silent, into, wanted, recorder.library, recorder.cupti, enough=over).code
    return code


def _either(*ways: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: any(way() for way in ways)


def _stalled(into: Path) -> Callable[[], bool]:
    """Whether something was recorded in this run, and nothing more for a while."""
    before = _count(into)
    seen, since = before, time.monotonic()

    def stalled() -> bool:
        nonlocal seen, since
        now = _count(into)
        if now != seen:
            seen, since = now, time.monotonic()
        return seen > before and time.monotonic() - since >= STALLED

    return stalled


def _count(into: Path) -> int:
    try:
        return len(read_capture(into).launches)
    except CaptureError:
        return 0
