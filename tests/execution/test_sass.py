"""Machine code by line: reading a disassembler's listing, and what is said where there is none."""

from pathlib import Path

import pytest

from agent.execution import sass
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from agent.source.document import parse
from agent.workload.find import find_workload
from agent.workload.program import Program

LISTING = """\
\t.target\tsm_90
.text._Z1kPf:
\t//## File "/somewhere/else/src/k.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_1:
\t//## File "/usr/include/math.h", line 812 inlined at "/somewhere/else/src/k.cu", line 5
\t//## File "/somewhere/else/src/k.cu", line 5
        /*0020*/                   MUFU.RSQ  R2, R3 ;
\t//## File "/usr/include/math.h", line 900
        /*0030*/                   FMUL R2, R2, R3 ;
        /*0040*/                   NOP;
.text.other:
        /*0000*/                   EXIT ;
\t//## File "/somewhere/else/src/k.cu", line 9
        /*0010*/                   BRA `(.L_x_0);
"""

TEXT = """\
__global__ void k(const float* x, float* y) {
    int i = threadIdx.x;
    y[i] = sqrtf(x[i]) / 3.0f;
}
int main() {
    float *x, *y;
    cudaMalloc(&x, 64 * sizeof(float));
    cudaMalloc(&y, 64 * sizeof(float));
    k<<<1, 64>>>(x, y);
}
"""


def built() -> Build:
    document = parse(TEXT.encode(), "folder/k.cu")
    workload = find_workload(document, document.kernels[0])
    found = build(Program(document, workload.plan, "k"), Options("sm_90"))
    assert isinstance(found, Build)
    return found


def test_instructions_are_read_with_section_and_line() -> None:
    assert list(sass.read(LISTING, "src/k.cu")) == [
        ("_Z1kPf", 3, "LDC R1, c[0x0][0x28]"),
        ("_Z1kPf", 3, "@P0 EXIT"),
        ("_Z1kPf", 5, "MUFU.RSQ R2, R3"),  # inlined from a header
        ("_Z1kPf", 5, "FMUL R2, R2, R3"),  # nobody says where from: with the line before
        ("other", 9, "BRA `(.L_x_0)"),  # what has no line at all is in none
    ]


def test_without_a_disassembler_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "disassembler", lambda: None)
    with pytest.raises(sass.NoDisassembly, match="pip install nvidia-cuda-nvdisasm"):
        sass.by_line(built(), ["k"], "folder/k.cu")


@pytest.mark.parametrize(
    ("script", "words"),
    [("#!/bin/sh\necho 'fatal: too new' >&2; exit 1\n", "refuses.*too new"), (None, "cannot be run")],
)
def test_a_disassembler_that_fails_is_named(
    script: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvdisasm"
    if script is not None:
        program.write_text(script)
        program.chmod(0o755)
    monkeypatch.setattr(sass, "disassembler", lambda: program)
    with pytest.raises(sass.NoDisassembly, match=f"(?s)nvdisasm {words}"):
        sass.by_line(built(), ["k"], "folder/k.cu")


@pytest.mark.skipif(sass.disassembler() is None, reason="no nvdisasm: pip install nvidia-cuda-nvdisasm")
def test_a_real_disassembler_names_the_lines_of_the_file() -> None:
    found = sass.by_line(built(), ["k"], "folder/k.cu")
    assert any(text.startswith("S2R") for text in found[2])
    assert any(text.startswith("LDG") for text in found[3]) and any(text.startswith("STG") for text in found[3])
    assert set(found) <= {1, 2, 3, 4}
