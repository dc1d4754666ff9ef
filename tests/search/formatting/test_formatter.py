"""What is written follows the user's ``.clang-format``; whatever goes wrong, it stays as it was and that is said."""

import os
import stat
import sys
from pathlib import Path

import pytest

from agent.search.formatting import tool
from agent.search.formatting.formatter import formatter, unformatted
from agent.search.formatting.tool import formatter_for, style_file
from agent.source.document import Document, parse

STYLE = "BasedOnStyle: Google\nColumnLimit: 60\n"
BASE = """\
#include  <vector>
#include  <cstdio>
__global__ void k(float* x,   int n) {
  int   i = threadIdx.x;
  if (i < n)   x[i] = 1.0f;
}
"""
OLD = "  if (i < n)   x[i] = 1.0f;\n"
NEW = "  if (i < n) x[i] = a_function_of_a_long_name(x[i], n, 1.0f);\n"
posix = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins for the tool are shell scripts")


def project(folder: Path, style: str | None = STYLE) -> tuple[Document, Document]:
    """A file with a rewritten line, in a folder below the style's."""
    if style is not None:
        (folder / ".clang-format").write_text(style)
    (folder / "src").mkdir()
    path = str(folder / "src" / "k.cu")
    return parse(BASE.encode(), path), parse(BASE.replace(OLD, NEW).encode(), path)


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    place = folder / name
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return place


def told(replacements: str) -> str:
    """A tool that asks for these replacements; OURS is where the rewritten line's text begins."""
    ours = str(BASE.index("if ("))
    return f'cat > /dev/null; echo "<replacements>{replacements.replace("OURS", ours)}</replacements>"'


def alone_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), "/bin", "/usr/bin"]))


def made(base: Document, document: Document, **options: float) -> tuple[str, list[str]]:
    notes: list[str] = []
    apply = formatter(base.path, notes.append, **options)
    return apply(document, base).text.decode(), notes


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_lines_that_are_written_follow_the_style_and_no_others(tmp_path: Path, end: str) -> None:
    base, document = (parse(one.text.replace(b"\n", end.encode()), one.path) for one in project(tmp_path))
    text, notes = made(base, document)
    wanted = NEW.replace("(i < n) ", "(i < n)\n    ")
    assert notes == [] and text == BASE.replace(OLD, wanted).replace("\n", end)


def test_without_a_style_nothing_is_changed(tmp_path: Path) -> None:
    base, _ = project(tmp_path, None)
    if style_file(base.path) is None:  # unless somebody has one above the folder of temporary files
        assert formatter(base.path, pytest.fail) is unformatted
    assert formatter("", pytest.fail) is unformatted


def test_the_nearest_style_counts_and_it_may_turn_formatting_off(tmp_path: Path) -> None:
    base, document = project(tmp_path)
    (tmp_path / "src" / "_clang-format").write_text("DisableFormat: true\n")
    assert style_file(base.path) == tmp_path / "src" / "_clang-format"
    assert made(base, document) == (document.text.decode(), [])


def test_a_style_that_is_broken_is_said_once(tmp_path: Path) -> None:
    base, document = project(tmp_path, "BasedOnStyle: [nonsense\n")
    notes: list[str] = []
    apply = formatter(base.path, notes.append)
    assert [apply(document, base).text for _ in range(4)] == [document.text] * 4
    (note,) = notes
    assert note.startswith(f"not formatted as {tmp_path / '.clang-format'} says: ") and "failed" in note


@posix
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exec sleep 60", "did not finish within 0.5 s"),
        ("cat > /dev/null; echo 'no such option' >&2; exit 3", "failed: no such option"),
        ("kill -9 $$", "failed: exit code -9"),
        ("cat > /dev/null; echo 'int lost;'", "answered with what is no edit of the file"),
        (told("<replacement offset='9999' length='1'/>"), "answered with what is no edit of the file"),
        (told("<replacement offset='-3' length='4'/>"), "answered with what is no edit of the file"),
        (told("<replacement offset='OURS' length='6'>other</replacement>"), "it asks for other words"),
        (told("<replacement offset='OURS' length='0'>{ </replacement>"), "it asks for other words"),
    ],
)
def test_a_tool_that_fails_costs_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str) -> None:
    (tmp_path / "project").mkdir()
    base, document = project(tmp_path / "project")
    script(tmp_path / "bin", "clang-format", text)
    alone_on_path(tmp_path / "bin", monkeypatch)
    result, notes = made(base, document, seconds=0.5 if "sleep" in text else 30)
    assert result == document.text.decode() and len(notes) == 1 and why in notes[0]


@posix
def test_a_tool_that_touches_other_lines_is_followed_in_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    base, document = project(tmp_path / "project")
    ours, theirs = BASE.index("  if"), BASE.index("  <vector>")
    asked = f"<replacement offset='{theirs}' length='2'> </replacement>"
    asked += f"<replacement offset='{ours - 1}' length='3'>&#10; </replacement>"
    script(tmp_path / "bin", "clang-format", told(asked))
    alone_on_path(tmp_path / "bin", monkeypatch)
    text, notes = made(base, document)
    assert notes == [] and text == document.text.decode().replace(NEW, NEW.replace("  ", " "))


@posix
def test_the_projects_own_folder_gives_no_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    base, _ = project(tmp_path)
    mine = script(tmp_path / "bin", "clang-format", "cat")
    alone_on_path(mine.parent, monkeypatch)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    assert formatter_for(base.path) not in (mine, mine.resolve())
    elsewhere.mkdir()
    (elsewhere / "clang-format").symlink_to(mine)
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", ".", str(elsewhere)]))
    monkeypatch.chdir(tmp_path)
    assert formatter_for(base.path) not in (mine, Path("bin/clang-format"), elsewhere / "clang-format")
    theirs = script(elsewhere / "bin", "clang-format", "cat")
    monkeypatch.setenv("PATH", str(theirs.parent))
    assert formatter_for(base.path) == theirs


def test_without_a_tool_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, document = project(tmp_path)
    monkeypatch.setattr(tool, "_installed", lambda: [])
    monkeypatch.setenv("PATH", str(tmp_path))
    text, notes = made(base, document)
    assert text == document.text.decode()
    assert notes == [
        f"{tmp_path / '.clang-format'} applies, but there is no clang-format to follow it with: "
        "pip install clang-format"
    ]
