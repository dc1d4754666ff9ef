"""clang-format: which style applies to a file, which program formats it, and how it is run."""

import importlib.util
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from agent.execution import process
from agent.source.edits import Edit, apply_edits
from agent.source.includes import workspace_of
from agent.source.span import Span

STYLES = (".clang-format", "_clang-format")
SECONDS = 10.0
_NAME = "clang-format"


class NotFormatted(Exception):
    """The tool gave nothing; the message says why."""


def style_file(path: str) -> Path | None:
    """The style that applies to a file: that of the nearest folder above it that has one, as clang-format looks."""
    folder = Path(path).absolute().parent
    places = (above / name for above in (folder, *folder.parents) for name in STYLES)
    return next((place for place in places if place.is_file()), None)


def formatter_for(path: str) -> Path | None:
    """The user's own clang-format, as its version is that of their checks, else the one installed beside us. Never one
    of the project that the file belongs to: it may be anybody's."""
    workspace = workspace_of(path)
    found = (*map(Path, _on_path()), *_installed())
    return next((one for one in found if one.is_file() and not _belongs_to(one, workspace)), None)


def edits_of(tool: Path, path: str, text: bytes, lines: Sequence[tuple[int, int]], seconds: float) -> tuple[Edit, ...]:
    """What the tool would change in the 1-based ``lines`` (first and last of each stretch) of ``text``, a file at
    ``path``. Raises NotFormatted."""
    command = [
        str(tool), "--style=file", "--fallback-style=none", "--sort-includes=0", "--output-replacements-xml",
        f"--assume-filename={Path(path).absolute()}", *(f"--lines={first}:{last}" for first, last in lines),
    ]  # fmt: skip
    try:
        found = ElementTree.fromstring(_output(command, tool, text, seconds)).iter("replacement")
        edits = tuple(_edit(one) for one in found)
        apply_edits(text, edits)
    except (ElementTree.ParseError, ValueError) as error:
        raise NotFormatted(f"{tool} answered with what is no edit of the file ({error})") from None
    return edits


def _edit(replacement: ElementTree.Element) -> Edit:
    start, length = (int(replacement.get(name, "")) for name in ("offset", "length"))
    if start < 0 or length < 0:
        raise ValueError("an offset below zero")
    return Edit(Span(start, start + length), (replacement.text or "").encode())


def _output(command: list[str], tool: Path, text: bytes, seconds: float) -> bytes:
    try:
        with subprocess.Popen(
            command,
            cwd=tool.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=process.scrubbed(os.environ),
            start_new_session=True,
        ) as running:
            try:
                output, errors = running.communicate(text, seconds)
            finally:
                process.kill(running)
    except subprocess.TimeoutExpired:
        raise NotFormatted(f"{tool} did not finish within {seconds:g} s") from None
    except OSError as error:
        raise NotFormatted(f"{tool} cannot be run: {error.strerror or error}") from None
    if running.returncode != 0:
        said = next((line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()), "")
        raise NotFormatted(f"{tool} failed: {said.strip()[:200] or f'exit code {running.returncode}'}")
    return output


def _on_path() -> list[str]:
    """Each clang-format of the search path, but the starter of our own."""
    folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute() and not _is_ours(Path(folder))]
    found = (shutil.which(_NAME, path=folder) for folder in folders)
    return [one for one in found if one is not None]


def _installed() -> list[Path]:
    """The program in the package clang-format."""
    spec = importlib.util.find_spec("clang_format")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "data" / "bin"
    return [folder / _NAME, folder / f"{_NAME}.exe"]


def _belongs_to(tool: Path, workspace: Path) -> bool:
    return not _is_ours(tool) and any(one.is_relative_to(workspace) for one in (tool.absolute(), tool.resolve()))


def _is_ours(place: Path) -> bool:
    """Whether it is part of the Python installation that this runs from, which may lie in the project's folder."""
    ours = (Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "scripts"))
    return any(place.is_relative_to(folder) for folder in ours)
