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


# --- what a command line brings in by files ------------------------------------------------------------------------


def built(tmp_path: Path, command: str, **files: str) -> tuple[set[str], tuple[str, ...]]:
    """The flags of a file with that command, where these files stand beside it (``_`` for the dot of their names)."""
    file = project(tmp_path)
    for name, text in files.items():
        (file.parent / name.replace("_", ".")).write_text(text)
    told(tmp_path, entry(file, command))
    found = built_as(str(file))
    return set(found.flags), found.left_out


def test_response_files_are_read_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    flags, left_out = built(
        tmp_path,
        "nvcc -DA=1 @a.rsp --options-file b.rsp,c.rsp -DB=2 -c k.cu",
        a_rsp="-I../include \\\n  '-DT=a b'\n",
        b_rsp="@d.rsp -DA=3",
        c_rsp="-arch=sm_70",
        d_rsp="--use_fast_math",
    )
    assert flags == {f"-I{tmp_path / 'include'}", "-DT=a b", "-DA=1", "-DA=3", "--use_fast_math", "-DB=2"}
    assert left_out == ("-arch=sm_70",)


@pytest.mark.parametrize(
    "name", ["@a.rsp", "@gone.rsp", "@/etc/passwd", "@../../outside.rsp", "@large.rsp", "@.", "@\\x00"]
)
def test_response_files_that_are_a_trap(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    (tmp_path / "outside.rsp").write_text("-DSTOLEN=1")
    flags, left_out = built(
        inside, f"nvcc -DA=1 {name} -DB=2 -c k.cu",
        a_rsp="@a.rsp @b.rsp -DIN=1", b_rsp="@a.rsp @a.rsp", large_rsp="-DL=1 " * 300_000,
    )  # fmt: skip
    assert flags - {"-DIN=1"} == {"-DA=1", "-DB=2"}
    assert left_out and left_out[0].startswith(name.replace("\\x00", "")[:8])


def test_many_files_that_name_each_other_end_soon(tmp_path: Path) -> None:
    names = {f"f{n}_rsp": f"@f{n + 1}.rsp " * 4 + f"-DF{n}=1" for n in range(30)}
    flags, left_out = built(tmp_path, "nvcc @f0.rsp -c k.cu", **names)
    assert any("more than" in said for said in left_out) and "-DF29=1" in flags


def test_the_macros_of_a_header_before_the_source(tmp_path: Path) -> None:
    more = "#ifndef MORE_H\n#define MORE_H\n#define WIDE 4\n#endif\n"
    text = (
        '#ifndef CONFIG_H\n#define CONFIG_H\n#include "more.h"\n#ifdef FAST\n#define MODE 1\n#else\n#define MODE 2\n'
        "#endif\n#ifndef TILE\n#define TILE 16\n#endif\n#define SQUARE(a) ((a) * (a))\n#undef OLD\n#endif\n"
    )
    flags, left_out = built(
        tmp_path, "nvcc -DFAST -DTILE=8 -DOLD=1 -include config.h -c k.cu", config_h=text, more_h=more
    )
    assert flags == {"-DFAST", "-DTILE=8", "-DOLD=1", "-UOLD", "-DMODE=1", "-DWIDE=4", "-DSQUARE(a)=((a) * (a))"}
    assert left_out == ()


def test_what_else_such_a_header_has_is_said(tmp_path: Path) -> None:
    flags, left_out = built(tmp_path, "nvcc -include t.h -include gone.h -include /etc/hosts -c k.cu",
                            t_h="#define N 3\nstruct T { int a; };\n")  # fmt: skip
    assert flags == {"-DN=3"}
    assert left_out == (
        "-include t.h (its macros are taken, what it declares is not)",
        "-include gone.h (not there)",
        "-include /etc/hosts (outside the project)",
    )


def test_a_header_that_changes_changes_the_flags(tmp_path: Path) -> None:
    assert built(tmp_path, "nvcc -include c.h -c k.cu", c_h="#define N 3\n")[0] == {"-DN=3"}
    (tmp_path / "src" / "c.h").write_text("#define N 1234\n")
    assert built_as(str(tmp_path / "src" / "k.cu")).flags == ("-DN=1234",)
