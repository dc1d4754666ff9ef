"""What a file fixes about its launches: expected values are worked out by hand."""

import pytest

from agent.analysis.launches import Shape, launches_of, shape
from agent.source.document import parse


def shapes(host: str, before: str = "") -> list[Shape]:
    kernel = "__global__ void k(float* x) { x[0] = 1; }"
    text = f"{before}\n{kernel}\nvoid run(float* x, int n, int m) {{\n{host}\n}}\n"
    document = parse(text.encode())
    return [shape(document, site) for site in launches_of(document, document.kernels[0])]


BLOCKS = {
    "k<<<4, 256>>>(x);": (256, 1, 1),
    "k<<<4, B>>>(x);": (128, 1, 1),
    "k<<<4, dim3(8, 4)>>>(x);": (8, 4, 1),
    "dim3 b(16, 16); k<<<4, b>>>(x);": (16, 16, 1),
    "dim3 b(B, 2, 3); k<<<4, b>>>(x);": (128, 2, 3),
    "dim3 b(B, B); k<<<4, b>>>(x);": (128, 128, 1),
    "dim3 b{32, 2}; k<<<4, b>>>(x);": (32, 2, 1),
    "dim3 b = dim3(32, 2); k<<<4, b>>>(x);": (32, 2, 1),
    "const int t = 2 * B; k<<<4, t>>>(x);": (256, 1, 1),
    "int t = 64; int u = t / 2; k<<<4, u>>>(x);": (32, 1, 1),
    "dim3 b(32, 2); k<<<4, b.x * b.y>>>(x);": (64, 1, 1),
    "k<<<4, n>>>(x);": (None, None, None),
    "k<<<4, n / 2>>>(x);": (None, 1, 1),
    "int t = 64; t = 32; k<<<4, t>>>(x);": (None, None, None),
    "int t = 64; set(&t); k<<<4, t>>>(x);": (None, None, None),
    "int t = 0; std::cin >> t; k<<<4, t>>>(x);": (None, None, None),
    "int t = 0, u = 0; if (!(file >> t >> u)) return; k<<<4, t>>>(x);": (None, None, None),
    "int s = 1; int t = 64 >> s; k<<<4, t>>>(x);": (32, 1, 1),
    "dim3 b(32, 2); b.x = n; k<<<4, b>>>(x);": (None, None, None),
    "if (n) { int t = 32; k<<<4, t>>>(x); } else { int t = 64; }": (None, None, None),
    "dim3 b(n, 4); k<<<4, b>>>(x);": (None, 4, 1),
    "k<<<4, pick(n)>>>(x);": (None, None, None),
    "{ int b = 64; k<<<4, b>>>(x); } { dim3 b(32, 2); }": (None, None, None),
    "auto f = k; f<<<4, B>>>(x);": (128, 1, 1),
    "void* a[] = {&x}; cudaLaunchKernel((void*)k, 4, dim3(8, 4), a, 0, 0);": (8, 4, 1),
    "dim3 b(32, 2); cudaLaunchConfig_t c = {4, b}; cudaLaunchKernelEx(&c, k, x);": (32, 2, 1),
    "cudaLaunchConfig_t c = {0}; c.blockDim.x = B; c.blockDim.y = 2; cudaLaunchKernelEx(&c, k, x);": (128, 2, 1),
    "cudaLaunchConfig_t c = given(); cudaLaunchKernelEx(&c, k, x);": (None, None, None),
}


@pytest.mark.parametrize("host", BLOCKS)
def test_blocks(host: str) -> None:
    (found,) = shapes(host, "#define B 128")
    assert found.block == BLOCKS[host]


ROUNDED = {
    "k<<<(n + 255) / 256, 256>>>(x);": ("up", "n"),
    "k<<<(n - 1) / 256 + 1, 256>>>(x);": ("up", "n"),
    "k<<<n / 256 + 1, 256>>>(x);": ("up", "n"),
    "k<<<n / 256, 256>>>(x);": ("down", "n"),
    "k<<<(n + 127) / 256, 256>>>(x);": (None, ""),
    "k<<<n, 256>>>(x);": (None, ""),
    "k<<<(n + m) / 256, 256>>>(x);": (None, ""),
    "k<<<cdiv(n, 256), 256>>>(x);": (None, ""),
    "const int t = 64; int g = (n + t - 1) / t; k<<<g, t>>>(x);": ("up", "n"),
    "dim3 b(32, 8); dim3 g((n + b.x - 1) / b.x, m); k<<<g, b>>>(x);": ("up", "n"),
    "const int s = 1 << 20; k<<<(s + 255) / 256, 256>>>(x);": (None, ""),
}


@pytest.mark.parametrize("host", ROUNDED)
def test_rounding(host: str) -> None:
    (found,) = shapes(host)
    assert (found.rounds, found.size) == ROUNDED[host]


def test_shared_bytes() -> None:
    found = shapes("k<<<1, 2>>>(x); k<<<1, 2, 3 * sizeof(float)>>>(x); k<<<1, 2, n>>>(x);")
    assert [one.shared for one in found] == [0, 12, None]
    (unseen,) = shapes("cudaLaunchConfig_t c = given(64, n); cudaLaunchKernelEx(&c, k, x);")
    assert unseen.shared is None, "whoever made the configuration may have set them"
