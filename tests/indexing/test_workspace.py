"""The index of a workspace on disk: read once, kept, and what it is after any changes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_lsp.indexing import shelves
from cuda_lsp.indexing.answering import answer
from cuda_lsp.indexing.files import LARGEST
from cuda_lsp.indexing.messages import REFERENCES, SYMBOLS, Look, Progress, Question, Text
from cuda_lsp.indexing.workspace import Workspace

LONG_AGO = 1_000_000_000
KERNEL = "__global__ void k() {}\n"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "cuda-lsp" / "index"


def write(path: Path, text: str | bytes, when: int = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (when, when))


def built(folder: Path, workspace: Workspace | None = None) -> tuple[Workspace, Progress, list[str]]:
    """The index of a folder, how much it had to read, and what it said."""
    workspace, said = workspace or Workspace(), []
    workspace.look(Look((str(folder),)))
    while True:
        progress = workspace.work(0.0)
        said += progress.left
        if progress.ended:
            return workspace, progress, said


def symbols(workspace: Workspace) -> list[str]:
    items = answer(workspace, Question(SYMBOLS, "utf-8")).items
    return sorted(f"{Path(item.key).name}:{item.range.line} {item.name}" for item in items)


def test_what_was_read_is_kept(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "a.cu", KERNEL)
    write(tmp_path / "größe" / "b \udce9.cu", "\n" + KERNEL)
    _, first, _ = built(tmp_path)
    assert (first.found, first.to_read, first.read) == (2, 2, 2)
    again, second, _ = built(tmp_path)
    assert (second.found, second.to_read) == (2, 0)
    assert symbols(again) == ["a.cu:0 k", "b \udce9.cu:1 k"]
    write(tmp_path / "a.cu", "\n" + KERNEL, LONG_AGO + 1)
    (tmp_path / "größe" / "b \udce9.cu").unlink()
    third, progress, _ = built(tmp_path)
    assert progress.to_read == 1 and symbols(third) == ["a.cu:1 k"]
    assert len(list(cache.iterdir())) == 2


def test_a_file_that_was_new_when_it_was_read_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(KERNEL)
    built(tmp_path)
    assert built(tmp_path)[1].to_read == 1


def test_facts_that_cannot_be_read_are_read_off_the_file_again(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "a.cu", KERNEL)
    built(tmp_path)
    record = shelves.load(str(tmp_path))["a.cu"]
    shelves.save(str(tmp_path), [("a.cu", shelves.Record(record.stamp, b"other facts", record.rows))])
    workspace, progress, _ = built(tmp_path)
    assert progress.to_read == 1 and symbols(workspace) == ["a.cu:0 k"]


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_shelf_that_is_damaged_or_of_another_version(
    tmp_path: Path, cache: Path, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.cu", KERNEL)
    built(tmp_path)
    (shelf,) = cache.iterdir()
    if damage is None:
        monkeypatch.setattr(shelves, "SCHEMA", shelves.SCHEMA + 1)
    else:
        shelf.write_bytes(damage)
    workspace, progress, _ = built(tmp_path)
    assert progress.to_read == 1 and symbols(workspace) == ["a.cu:0 k"]
    assert built(tmp_path)[1].to_read == 0


def test_a_cache_that_cannot_be_written(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.cu", KERNEL)
    cache.parent.mkdir()
    cache.write_text("a file in its place")
    assert symbols(built(tmp_path)[0]) == ["a.cu:0 k"]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shelves.kept, "write", full)
    assert symbols(built(tmp_path)[0]) == ["a.cu:0 k"]


def test_what_is_passed_over_is_said_once(tmp_path: Path) -> None:
    write(tmp_path / "long.cu", b" " * (LARGEST + 1))
    write(tmp_path / "binary.cuh", b"\0\1\2")
    write(tmp_path / "a.cu", KERNEL)
    workspace, _, said = built(tmp_path)
    assert sorted(said) == [f"{tmp_path}/binary.cuh: a binary file", f"{tmp_path}/long.cu: longer than 2 MiB"]
    _, progress, again = built(tmp_path, workspace)
    assert again == [] and progress.to_read == 0 and symbols(workspace) == ["a.cu:0 k"]


def test_more_files_than_a_workspace_has(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.cu", KERNEL)
    workspace, progress, said = built(tmp_path, Workspace(most=2))
    assert progress.found == 2 and said == ["there are more than 2 files: the rest is not in the index"]
    assert symbols(workspace) == ["a.cu:0 k", "b.cu:0 k"]


def test_files_that_ended_a_process_are_avoided_and_told_before_they_are_read(tmp_path: Path) -> None:
    write(tmp_path / "a.cu", KERNEL)
    write(tmp_path / "b.cu", KERNEL)
    workspace = Workspace()
    workspace.look(Look((str(tmp_path),), (str(tmp_path / "a.cu"),)))
    while not (progress := workspace.work(0.0)).walked:
        pass
    assert (progress.read, progress.next) == (0, str(tmp_path / "b.cu"))
    assert workspace.work(0.0).ended and symbols(workspace) == ["b.cu:0 k"]


def test_a_fault_in_reading_one_file_costs_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda_lsp.indexing import workspace as module

    def faulty(text: bytes) -> object:
        if b"bad" in text:
            raise RecursionError("too deep")
        return read_facts(text)

    read_facts = module.read_facts
    monkeypatch.setattr(module, "read_facts", faulty)
    write(tmp_path / "a.cu", "// bad\n" + KERNEL)
    write(tmp_path / "b.cu", KERNEL)
    workspace, _, said = built(tmp_path)
    assert symbols(workspace) == ["b.cu:0 k"]
    assert said == [f"{tmp_path}/a.cu: a fault of cuda-lsp (RecursionError: too deep)"]


NAMES = ["a.cu", "b.cuh", "sub/c.cu"]
TEXTS = [
    KERNEL,
    "void f() { k<<<1, 1>>>(); }\n",
    '#include "b.cuh"\n__device__ int g() { return 1; }\n',
    "/* größe 🚀 */ __constant__ int n; __global__ void k() { g(); }\n",
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["disk", "text", "close", "look"]), st.sampled_from(NAMES), st.sampled_from([None, *TEXTS])
    ),
    max_size=10,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    yield (tmp_path_factory.mktemp("w") for _ in iter(int, 1))


@settings(max_examples=40)
@given(STEPS)
def test_after_any_changes_it_is_as_if_made_anew(
    folders: Iterator[Path], steps: list[tuple[str, str, str | None]]
) -> None:
    folder, texts = next(folders), {}
    workspace, _, _ = built(folder)
    for number, (step, name, text) in enumerate(steps):
        path = folder / name
        if step == "disk" and text is None:
            path.unlink(missing_ok=True)
        elif step == "disk":
            write(path, text or "", LONG_AGO + number)
        elif step == "text":
            texts[str(path)] = text or ""
        elif step == "close":
            texts.pop(str(path), None)
        else:
            built(folder, workspace)
        everything(workspace, texts)
    built(folder, workspace)
    shutil.rmtree(shelves.place(), ignore_errors=True)
    fresh, _, _ = built(folder)
    assert everything(workspace, texts) == everything(fresh, texts)


def everything(workspace: Workspace, texts: dict[str, str]) -> object:
    opened = tuple(Text(Path(key).as_uri(), key, text.encode()) for key, text in texts.items())
    known = answer(workspace, Question(SYMBOLS, "utf-16", texts=opened, gone=tuple(set(workspace._texts) - set(texts))))
    asked = [
        Question(REFERENCES, "utf-16", item.key, item.range.line, item.range.character, declarations=True)
        for item in known.items
    ]
    return sorted(map(repr, known.items)), [
        sorted(map(repr, answer(workspace, one).items)) for one in sorted(asked, key=repr)
    ]
