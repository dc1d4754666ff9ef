"""A kernel that only the flags of its build make whole, from ``compile_commands.json`` to what was counted."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run

TILED = """\
#include "sizes.h"
__global__ void scale(const float* x, float* y, int n) {
    __shared__ float s[TILE * WIDE];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (i < n) y[i] = s[threadIdx.x] * 2.0f;
}

int main() {
    int n = 256;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale<<<n / TILE, TILE>>>(x, y, n);
}
"""


def project(folder: Path, entries: str) -> Path:
    for name in ("src", "include", "build"):
        (folder / name).mkdir()
    (folder / "include" / "sizes.h").write_text("#define WIDE 4\n")
    (folder / "build" / "compile_commands.json").write_text(entries)
    file = folder / "src" / "k.cu"
    file.write_text(TILED)
    return file


def entries(folder: Path) -> str:
    command = "/usr/local/cuda/bin/nvcc -DTILE=32 -I../include -arch=sm_70 -Xcompiler -DTILE=1 -c ../src/k.cu -o k.o"
    return json.dumps([{"directory": str(folder / "build"), "file": "../src/k.cu", "command": command}])


def test_a_kernel_that_needs_the_flags_of_its_build_is_compiled_and_counted(tmp_path: Path) -> None:
    file = project(tmp_path, entries(tmp_path))
    done = run("kernels", str(file))
    assert done.returncode == 0
    said = next(line for line in done.stdout.splitlines() if line.startswith("flags of the build: "))
    assert "-DTILE=32" in said and said.endswith("left out: -arch=sm_70")
    assert "512 B static shared" in done.stdout, done.stdout  # 32 * 4 floats
    # what the command line says overrules the build, in the host code as well
    assert "1024 B static shared" in (over := run("kernels", str(file), "--", "-DTILE=64").stdout)
    assert "-DTILE=32" in over
    counted = run("profile", str(file), "--json")
    assert counted.returncode == 0, counted.stderr


def test_macros_of_a_header_that_the_build_puts_before_the_source(tmp_path: Path) -> None:
    file = project(tmp_path, "")
    (tmp_path / "build" / "k.rsp").write_text("-I../include -include config.h")
    (tmp_path / "include" / "config.h").write_text("#pragma once\n#define TILE 64\n")
    command = {"directory": str(tmp_path / "build"), "file": str(file), "command": f"nvcc @k.rsp -c {file}"}
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps([command]))
    done = run("kernels", str(file))
    assert done.returncode == 0 and "-DTILE=64" in done.stdout and "left out" not in done.stdout
    assert "1024 B static shared" in done.stdout, done.stdout


def test_a_broken_database_is_named_and_stops_nothing(tmp_path: Path) -> None:
    file = project(tmp_path, '[{"file":')
    file.write_text(f"#define TILE 32\n{TILED}")
    done = run("kernels", str(file), "--", "-I", str(tmp_path / "include"))
    assert done.returncode == 0
    assert "compile_commands.json cannot be read and is left alone" in done.stdout
    assert "512 B static shared" in done.stdout, done.stdout


@pytest.mark.parametrize("command", [("kernels",), ("verify", "--against", "HEAD"), ("profile",), ("optimize",)])
def test_a_flag_that_is_not_known_is_refused_and_not_passed_over(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "k.cu"
    file.write_text(TILED)
    done = run(command[0], str(file), *command[1:], "--", "-DWIDE=4", "--use-fast-math", "-O3")
    assert done.returncode == 2 and done.stdout == ""
    assert "`--use-fast-math` is not known (did you mean `--use_fast_math`?)" in done.stderr
    assert "-DWIDE" not in done.stderr and "-O3" not in done.stderr and "Taken are -D, -U, -I" in done.stderr


def test_a_flag_for_every_file_of_a_scan_is_looked_at_too(tmp_path: Path) -> None:
    done = run("scan", str(tmp_path), "--flag=-ffast-math")
    assert done.returncode == 2 and "`-ffast-math` is not known" in done.stderr
