"""The recorder, built on the user's machine with the user's own compiler at first use, and kept."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

from agent.execution.process import scrubbed
from agent.inference.capture.cupti import Cupti
from agent.inference.capture.errors import CaptureError

SECONDS = 300
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
ALONE = ("-static-libstdc++", "-static-libgcc")
"""The program may bring a C++ library of its own, older than the compiler's (conda): the recorder needs none."""
_SOURCE = Path(__file__).with_name("injection.cpp")


def folder() -> Path:
    """``$XDG_CACHE_HOME/cuda-lsp/recorder``, or ``~/.cache/cuda-lsp/recorder``."""
    return Path(platformdirs.user_cache_dir("cuda-lsp", appauthor=False)) / "recorder"


def recorder(cupti: Cupti, compiler: str | None = None) -> Path:
    """The library that the driver is to load. Raises CaptureError where it cannot be built or kept."""
    chosen = compiler or find_compiler()
    place = folder() / f"{_key(chosen, cupti)}.so"
    try:
        if not _ours(place):
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _build(chosen, cupti, place)
    except OSError as error:
        raise CaptureError(f"the recorder cannot be kept at {place}: {error.strerror or error}") from None
    return place


def find_compiler() -> str:
    """The user's host compiler: ``$CXX``, ``g++``, ``clang++``, ``c++``. Raises CaptureError."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        if name and (found := shutil.which(name)):
            return found
    raise CaptureError(
        "no C++ compiler was found, and the recorder is built with yours: install g++ or clang++, or name one in CXX"
    )


def _ours(place: Path) -> bool:
    """Whether the library is there, and nobody else could have put it there."""
    try:
        found = place.lstat()
    except FileNotFoundError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _key(compiler: str, cupti: Cupti) -> str:
    """All that the library is made of."""
    made = hashlib.sha256()
    for path in sorted((_SOURCE, *_SOURCE.parent.glob("*.hpp"))):
        made.update(path.read_bytes() + b"\0")
    for told in (compiler, _version(compiler), *FLAGS, *map(str, cupti.includes), str(cupti.version)):
        made.update(told.encode("utf-8", "surrogateescape") + b"\0")
    return made.hexdigest()[:32]


def _version(compiler: str) -> str:
    return _run([compiler, "--version"], Path(compiler).parent).stdout


def _build(compiler: str, cupti: Cupti, place: Path) -> None:
    includes = [part for path in cupti.includes for part in ("-isystem", str(path))]
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as name:
        made = Path(name) / "recorder.so"
        command = [compiler, *FLAGS, *includes, str(_SOURCE), "-o", str(made), "-ldl", "-lpthread"]
        done = _run([*command, *ALONE], Path(name))
        if done.returncode != 0:
            done = _run(command, Path(name))  # a compiler without static libraries
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
            raise CaptureError(
                f"{compiler} could not build the recorder: {lines[0].strip() if lines else 'it said nothing'}; name "
                "another compiler in CXX"
            )
        made.chmod(0o500)
        made.replace(place)


def _run(command: list[str], place: Path) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, cwd=place, env=scrubbed(os.environ) | {"TMPDIR": str(place)}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CaptureError(f"{command[0]} did not build the recorder within {SECONDS} s") from None
    except OSError as error:
        raise CaptureError(f"{command[0]} cannot be run: {error.strerror}; name another compiler in CXX") from None
