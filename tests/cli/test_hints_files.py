"""Which files are looked at, and what does not stop the command: loops, locked folders, binaries, odd encodings."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import parse
from cuda_lsp.settings import Settings
from cuda_lsp.terminal.hints.exclude import excluded_within, patterns
from cuda_lsp.terminal.hints.reported import found_in
from tests.cli.hinting import FINE, LINE, RULES, SLOW, Hints, hints, put

__all__ = ["hints"]


def _paths(out: str) -> list[str]:
    return [line.split(":")[0].replace(os.sep, "/") for line in out.splitlines()]


def test_headers_are_looked_at_where_they_hold_kernels(hints: Hints) -> None:
    for name in ("a.h", "b.hpp", "c.inl", "d.CU", "notes.txt", "e.cpp"):
        put(name)
    put("plain.h", "int f(double x) { return x * 0.1; }\n")
    assert _paths(hints(".")[1]) == ["a.h", "b.hpp", "c.inl", "d.CU"]
    assert _paths(hints("e.cpp")[1]) == ["e.cpp"]


def test_build_folders_and_hidden_ones_are_left_out(hints: Hints) -> None:
    for name in ("build/a.cu", ".git/b.cu", "x/node_modules/c.cu", "cmake-build-debug/d.cu", "src/builder/e.cu"):
        put(name)
    assert _paths(hints(".")[1]) == ["src/builder/e.cu"]
    assert _paths(hints("build")[1]) == ["build/a.cu"]
    assert _paths(hints(".", "--exclude", "!build/")[1]) == ["build/a.cu", "src/builder/e.cu"]


def test_what_a_pattern_excludes_is_left_out_by_name_too(hints: Hints) -> None:
    put("gen/a.cu")
    put("b.cu")
    code, out, err = hints("gen/a.cu", "b.cu", "--exclude", "gen/")
    assert (code, _paths(out)) == (1, ["b.cu"])
    assert "named paths that a pattern excludes: 1" in err


@pytest.mark.parametrize(
    ("glob", "path", "is_left_out"),
    [
        ("gen", "gen", True),
        ("gen", "a/gen/k.cu", True),
        ("gen/", "gen", False),
        ("*.cuh", "a/b.cuh", True),
        ("*.cuh", "a/b.cu", False),
        ("/a", "a/k.cu", True),
        ("/a", "b/a/k.cu", False),
        ("a/*.cu", "a/k.cu", True),
        ("a/*.cu", "a/b/k.cu", False),
        ("a/**/k.cu", "a/k.cu", True),
        ("a/**/k.cu", "a/b/c/k.cu", True),
        ("**/c/*.cu", "a/b/c/k.cu", True),
        ("a/**", "a/b/k.cu", True),
        ("k?.cu", "k1.cu", True),
        ("k[0-3].cu", "k2.cu", True),
        ("k[!0-3].cu", "k2.cu", False),
        ("k[^0-3].cu", "k5.cu", True),
        ("k.c", "k_c", False),
        ("a.b", "axb", False),
    ],
)
def test_patterns_mean_what_they_mean_in_a_gitignore(glob: str, path: str, is_left_out: bool, tmp_path: Path) -> None:
    place = str(tmp_path.joinpath(*path.split("/")))
    assert excluded_within(place, False, patterns([glob], str(tmp_path))) == is_left_out


def test_the_last_pattern_that_meets_a_path_counts(tmp_path: Path) -> None:
    told = patterns(["*.cu", "!keep.cu"], str(tmp_path))
    assert excluded_within(str(tmp_path / "k.cu"), False, told)
    assert not excluded_within(str(tmp_path / "keep.cu"), False, told)


@given(glob=st.text(alphabet="ab*?[]!^-/.\\", max_size=12), path=st.text(alphabet="ab/.-", min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_pattern_is_taken_or_refused_in_words(glob: str, path: str) -> None:
    try:
        told = patterns([glob], os.sep)
    except ValueError as error:
        assert "`" in str(error)
    else:
        excluded_within(os.sep + path, False, told)


def test_links_are_not_followed_but_counted(hints: Hints) -> None:
    put("src/k.cu")
    try:
        Path("src/loop").symlink_to(Path("src").resolve(), target_is_directory=True)
        Path("src/self.cu").symlink_to("self.cu")
        Path("named").symlink_to("src", target_is_directory=True)
    except OSError:
        pytest.skip("no symbolic links here")
    code, out, err = hints("src")
    assert (code, _paths(out)) == (1, ["src/k.cu"])
    assert "symbolic links, which were not followed (name one to look at it): 2" in err
    assert _paths(hints("named")[1]) == ["named/k.cu"]
    code, out, err = hints("src/self.cu")
    assert (code, out) == (3, "")
    assert "self.cu: cannot be read" in err


def test_a_folder_that_cannot_be_read_is_said_and_is_no_success(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    put("locked/k.cu")
    put("open/k.cu", FINE)
    scan = os.scandir

    def refusing(path: str) -> object:
        if path == "locked":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("cuda_lsp.terminal.hints.walk.os.scandir", refusing)
    code, out, err = hints(".")
    assert (code, out) == (3, "")
    assert "locked: cannot be read: Permission denied" in err
    assert "files: 1" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\x7fELF\0\1", "is a binary file"), (SLOW.encode("utf-16"), "is UTF-16 text")],
    ids=["binary", "utf-16"],
)
def test_a_file_that_is_no_text_is_said_and_the_rest_looked_at(hints: Hints, content: bytes, words: str) -> None:
    put("a.cu", content)
    assert hints("a.cu")[0] == 3
    put("b.cu")
    code, out, err = hints(".")
    assert (code, _paths(out)) == (1, ["b.cu"])
    assert f"a.cu: {words}" in err


def test_what_is_not_there_is_said_and_the_rest_looked_at(hints: Hints) -> None:
    put("b.cu")
    code, out, err = hints("none.cu", "b.cu")
    assert (code, _paths(out)) == (1, ["b.cu"])
    assert "none.cu: does not exist" in err
    assert hints("none.cu")[0] == 3


def test_a_file_that_is_too_large_is_said(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda_lsp.terminal.hints.reported.LARGEST", 100)
    put("a.cu")
    code, out, err = hints(".")
    assert (code, out, "exclude it" in err) == (3, "", True)


def test_latin_1_is_read_and_counted_by_characters(hints: Hints) -> None:
    put("k.cu", SLOW.replace("if (i", "/* ü */ if (i").encode("latin-1"))
    assert hints("k.cu")[1].startswith("k.cu:3:38: warning A1 ")  # eight characters further on


def test_windows_line_ends_and_a_byte_order_mark_change_no_place(hints: Hints) -> None:
    put("k.cu", b"\xef\xbb\xbf" + SLOW.replace("\n", "\r\n").encode())
    assert hints("k.cu")[1].startswith(f"k.cu:{LINE}")
    one_line = SLOW.replace("\n", " ")
    put("k.cu", b"\xef\xbb\xbf" + one_line.encode())
    assert hints("k.cu")[1].startswith(f"k.cu:1:{one_line.index('0.1;') + 1}: ")


@given(before=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="*\\\r\n\0"), max_size=12))
@settings(max_examples=30, deadline=None)
def test_columns_count_utf_16_units(before: str) -> None:
    text = SLOW.replace("if (i", f"/*{before}*/ if (i")
    (found,) = found_in(parse(text.encode(), "k.cu"), Settings(select=RULES)).findings
    line = text.split("\n")[2]
    assert (found.place.line, found.place.column) == (3, 1 + len(line[: line.index("0.1;")].encode("utf-16-le")) // 2)


def test_names_that_are_odd_are_shown_and_stay_one_line(hints: Hints) -> None:
    name = "a b\x1b[31m,%\n:c.cu"
    try:
        put(name)
    except OSError:
        pytest.skip("no such names here")
    assert hints(".")[1].count("\n") == 1
    assert "\x1b" not in hints(".")[1]
    command = hints(".", "--format", "github")[1]
    assert command.count("\n") == 1
    assert "%2C%25%0A%3Ac.cu,line=3,endLine=3,col=30,endColumn=33,title=A1 " in command
    (finding,) = json.loads(hints(".", "--json")[1])["findings"]
    assert finding["path"] == name
