"""Members of structs and classes that have the names of other variables, and structs that start as zeros."""

import re

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.static import infer
from tests.workload.test_static import found

KERNEL = "__global__ void k(int n, float* x) { int i = threadIdx.x; if (i < n) x[i] = 1; }\n"


def asked(text: str, answers: dict[str, int | float] | None = None) -> NoWorkload:
    document = parse(text.encode())
    with pytest.raises(NoWorkload) as error:
        infer(document, document.kernels[0], answers)
    return error.value


def test_a_member_is_asked_for_under_a_name_of_its_own() -> None:
    host = """struct Grid { int n; };
    int main() { Grid g; int n = 64; scanf("%d", &g.n); float* x; cudaMalloc(&x, n * g.n * 4); k<<<g.n, n>>>(n, x); }"""
    error = asked(KERNEL + host)
    assert error.questions == ("value of `g_n`?",)
    assert re.search(r"^//   size     g_n = \?$", error.draft, re.M) and "launch   k<<<g_n, 64>>>(64, x)" in error.draft
    document = parse((KERNEL + host).encode())
    told = infer(document, document.kernels[0], {"g_n": 5})
    assert {size.name: size.value for size in told.sizes} == {"g_n": 5}


def test_two_members_of_one_name_are_told_apart() -> None:
    host = """struct Grid { int n; float* x; };
    int main() { Grid a, b; scanf("%d %d", &a.n, &b.n); cudaMalloc(&a.x, a.n * 4); cudaMalloc(&b.x, 4 * b.n);
      both<<<1, 32>>>(a.n, a.x, b.n, b.x); }"""
    kernel = "__global__ void both(int n, const float* x, int m, float* y) { if (threadIdx.x < m) y[0] = x[n]; }\n"
    error = asked(kernel + host)
    assert set(error.questions) == {"value of `n`?", "value of `b_n`?"}
    assert "buffer   x: f32[n] in" in error.draft and "buffer   b_x: f32[b_n] out" in error.draft


METHOD = """int n = 7; float* x;
struct Sim { int n; float* x; float y; int z[3]; void step(int m); };
void Sim::step(int m) { k<<<(n + m) / 256, 256>>>(n, x); }
"""


@pytest.mark.parametrize("end", ["", "int main() { other(3); }"])
def test_in_a_method_members_hide_variables_of_the_file(end: str) -> None:
    error = asked(KERNEL + METHOD + end)
    assert "`n`: it is a member of `Sim`" in error.message
    assert set(error.questions) == {"value of `n`?", "value of `m`?", "size of `x`?"}
    assert "n = 7" not in error.draft and "buffer   x: f32[?] out" in error.draft


def test_a_parameter_hides_a_member() -> None:
    error = asked(KERNEL + METHOD.replace("int m", "int n").replace("n + m", "n + 255"))
    assert "`n`: it is a parameter of `step`" in error.message


@pytest.mark.parametrize("zeros", ["= {}", "{}", "= {0}", "= {{}}", "= {{0, 0}, {0, 0}}", "= {{0.0f, 0}}"])
@pytest.mark.parametrize("where", ["local", "file"])
def test_arrays_of_structs_that_start_as_zeros(zeros: str, where: str) -> None:
    kernel = """struct Pair { float a; int b; };
    __global__ void k(const Pair* ps, float* out) { int i = threadIdx.x; out[i] = ps[i].a * ps[i].b; }\n"""
    host = f"""int main() {{ Pair h[100] {zeros}; Pair* d; float* o; cudaMalloc(&d, sizeof(h)); cudaMalloc(&o, 400);
      cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice); k<<<1, 100>>>(d, o); }}"""
    if where == "file":
        declared = f"Pair h[100] {zeros};"
        host = declared + host.replace(declared, "")
    buffer = found(host, kernel).buffers[0]
    assert (buffer.dtype, buffer.domain.kind, buffer.domain.given) == ("b8", "zeros", True)


@pytest.mark.parametrize("filled", ["= {{1, 2}}", "= {{0, 0}, {0, 1}}", "= {}; h[3].a = 1", "; read(h)"])
def test_structs_that_hold_something_are_still_asked_about(filled: str) -> None:
    kernel = """struct Pair { float a; int b; };
    __global__ void k(const Pair* ps, float* out) { int i = threadIdx.x; out[i] = ps[i].a * ps[i].b; }\n"""
    host = f"""int main() {{ Pair h[100] {filled}; Pair* d; float* o; cudaMalloc(&d, sizeof(h)); cudaMalloc(&o, 400);
      cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice); k<<<1, 100>>>(d, o); }}"""
    assert asked(kernel + host).questions == ("contents of `d`?",)
