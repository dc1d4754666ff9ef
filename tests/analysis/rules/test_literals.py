"""A1 against the compiler: a marked line computes in double, an unmarked one does not."""

import re

import pytest

from agent.analysis.rules import check
from agent.source.document import parse

nvrtc = pytest.importorskip("cupy.cuda.nvrtc")

STATEMENTS = {
    "y[i] = x[i] * 0.5;": False,
    "y[i] = x[i] * 0.1;": True,
    "y[i] = x[i] + 1.0;": False,
    "y[i] = 1.0 / x[i];": False,
    "y[i] = x[i] * 0.5 + x[i + 1];": True,
    "y[i] = x[i] * 2.0 * x[i + 1];": True,
    "y[i] = 0.5 * (x[i] + x[i + 1]);": False,
    "y[i] += x[i] * 0.5;": True,
    "y[i] *= 0.5;": False,
    "y[i] *= 0.1;": True,
    "y[i] += 0.5;": False,
    "if (x[i] > 0.5) y[i] = 1;": False,
    "if (x[i] > 0.1) y[i] = 1;": True,
    "if (x[i] * 2.0 > y[i]) y[i] = 1;": True,
    "float a = 0.1; y[i] = a * x[i];": False,
    "y[i] = x[i] * 0.1f;": False,
    "y[i] = sqrtf(x[i]) * -0.3;": True,
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_double_literal_is_named_where_the_compiler_uses_doubles(statement: str) -> None:
    text = f'extern "C" __global__ void k(const float* x, float* y) {{ int i = threadIdx.x; {statement} }}'
    document = parse(text.encode())
    found = [finding for finding in check(document, document.kernels[0]) if finding.rule == "A1"]
    assert bool(found) is STATEMENTS[statement]
    arithmetic = re.findall(r"^\s*(?:add|sub|mul|div|fma|setp)\S*\.f64", _ptx(text), re.MULTILINE)
    assert bool(arithmetic) is STATEMENTS[statement]


def _ptx(text: str) -> str:
    unit = nvrtc.createProgram(text, "k.cu", (), ())
    try:
        nvrtc.compileProgram(unit, ("--gpu-architecture=compute_90",))
        return nvrtc.getPTX(unit).decode()
    finally:
        nvrtc.destroyProgram(unit)
