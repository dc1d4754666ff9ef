"""What headers of a project say to the hints: read when asked to, never by the rules themselves."""

from pathlib import Path

import pytest

from agent.analysis.headers import learn
from agent.analysis.rules import check
from agent.source.document import Document, read

SOURCE = """\
#include "sizes.h"
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i * WIDTH];
}
void run(const float* x, float* y, int n) { k<<<(n + THREADS - 1) / THREADS, THREADS>>>(x, y, n); }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    (tmp_path / "src" / "k.cu").write_text(SOURCE)
    (tmp_path / "include" / "sizes.h").write_text('#pragma once\n#include "base.h"\n#define WIDTH (4 * UNIT)\n')
    (tmp_path / "include" / "base.h").write_text(
        '#include "sizes.h"\nconstexpr int UNIT = 2;\nenum { THREADS = 100 };\n'
    )
    return tmp_path


def found(document: Document) -> dict[str, str]:
    return {one.rule: one.message for kernel in document.kernels for one in check(document, kernel)}


def test_numbers_of_headers_and_of_theirs(project: Path) -> None:
    document = read(str(project / "src" / "k.cu"))
    assert "L1" not in found(document), "nothing was learned yet, and a rule reads no file"
    learn(document)
    assert "8 elements of x apart" in found(document)["M1"]
    assert "L1" in found(document), "THREADS is 100"


def test_a_header_that_changed_is_read_again(project: Path) -> None:
    document = read(str(project / "src" / "k.cu"))
    learn(document)
    (project / "include" / "base.h").write_text("constexpr int UNIT = 16; enum { THREADS = 128 };\n")
    learn(document)
    assert "64 elements of x apart" in found(document)["M1"]
    assert "L1" not in found(document)


def test_what_two_files_say_differently_nobody_says(project: Path) -> None:
    path = project / "src" / "k.cu"
    path.write_text(f"#ifndef UNIT\n#define UNIT 1\n#endif\n{SOURCE}")
    document = read(str(path))
    learn(document)
    assert "8 elements" not in found(document).get("M1", "")


def test_what_is_not_there_or_lies_outside_is_left_out(project: Path) -> None:
    outside = project.parent / "outside.h"
    outside.write_text("#define WIDTH 8\n")
    path = project / "src" / "k.cu"
    path.write_text(
        SOURCE.replace('"sizes.h"', '"../../outside.h"').replace("__global__", '#include "none.h"\n__global__')
    )
    document = read(str(path))
    learn(document)
    assert "M1" not in found(document)
    outside.unlink()
