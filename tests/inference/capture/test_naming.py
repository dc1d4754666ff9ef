"""Which kernel a symbol is of. The symbols are what nvcc 13.0 made of the kernels beside them, demangled by c++filt."""

import pytest

from agent.inference.capture import naming
from agent.inference.capture.launches import Argument, Launch
from agent.source.document import parse

FILE = """
namespace ns {
template <typename T, int N> __global__ void scan(const T* x, T* y, int n) { y[n] = x[n] * N; }
}
static __global__ void inner(float* x) { x[0] = 1; }
namespace { __global__ void hidden(float* x, unsigned long long n) { x[n] = 1; } }
extern "C" __global__ void plain(double* x, bool b) { if (b) x[0] = 1; }
template <int e, bool b> __global__ void choice(float* x) { x[0] = e + b; }
__global__ void same(float* x) { x[0] = 1; }
__global__ void same(float* x, int n) { x[n] = 1; }
"""


def launch(readable: str, arguments: int, layout: str = "driver") -> Launch:
    return Launch(
        1, 1, 1, "symbol", readable, 0, 1, False, layout, (1, 1, 1), (1, 1, 1), (1, 1, 1), 0,
        tuple(Argument(8 * at, bytes(8)) for at in range(arguments)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("readable", "arguments", "kernel", "called"),
    [
        ("void ns::scan<float, 4>(float const*, float*, int)", 3, "ns::scan", "ns::scan<float, 4>"),
        ("inner(float*)", 1, "inner", "inner"),
        ("(anonymous namespace)::hidden(float*, unsigned long long)", 2, "hidden", "hidden"),
        ("plain", 2, "plain", "plain"),
        ("void choice<(E)1, true>(float*)", 1, "choice", "choice<(E)1, true>"),
        (
            "void ns::scan<std::pair<int, (anonymous namespace)::P>, 1>(int)",
            3,
            "ns::scan",
            "ns::scan<std::pair<int, P>, 1>",
        ),
    ],
)
def test_the_kernel_and_its_name(readable: str, arguments: int, kernel: str, called: str) -> None:
    document = parse(FILE.encode())
    one = launch(readable, arguments)
    found = naming.kernel_of(one, document)
    assert found is not None and found.name == kernel.split("::")[-1]
    assert naming.launch_name(one, found).removeprefix("(anonymous namespace)::") == called


def test_overloads_differ_by_their_parameters() -> None:
    document = parse(FILE.encode())
    for count in (1, 2):
        found = naming.kernel_of(launch("same(float*)", count), document)
        assert found is not None and len(found.parameters) == count


@pytest.mark.parametrize(
    ("readable", "arguments"),
    [("other(float*)", 1), ("elsewhere::scan<float, 4>(int)", 3), ("inner(float*)", 2), ("", 0)],
)
def test_what_is_in_another_file_is_nobody(readable: str, arguments: int) -> None:
    assert naming.kernel_of(launch(readable, arguments), parse(FILE.encode())) is None


def test_without_parameters_the_name_alone_counts() -> None:
    found = naming.kernel_of(launch("inner(float*)", 0, "unknown"), parse(FILE.encode()))
    assert found is not None and found.name == "inner"
