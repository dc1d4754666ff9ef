"""Directives that nobody would read are told."""

import pytest

from agent.source.document import parse
from agent.workload.directive import find_directive
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.settings import Settings
from agent.workload.stray import stray_directives

DIRECTIVE = """\
// cuda-lsp: workload
//   size     n = 64
//   buffer   x: f32[n] out
//   launch   k<<<1, 64>>>(x)
"""
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] = 1; }\n"
HELPER = "__device__ __forceinline__ float twice(float x) { return 2 * x; }\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (DIRECTIVE + HELPER + KERNEL, "`twice` is a device function, which nothing launches"),
        (DIRECTIVE + "template <class T>\n" + HELPER + KERNEL, "`twice` is a device function, which nothing launches"),
        (DIRECTIVE + "struct Place { int n; };\n" + KERNEL, "`struct Place { int n; };` follows it"),
        (DIRECTIVE + "namespace a {\n" + KERNEL + "}\n", "`namespace a {` follows it"),
        (KERNEL + DIRECTIVE, "nothing follows it"),
        (DIRECTIVE + "\n" + DIRECTIVE + KERNEL, "another one follows it"),
        ("/* cuda-lsp: workload\n * size n = 4\n */\n" + HELPER + KERNEL, "`twice` is a device function"),
        ("int n; // cuda-lsp: workload\nint m;\n" + KERNEL, "`int m;` follows it"),
    ],
)
def test_what_follows_is_told(text: str, told: str) -> None:
    document = parse(text.encode())
    (stray,) = stray_directives(document)
    assert told in stray.message and "put it right above a `__global__` function" in stray.message
    assert document.slice_text(stray.span) == "cuda-lsp: workload"
    assert stray.line == 1 + text[: stray.span.start].count("\n")


@pytest.mark.parametrize(
    "between",
    [
        "", "\n// about it\n", "#pragma once\n", "/* more */ static inline ", "template <int N>\n", 'extern "C" ',
        'extern "C" {\n', "__launch_bounds__(64)\n", "\r\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("directive", [DIRECTIVE, "/* cuda-lsp: workload\n   size n = 4 */\n"])
def test_those_of_a_kernel_are_not(between: str, directive: str) -> None:
    document = parse((HELPER + directive + between + KERNEL + HELPER).encode())
    assert stray_directives(document) == ()
    assert find_directive(document, document.kernel("k")) is not None


def test_words_about_directives_are_none() -> None:
    text = 'const char* help = "cuda-lsp: workload";\nint a; /* see cuda-lsp: ignore */\n' + KERNEL
    assert stray_directives(parse(text.encode())) == ()


def test_it_is_said_where_a_workload_is_asked_for() -> None:
    text = DIRECTIVE + HELPER + KERNEL
    document = parse(text.encode())
    with pytest.raises(NoWorkload, match="line 1: this directive is read for no kernel"):
        find_workload(document, document.kernel("k"), Settings())
    launching = text + "int main() { float* x; cudaMalloc(&x, 256); k<<<1, 64>>>(x); }\n"
    document = parse(launching.encode())
    found = find_workload(document, document.kernel("k"), Settings())
    assert any("line 1: this directive is read for no kernel" in note for note in found.notes)
