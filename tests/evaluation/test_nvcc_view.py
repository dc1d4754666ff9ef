"""Code that reads another way for nvcc than for the compiler that judges it is told apart; other code is not."""

import pytest

from agent.evaluation.nvcc_view import as_nvcc, told_apart
from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.execution.process import never
from agent.source.slicing import device_slice
from tests.attacks.originals import SCALE
from tests.evaluation.kernels import original, rewrite

BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"


def told(new: str, before: str = "") -> str:
    program, _ = original(SCALE)
    assert SCALE.count(BODY) == 1
    return told_apart(rewrite(before + SCALE.replace(BODY, new), program.plan), Options(), never)


@pytest.mark.parametrize(
    "new",
    [
        f"\n#ifdef __CUDACC_RTC__\n{BODY}\n#endif\n",
        f"\n#ifndef __NVCC__\n{BODY}\n#endif\n",
        f"\n#if !defined(__GNUC__)\n{BODY}\n#endif\n",
        "if (i < n) y[i] = 1.5f * x[i] + 0.25f * __CUDACC_\\\nRTC__;",
        f"\n#define PASTED(a, b) a##b\n#if PASTED(__CUDACC_, RTC__)\n{BODY}\n#endif\n",
    ],
)
def test_code_that_asks_which_compiler_it_is(new: str) -> None:
    assert told(new)


@pytest.mark.parametrize(
    "new",
    [
        BODY,
        f"\n#define HALF 0.25f\n#if defined(HALF)\n{BODY.replace('0.25f', 'HALF')}\n#endif\n",
        f"\n#pragma unroll\nfor (int k = 0; k < 1; k++) {BODY}",
        f"\n#if __CUDA_ARCH__ >= 700\n{BODY}\n#else\n{BODY.replace('1.5f', '1.4f')}\n#endif\n",
        f"\n#ifdef __CUDACC__\n{BODY}\n#endif\n",
        "if (i < n) y[i] = 1.5f * x[i] + 0.25f + __LINE__;",
    ],
)
def test_code_that_does_not(new: str) -> None:
    assert told(new, "#include <cuda_fp16.h>\n#define SOME 1\n") == ""


def test_what_compiles_for_one_of_them_only() -> None:
    assert "does not compile as nvcc reads it" in told(f"\n#ifndef __CUDACC_RTC__\nnot_there();\n#endif\n{BODY}")


def test_lines_keep_their_numbers() -> None:
    text = "#include <cuda_fp16.h>\n\n#define SOME 1\n" + SCALE.replace(BODY, "y[i] = missing;")
    part = device_slice(original(text)[0].document, ("scale",))
    for one in (part, as_nvcc(part)):
        found = compile_slice(one, Options())
        assert not isinstance(found, Build)
        assert f"line {text[: text.index('missing')].count(chr(10)) + 1}:" in found.message
