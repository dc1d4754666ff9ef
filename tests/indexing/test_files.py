"""Which files of a workspace are read, and as what text."""

import os
import queue
from pathlib import Path

import pytest

from cuda_lsp.indexing import files
from cuda_lsp.indexing.files import LARGEST, Looking, Unread, as_utf8, read
from cuda_lsp.terminal.hints.walk import Problem, walk

KERNEL = "__global__ void k() {}\n"


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(KERNEL)


def seen(*folders: Path) -> list[str]:
    return sorted(Path(one).relative_to(folders[0]).as_posix() for one in found(*folders) if isinstance(one, str))


def found(*folders: Path, most: int = 1000) -> list[str | Problem]:
    looking = Looking([f"{one}/" for one in folders], most)
    return list(iter(lambda: looking.next(60), None))


def test_sources_and_headers_but_no_builds_and_nothing_of_others(tmp_path: Path) -> None:
    make(tmp_path, "a.cu", "b.CUH", "inc/c.hpp", "main.cpp", "notes.txt", "builds/y.cu")
    make(tmp_path, ".git/x.cu", "build/x.cu", "node_modules/x.cu", "cmake-build-debug/x.cu", "third/_deps/x.cu")
    assert seen(tmp_path) == ["a.cu", "b.CUH", "builds/y.cu", "inc/c.hpp"]


def test_what_git_ignores(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a.cu",
        "gen/b.cu",
        "gen/keep.cu",
        "sub/c.cu",
        "sub/d_gen.cu",
        "sub/deep/only.cu",
        "out/e.cu",
        "only.cu",
    )
    (tmp_path / ".gitignore").write_text("# generated\n\n*_gen.cu\n/out\ngen/*\n!gen/keep.cu\n!\n/\n[\n")
    (tmp_path / "sub" / ".gitignore").write_text("/deep/only.cu\n")
    assert seen(tmp_path) == ["a.cu", "gen/keep.cu", "only.cu", "sub/c.cu"]


def test_a_folder_that_was_opened_is_looked_through_whatever_it_is_called(tmp_path: Path) -> None:
    make(tmp_path, "build/a.cu", "build/build/b.cu")
    assert seen(tmp_path / "build") == ["a.cu"]


def test_each_file_once_though_one_folder_lies_in_another(tmp_path: Path) -> None:
    make(tmp_path, "sub/a.cu", "b.cu")
    assert seen(tmp_path, tmp_path / "sub") == ["b.cu", "sub/a.cu"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_links_lead_nowhere(tmp_path: Path) -> None:
    make(tmp_path, "inside/a.cu", "outside/secret.cu")
    (tmp_path / "inside" / "loop").symlink_to(tmp_path / "inside")
    (tmp_path / "inside" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "inside" / "secret.cu").symlink_to(tmp_path / "outside" / "secret.cu")
    assert seen(tmp_path / "inside") == ["a.cu"]
    with pytest.raises(Unread):
        read(str(tmp_path / "inside" / "secret.cu"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (one,) = found(tmp_path / "none")
    assert isinstance(one, Problem) and one.message == "does not exist"


def test_more_folders_than_anybody_means(tmp_path: Path) -> None:
    make(tmp_path, "a/1.cu", "b/2.cu", "c/3.cu")
    *files, said = found(tmp_path, most=2)
    assert len(files) == 2
    assert isinstance(said, Problem) and said.message.startswith("there are more than 2 folders")


def test_nobody_waits_for_the_rest(tmp_path: Path) -> None:
    looking = Looking([str(tmp_path)])
    looking.stop()
    assert looking.next(60) is None
    with pytest.raises(queue.Empty):
        looking.next(0.0)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfint x;", "int x;"),
        ("größe".encode(), "größe"),
        ("größe".encode("latin-1"), "größe"),
        (b"\xff\xfe" + "größe 🚀".encode("utf-16-le"), "größe 🚀"),
        (b"\xfe\xff" + "größe".encode("utf-16-be"), "größe"),
    ],
)
def test_texts_in_other_encodings(data: bytes, expected: str) -> None:
    assert as_utf8(data).decode() == expected


def test_what_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(Unread, match="binary"):
        as_utf8(b"\x7fELF\0\1")
    (tmp_path / "long.cu").write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(Unread, match="longer than 2 MiB"):
        read(str(tmp_path / "long.cu"))
    with pytest.raises(Unread, match="cannot be read"):
        read(str(tmp_path / "none.cu"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.cu")
        assert read(str(tmp_path / "pipe.cu")) == b"", "nobody waits for a pipe"


def test_folders_as_clients_spell_them() -> None:
    assert files.folder_path("/a/b/") == files.folder_path("/a//b") == "/a/b"
    assert files.folder_path("/") == "/"


def test_a_file_that_is_reached_in_two_ways_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "w/a.cu", "w/inner/b.cu")
    (tmp_path / "link").symlink_to(tmp_path / "w", target_is_directory=True)
    ways = (tmp_path / "w", tmp_path / "link", tmp_path / "w" / "inner")
    assert sorted(map(str, found(*ways))) == [str(tmp_path / "w" / "a.cu"), str(tmp_path / "w" / "inner" / "b.cu")]
    monkeypatch.chdir(tmp_path)
    named = ("w", ".", "link/inner", str(tmp_path / "w" / "a.cu"))
    told = [one for one in walk(named, lambda *_: False) if isinstance(one, str)]
    assert told == [str(Path("w", "a.cu")), str(Path("w", "inner", "b.cu"))]
