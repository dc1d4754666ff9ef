"""``compile_commands.json``: which entry counts for a file, and that none of them does harm."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.source.document import parse, read
from agent.workload import database
from agent.workload.database import built_as, entries_of
from agent.workload.find import find_workload
from agent.workload.settings import settings_of

KERNEL = "__global__ void k(float* y) { y[threadIdx.x] = TILE; }\n"
PROGRAM = KERNEL + "int main() { float* y; cudaMalloc(&y, 4 * TILE); k<<<1, TILE>>>(y); }\n"


def project(folder: Path, text: str = KERNEL) -> Path:
    """A marked project with one kernel."""
    (folder / ".git").mkdir()
    (folder / "src").mkdir()
    file = folder / "src" / "k.cu"
    file.write_text(text)
    return file


def told(folder: Path, *entries: Any, place: str = "build") -> Path:
    (folder / place).mkdir(parents=True, exist_ok=True)
    file = folder / place / "compile_commands.json"
    file.write_text(json.dumps(entries))
    return file


def entry(file: Path, command: str, **more: Any) -> dict[str, Any]:
    return {"directory": str(file.parent), "file": str(file), "command": command, **more}


@pytest.mark.parametrize("place", [".", "build", "out", "cmake-build-debug", "src"])
def test_the_entry_of_a_file_wherever_builds_put_it(tmp_path: Path, place: str) -> None:
    file = project(tmp_path)
    where = told(tmp_path, entry(file, "nvcc -DTILE=16 -c k.cu"), place=place)
    found = built_as(str(file))
    assert (found.flags, found.entry) == (("-DTILE=16",), file.resolve())
    assert found.database is not None and found.database.samefile(where)


def test_paths_are_relative_to_the_entrys_own_folder(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / "include").mkdir()
    one = {"directory": "..", "file": "src/k.cu", "arguments": ["nvcc", "-Iinclude", "-Igone", "-DT=a b", "src/k.cu"]}
    told(tmp_path, one)
    # a folder that is not there is none
    assert built_as(str(file)).flags == ("-DT=a b", f"-I{tmp_path / 'include'}")


def test_a_toolkits_and_the_systems_folders_are_left_to_the_compiler_here(tmp_path: Path) -> None:
    file = project(tmp_path)
    toolkit = tmp_path / "cuda" / "include"
    toolkit.mkdir(parents=True)
    (toolkit / "cuda_runtime.h").write_text("")
    told(tmp_path, entry(file, f"nvcc -isystem /usr/include -isystem '{toolkit}' -DTILE=1 k.cu"))
    assert built_as(str(file)).flags == ("-DTILE=1",)


def test_the_nearest_database_that_knows_the_file_counts_and_nvccs_entry_before_others(tmp_path: Path) -> None:
    file = project(tmp_path)
    told(tmp_path, entry(tmp_path / "other.cu", "nvcc -DTILE=1 other.cu"), place="src")
    told(
        tmp_path,
        entry(file, "/opt/rocm/bin/hipcc -DTILE=2 k.cu"),
        entry(file, "ccache /usr/local/cuda/bin/nvcc -DTILE=3 k.cu"),
    )
    assert built_as(str(file)).flags == ("-DTILE=3",)


def test_a_header_is_compiled_as_what_includes_it_else_as_its_neighbour(tmp_path: Path) -> None:
    file = project(tmp_path, '#include "deep/inner.cuh"\n')
    (tmp_path / "src" / "deep").mkdir()
    inner, lone = tmp_path / "src" / "deep" / "inner.cuh", tmp_path / "src" / "lone.cuh"
    far = tmp_path / "far.cuh"
    for header in (inner, lone, far):
        header.write_text(KERNEL)
    told(tmp_path, entry(tmp_path / "src" / "deep" / "x.cu", "nvcc -DTILE=1 x.cu"), entry(file, "nvcc -DTILE=2 k.cu"))
    assert built_as(str(inner)).flags == ("-DTILE=2",)
    assert built_as(str(lone)).flags == ("-DTILE=2",)
    assert "entry of k.cu" in built_as(str(lone)).told(str(lone))
    assert built_as(str(far)).flags == ()


def test_a_source_that_no_entry_names_and_a_text_without_a_file_have_no_flags(tmp_path: Path) -> None:
    file = project(tmp_path)
    told(tmp_path, entry(tmp_path / "src" / "other.cu", "nvcc -DTILE=1 other.cu"))
    assert built_as(str(file)) == built_as("") == database.Built()


def test_it_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = project(tmp_path)
    where = told(tmp_path, entry(file, "nvcc -DTILE=1 k.cu"))
    assert built_as(str(file)).flags == ("-DTILE=1",)
    told(tmp_path, entry(file, "nvcc -DTILE=222 k.cu"))
    os.utime(where, ns=(1, 1))
    assert built_as(str(file)).flags == ("-DTILE=222",)


BROKEN = ["", "{", "{}", "3", '"x"', "[" * 100_000, '[{"file": 3}]', "\ud800".encode("utf-16", "surrogatepass")]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_one_gives_nothing_and_says_so(tmp_path: Path, text: str | bytes) -> None:
    file = project(tmp_path)
    where = tmp_path / "compile_commands.json"
    where.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = built_as(str(file))
    assert (found.flags, found.database) == ((), None)
    if text != '[{"file": 3}]':
        assert str(where) in found.problem and found.problem == entries_of(where)


def test_lists_within_lists_where_a_command_should_be(tmp_path: Path) -> None:
    file = project(tmp_path)
    where = told(tmp_path)
    deep = "[" * 900 + "]" * 900
    where.write_text(f'[{{"file": "x.cpp", "arguments": {deep}}}, {{"file": "../src/k.cu", "arguments": {deep}}}]')
    assert built_as(str(file)).flags == ()


def test_a_source_of_another_kind_that_nvcc_compiles(tmp_path: Path) -> None:
    project(tmp_path)
    other = tmp_path / "src" / "k.cpp"
    other.write_text(KERNEL)
    told(tmp_path, entry(other, "nvcc -x cu -DTILE=4 k.cpp"))
    assert built_as(str(other)).flags == ("-DTILE=4",)


def test_a_huge_one_is_not_read(tmp_path: Path) -> None:
    file = project(tmp_path)
    where = tmp_path / "compile_commands.json"
    with where.open("wb") as hole:
        hole.truncate(100 << 20)
    assert "larger than 64 MB" in built_as(str(file)).problem


def test_a_folder_and_a_circle_of_links_of_that_name_are_none(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / "build" / "compile_commands.json").mkdir(parents=True)
    circle = tmp_path / "compile_commands.json"
    circle.symlink_to(circle)
    assert built_as(str(file)) == database.Built()


ENTRIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["nvcc -DTILE='", "..", "k.cu", "nvcc"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["file", "directory", "command", "arguments"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(ENTRIES, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_odd_entries_do_no_harm(tmp_path: Path, entries: list[Any]) -> None:
    if not (tmp_path / "src").exists():
        project(tmp_path)
    database._read.cache_clear()  # files of the same size within one tick of the clock
    told(tmp_path, *entries, entry(tmp_path / "src" / "k.cu", "nvcc -DTILE=5 k.cu"))
    assert "-DTILE=5" in built_as(str(tmp_path / "src" / "k.cu")).flags or entries


def test_settings_overrule_the_database(tmp_path: Path) -> None:
    file = project(tmp_path)
    told(tmp_path, entry(file, "nvcc -DTILE=1 -DOTHER --fmad=false k.cu"))
    (tmp_path / ".cuda-lsp.toml").write_text('flags = ["-DTILE=2"]\n')
    found = settings_of(str(file))
    assert found.flags == ("-DTILE=1", "-DOTHER", "--fmad=false", "-DTILE=2")
    assert found.built.flags == ("-DTILE=1", "-DOTHER", "--fmad=false")


@pytest.mark.parametrize(("project_flags", "size"), [("", 16), ('flags = ["-DTILE=48"]\n', 48)])
def test_a_workload_is_read_with_the_macros_that_its_file_is_compiled_with(
    tmp_path: Path, project_flags: str, size: int
) -> None:
    file = project(tmp_path, PROGRAM)
    told(tmp_path, entry(file, "nvcc -DTILE=16 k.cu"))
    (tmp_path / ".cuda-lsp.toml").write_text(project_flags)
    document = read(str(file))
    found = find_workload(document, document.kernel("k"))
    assert found.buffers[0].extent.integer({}) == size
    assert found.flags == ()  # they are the settings'
    over = find_workload(document, document.kernel("k"), flags=("-DTILE=80",))
    assert over.buffers[0].extent.integer({}) == 80


def test_an_entry_that_changes_changes_what_is_read(tmp_path: Path) -> None:
    file = project(tmp_path, PROGRAM)
    document = parse(PROGRAM.encode(), str(file))
    for tile in (16, 128):
        told(tmp_path, entry(file, f"nvcc -DTILE={tile} k.cu"))
        assert find_workload(document, document.kernel("k")).buffers[0].extent.integer({}) == tile
