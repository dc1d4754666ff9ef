"""Text that the parser lost its way in is not taken for a file without kernels."""

from pathlib import Path

import pytest

from tests.cli.running import run

BROKEN = "#include <cstdio>\n\n__global__ void k(float* x { x[0] = 1;\n"
WHERE = "line 3: __global__ void k(float* x { x[0] = 1;"


@pytest.fixture
def broken(tmp_path: Path) -> str:
    (tmp_path / "broken.cu").write_text(BROKEN)
    return str(tmp_path / "broken.cu")


def test_hints_name_the_file_and_the_line(broken: str) -> None:
    done = run("hints", broken)
    assert done.returncode == 0
    assert f"files with parse errors in which no kernel could be read: 1 ({broken}: {WHERE})" in done.stderr


def test_hints_count_such_files(broken: str, tmp_path: Path) -> None:
    (tmp_path / "second.cu").write_text(BROKEN)
    assert f"could be read: 2 (the first is {broken}: {WHERE})" in run("hints", str(tmp_path)).stderr


def test_kernels_says_that_it_could_not_be_read(broken: str) -> None:
    said = f"{broken}: no kernel (`__global__` function) in this file could be read: it has parse errors, the first at"
    listed, told = run("kernels", broken), run("kernels", broken, "--json")
    assert listed.returncode == told.returncode == 0
    assert f"{said} {WHERE}" in listed.stdout
    assert f"{said} {WHERE}" in told.stderr


def test_what_needs_a_kernel_says_so_too(broken: str) -> None:
    done = run("optimize", broken, "--device", "emulator")
    assert done.returncode == 3
    assert f"could be read: it has parse errors, the first at {WHERE}" in done.stderr


@pytest.mark.parametrize("text", ["", "int main() { return 0; }\n", '// __global__\nconst char* s = "__global__";\n'])
def test_a_file_without_kernels_is_called_that(text: str, tmp_path: Path) -> None:
    path = tmp_path / "host.cu"
    path.write_text(text)
    assert run("kernels", str(path)).stdout == f"{path}: no kernel (`__global__` function) in this file\n"
    assert "parse errors" not in run("hints", str(path)).stderr
