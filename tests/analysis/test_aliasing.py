"""What a compiler must load again, against the compiler itself: the loads and stores of global memory in its PTX."""

import re

import pytest

from agent.analysis.rules import EVERYTHING, check
from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.source.document import parse
from agent.source.slicing import device_slice

pytest.importorskip("cupy.cuda.nvrtc")

POINTERS = [
    ("const float* x", "float* y", True),
    ("const int* x", "float* y", True),  # types do not tell pointers apart
    ("const float* __restrict__ x", "float* y", False),
    ("const float* __restrict x", "float* y", False),
    ("const float* x", "float* __restrict__ y", False),
]


def ptx(text: str) -> str:
    document = parse(text.encode(), "test.cu")
    built = compile_slice(device_slice(document, ["k"]), Options("sm_90"))
    assert isinstance(built, Build), built
    return built.ptx


def turn(code: str) -> str:
    """The innermost loop: from the label that the last jump goes back to, to that jump."""
    label = re.findall(r"bra(?:\.uni)?\s+(\$L__BB\d+_\d+);", code)[-1]
    return code.split(f"{label}:")[1].split(label)[0]


def rules_in(text: str) -> set[str]:
    document = parse(text.encode(), "test.cu")
    return {one.rule for kernel in document.kernels for one in check(document, kernel, selection=EVERYTHING)}


@pytest.mark.parametrize(("x", "y", "again"), POINTERS)
def test_an_element_is_loaded_again_where_the_rule_says_so(x: str, y: str, again: bool) -> None:
    text = f"__global__ void k({x}, {y}, int i) {{ y[i] = x[i]; y[i + 1] = x[i]; }}\n"
    assert len(re.findall(r"\bld\.global", ptx(text))) == (2 if again else 1)
    assert ("M6" in rules_in(text)) == again


def loop(x: str, y: str, body: str) -> str:
    return f"__global__ void k({x}, {y}, int n) {{\n#pragma unroll 1\n    for (int k = 0; k < n; ++k) {body}\n}}\n"


@pytest.mark.parametrize(("x", "y", "again"), POINTERS)
def test_a_loop_loads_in_each_turn_where_the_rule_says_so(x: str, y: str, again: bool) -> None:
    text = loop(x, y, "y[k] = x[3];")
    assert ("ld.global" in turn(ptx(text))) == again
    assert ("M7" in rules_in(text)) == again


@pytest.mark.parametrize(("x", "y", "again"), POINTERS)
def test_a_sum_is_stored_in_each_turn_where_the_rule_says_so(x: str, y: str, again: bool) -> None:
    text = loop(x, y, "y[threadIdx.x] += x[k];")
    assert ("st.global" in turn(ptx(text))) == again
    assert ("M10" in rules_in(text)) == again
