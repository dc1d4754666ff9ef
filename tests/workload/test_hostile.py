"""Broken and hostile files: inference, directives and plans answer with a workload or with words."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import parse
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.rewrite import plan_of
from agent.workload.settings import Settings

FIXTURES = sorted((Path(__file__).resolve().parents[2] / "fixtures").glob("*.cu"))
WORDS = ["(", ")", "{", "}", ";", "*", "&", "<<<", ">>>", "n", "0", "for"]
TOKENS = st.sampled_from([*WORDS, "dim3 g(n, n);", '"', "/*", "#define n n\n"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FIXTURES), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), TOKENS), min_size=1, max_size=4)
)
def test_mutilated_fixtures(path: Path, cuts: list[tuple[float, int, str]]) -> None:
    text = path.read_text()
    for place, length, token in cuts:
        start = int(place * len(text))
        text = text[:start] + token + text[start + length :]
    document = parse(text.encode())
    for kernel in document.kernels:
        try:
            workload = find_workload(document, kernel, Settings())
            plan_of(document, workload)
        except WorkloadError as error:
            assert error.message


@pytest.mark.parametrize(
    "host",
    [
        "int main() { main(); k<<<1, 1>>>(0); }",
        "#define A B\n#define B A\nint main() { int n = A; float* x; cudaMalloc(&x, n); k<<<n, 1>>>(x); }",
        "int f(int n) { return n ? f(n - 1) + f(n - 2) : 0; }"
        " int main() { float* x; cudaMalloc(&x, f(40)); k<<<1, 1>>>(x); }",
        "int main() { " + "if (a()) { " * 30 + "k<<<1, 1>>>(0);" + "}" * 30 + " }",
        "int main() { " + "for (int i = 0; i < 9; i++) { " * 30 + "k<<<1, 1>>>(0);" + "}" * 30 + " }",
        "int main() { int n = " + "(" * 300 + "1" + ")" * 300 + "; float* x; cudaMalloc(&x, n); k<<<1, 1>>>(x); }",
        "int main() { int n = 1; " + "n = n + n; " * 300 + "float* x; cudaMalloc(&x, n); k<<<1, 1>>>(x); }",
        "int main() { " + "int a = 1; " * 30_000 + "k<<<1, 1>>>(0); }",
    ],
)
def test_hostile_host_code(host: str) -> None:
    document = parse(("__global__ void k(float* x) { *x = 1; }\n" + host).encode())
    try:
        assert find_workload(document, document.kernel("k"), Settings()).kernel == "k"
    except WorkloadError as error:
        assert error.message
