"""What this machine can do for us, what is missing, and the command that mends it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from attrs import evolve, frozen

from agent.execution import gpu, toolkit
from agent.execution.children.rights import KEEP
from agent.execution.compiler import pool
from agent.execution.compiler.slices import mend_compiler
from agent.execution.process import scrubbed

_ASK_SECONDS = 20


@frozen
class Capability:
    """``detail`` is a version, a list, or why it is missing; ``mend`` the command that mends it (empty if present).
    ``required``: nothing works without it."""

    name: str
    present: bool
    detail: str
    mend: str = ""
    required: bool = False


def capabilities() -> tuple[Capability, ...]:
    """Everything ``cuda-lsp doctor`` lists, most basic first. Starts child processes, but no context on a card."""
    required = (
        _python(),
        _package("tree-sitter", "pip install 'tree-sitter>=0.26.1,<0.27'"),
        _package("tree-sitter-cuda", "pip install 'tree-sitter-cuda>=0.21.2'"),
        _cupy(),
        _nvrtc(),
    )
    return (
        *(evolve(capability, required=True) for capability in required),
        _headers(),
        _rights(),
        _gpu(),
        _tool("nvcc", "whole files are not compiled", _TOOLKIT),
        _tool("ncu", "hardware counters are not read", _TOOLKIT),
        _tool("compute-sanitizer", "memory and races are checked in the emulator only", _SANITIZER, toolkit.sanitizer),
        _tool("clang-format", "rewrites keep the layout that they were written in", "pip install clang-format"),
    )


_FEWER = "use Linux 5.13 or newer"
_SANITIZER = "pip install nvidia-cuda-sanitizer-api"
_TOOLKIT = "install the CUDA toolkit: https://developer.nvidia.com/cuda-downloads"


def _python() -> Capability:
    enough = sys.version_info >= (3, 11)
    return Capability("python", enough, platform.python_version(), "" if enough else "install Python 3.11 or newer")


def _package(name: str, mend: str) -> Capability:
    try:
        return Capability(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Capability(name, False, "not installed", mend)


def _cupy() -> Capability:
    found = [(name, version) for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if (version := _version(name))]
    if not found:
        return Capability("CuPy", False, "not installed: nothing can be compiled", mend_compiler())
    detail = ", ".join(f"{name} {version}" for name, version in found)
    if len(found) > 1:
        extra = " ".join(name for name, _ in found[1:])
        return Capability("CuPy", False, f"several at once ({detail}): they break each other", f"pip uninstall {extra}")
    return Capability("CuPy", True, detail)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _nvrtc() -> Capability:
    compiler = pool.identity()
    if compiler.missing:
        return Capability("NVRTC", False, compiler.missing, mend_compiler())
    archs = f"sm_{compiler.archs[0]} to sm_{compiler.archs[-1]}" if compiler.archs else "no architecture"
    return Capability("NVRTC", True, f"{compiler.version[0]}.{compiler.version[1]}, {archs}")


def _headers() -> Capability:
    major = pool.identity().version[0] or None
    folders = toolkit.include_folders(major)
    if not folders:
        return Capability("CUDA headers", False, "cuda_runtime.h was not found", mend_compiler())
    return Capability("CUDA headers", True, str(folders[0]))


def _rights() -> Capability:
    """What keeps the processes that work on others' text from doing more than that; asked of one of them."""
    compiler = pool.identity()
    if not compiler.held_by:
        why = "; ".join(compiler.unheld) or "its process did not start"
        mend = f"unset {KEEP}" if KEEP in why else _FEWER
        return Capability("fewest rights", False, f"compiler and runners keep yours: {why}", mend)
    held = " and ".join(compiler.held_by)
    detail = f"{held}: compiler and runners have no network and no other program, and change no file"
    return Capability("fewest rights", True, "; ".join((detail, *(f"not {why}" for why in compiler.unheld))))


def _gpu() -> Capability:
    reason = gpu.why_no_gpu()
    if reason is not None:
        mend = mend_compiler() if "CuPy" in reason else "install the driver: https://www.nvidia.com/drivers"
        return Capability("GPU", False, f"{reason}; kernels run in the emulator", mend)
    card = gpu.open_gpu()
    assert card is not None
    version = f"{card.card.driver // 1000}.{card.card.driver % 1000 // 10}"
    driver = _first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
    words = f"driver {driver} (CUDA {version})" if driver else f"driver for CUDA {version}"
    return Capability("GPU", True, f"{card.name}, {card.arch}, {card.card.memory / 1e9:.0f} GB, {words}")


def _tool(name: str, without: str, mend: str, find: Callable[[str], Path | None] = toolkit.tool) -> Capability:
    place = find(name)
    if place is None:
        return Capability(name, False, f"not found: {without}", mend)
    return Capability(name, True, _version_of(place) or str(place))


def _version_of(program: Path) -> str:
    lines = _output([str(program), "--version"]).splitlines()
    telling = [line.strip() for line in lines if "release" in line.lower() or "version" in line.lower()]
    return telling[0] if telling else (lines[0].strip() if lines else "")


def _first_line(command: list[str]) -> str:
    return next(iter(_output(command).splitlines()), "").strip() if shutil.which(command[0]) else ""


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, env=scrubbed(os.environ), capture_output=True, text=True, errors="replace", timeout=_ASK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
