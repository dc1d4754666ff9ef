"""Machine code by source line: what NVIDIA's disassembler says of a build's cubin. Needs no GPU."""

import importlib.util
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PureWindowsPath

from agent.execution import toolkit
from agent.execution.compiler.result import Build
from agent.execution.leaving import scratch

SECONDS = 30.0

MISSING = (
    "machine code needs nvdisasm, which is not on this machine: pip install nvidia-cuda-nvdisasm, or put the bin "
    "folder of a CUDA toolkit on the PATH"
)

_SECTION = re.compile(r"^\.text\.(\S+):$")
_PLACE = re.compile(r'"(?P<file>[^"]*)", line (?P<line>\d+)')
_CODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s*(?P<text>.*?)\s*;\s*$")


class NoDisassembly(Exception):
    """There is no machine code to show; the message says why and what to do."""


def disassembler() -> Path | None:
    """nvdisasm from a wheel beside NVRTC's, whose version fits, else from a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in ("nvdisasm", "nvdisasm.exe"):
            for found in sorted(Path(place).glob(f"*/bin/{name}"), reverse=True):
                return found
    return toolkit.tool("nvdisasm")


def by_line(build: Build, kernels: Iterable[str], path: str) -> dict[int, tuple[str, ...]]:
    """Instructions by 1-based line of the file ``path``, of those kernels (as in ``build.entries``) and of functions
    that are called; in the order of the code. Raises NoDisassembly."""
    found: dict[int, list[str]] = {}
    for line, text in in_order(build, kernels, path):
        found.setdefault(line, []).append(text)
    return {line: tuple(texts) for line, texts in found.items()}


def in_order(build: Build, kernels: Iterable[str], path: str) -> tuple[tuple[int, str], ...]:
    """The same as pairs of line and instruction. Raises NoDisassembly."""
    program = disassembler()
    if program is None:
        raise NoDisassembly(MISSING)
    if not build.cubin:
        raise NoDisassembly(f"there is no machine code for {build.arch}, only PTX")
    others = set(build.entries.values()) - {build.entries.get(name, name) for name in kernels}
    return tuple((line, text) for section, line, text in read(_run(program, build), path) if section not in others)


def _run(program: Path, build: Build) -> str:
    with scratch() as folder:
        file = folder / "kernel.cubin"
        # CuPy takes the last byte for a terminating zero and leaves it away; the disassembler wants the file whole
        file.write_bytes(build.cubin + b"\0")
        try:
            done = subprocess.run(
                [program, "-c", "-gi", file],
                capture_output=True,
                timeout=SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoDisassembly(f"{program} did not finish within {SECONDS:g} s") from None
        except OSError as error:
            raise NoDisassembly(f"{program} cannot be run: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise NoDisassembly(f"{program} refuses the code of {build.compiler}: {' '.join(said) or 'it says nothing'}")
    return done.stdout.decode(errors="replace")


def read(listing: str, path: str) -> Iterator[tuple[str, int, str]]:
    """Section, line and text of each instruction of nvdisasm's listing with line information. Code that was inlined
    from another file counts where it was inlined into ``path``, else with the line before it."""
    name, section, line = name_of(path), "", 0
    places: list[tuple[str, int]] = []
    for row in listing.splitlines():
        if (begins := _SECTION.match(row)) is not None:
            section, line, places = begins[1], 0, []
        elif row.lstrip().startswith("//##"):
            places += [(name_of(place["file"]), int(place["line"])) for place in _PLACE.finditer(row)]
        elif (code := _CODE.match(row)) is not None:
            line = next((at for file, at in places if file == name), line)
            places = []
            if section and line and code["text"] != "NOP":
                yield section, line, " ".join(code["text"].split())


def name_of(path: str) -> str:
    """A file's name, wherever it is said to be: the compiler puts its own folder before relative paths."""
    return PureWindowsPath(path).name
