"""Loops that only exchange two buffers before a launch that writes both anew."""

import pytest
from attrs import evolve

from agent.search.host.edits import host_edits
from agent.search.host.readback import contradiction
from agent.search.host.written import only_written
from agent.source.document import parse
from agent.workload.find import find_workload
from agent.workload.program import Program
from tests.search.host.test_plans import plan

STEP = (
    "__global__ void step(const int* in, int* out, int n, int d) { int i = threadIdx.x; if (i < n) out[i] = in[i]; }\n"
)
MAIN = """\
#include <utility>
int main() {
    const int n = 5000;
    int *a, *b;
    cudaMalloc(&a, n * sizeof(int));
    cudaMalloc((void**)&b, n * sizeof(int));
    cudaMemset(a, 0, n * sizeof(int));
    for (int d = 1; d < n; d *= 2) {
        step<<<(n + 255) / 256, 256>>>(a, b, n, d);
        std::swap(a, b);
    }
    AFTER
    cudaFree(a);
    cudaFree(b);
}
"""
PLAN = """
scratch t: i32[n]
launch tiles<<<(n + 255) / 256, 256>>>(a, t, n)
repeat d = 1; d < n; d *= 2 { swap a b }
launch step<<<(n + 255) / 256, 256>>>(t, a, b, n)
"""
TILES = "__global__ void tiles(const int* in, int* t, int n) { t[threadIdx.x] = in[n]; }\n"
FINISH = "__global__ void step(const int* t, int* p, int* q, int n) { BODY }\n"
BOTH = "int i = threadIdx.x; if (i < n) { p[i] = t[i]; q[i] = 0; }"


def host(body: str = BOTH, after: str = "", statements: str = PLAN, main: str = MAIN) -> str:
    """The host code after a rewrite whose last kernel has this body."""
    text = main.replace("AFTER", after)
    document = parse((STEP + text).encode(), "k.cu")
    workload = find_workload(document, document.kernel("step"))
    original = Program(document, workload.plan, "original")
    code = TILES + FINISH.replace("BODY", body) + text
    rewrite = Program(parse(code.encode(), "k.cu"), plan(statements), "rewrite")
    edits = host_edits(original, rewrite, workload)
    assert edits.by_hand == ""
    assert contradiction(original, evolve(rewrite, plan=edits.plan), edits.document, workload) == ""
    return edits.document.text.decode()[len(code) - len(text) :]


def keeps(text: str) -> bool:
    return "for (int d = 1; d < n;" in text and "std::swap(a, b);\n    }" in text


def test_the_host_code_goes_without() -> None:
    text = host(after="cudaMemcpy(back, a, n * sizeof(int), cudaMemcpyDeviceToHost);")
    assert (
        """\
    tiles<<<(n + 255) / 256, 256>>>(a, t, n);
    step<<<(n + 255) / 256, 256>>>(t, a, b, n);
"""
        in text
    )
    assert "swap(" not in text and "for (" not in text


@pytest.mark.parametrize(
    "body",
    [
        "p[threadIdx.x] = q[threadIdx.x];",
        "p[threadIdx.x] += t[0]; q[threadIdx.x] = 1;",
        "p[threadIdx.x]++; q[0] = 1;",
        "int* r = p; q[0] = 1; r[0] = 2;",
        "p[0] = 1; q[0] = p == q;",
        "p[q[0]] = 1;",
        "elsewhere(p); q[0] = 1;",
        "atomicAdd(&p[0], 1); q[0] = 1;",
    ],
)
def test_not_where_the_launch_does_more_than_write(body: str) -> None:
    assert keeps(host(body))


@pytest.mark.parametrize(
    "after",
    [
        "int* other = a;",
        "use(a);",
        "hold.pointer = b;",
        "int** where = &a;",
        "auto read = [&] { cudaMemcpy(back, a, 4, cudaMemcpyDeviceToHost); };",
        "if (a == first) other();",
        "cudaMemcpy(back, a + 1, 4, cudaMemcpyDeviceToHost);",
        "return a[0];",
    ],
)
def test_not_where_a_buffer_may_have_another_name(after: str) -> None:
    assert keeps(host(after=after))


def test_not_where_anything_comes_between_or_a_buffer_is_taken_in_part() -> None:
    between = PLAN.replace("launch step", "launch tiles<<<1, 256>>>(a, t, n)\nlaunch step")
    assert keeps(host(statements=between))
    assert keeps(host(statements=PLAN.replace("(t, a, b, n)", "(t, a + 1, b, n)")))
    assert keeps(host(statements=PLAN.replace("(t, a, b, n)", "(t, a, t, n)")))
    assert keeps(host(main=MAIN.replace("cudaMalloc((void**)&b, n *", "cudaMalloc((void**)&b, 2 * n *")))
    assert keeps(host(main=MAIN.replace("#include", "#define RESULT a\n#include")))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("void f(int* p) { p[0] = 1; *p = 2; (*p) = 3; }", True),
        ("void f(int* p, int i) { *reinterpret_cast<int4*>(p) = v; *((int4*)p) = v; ((int2*)p)[i] = w; }", True),
        ("void f(int* p) { if ((size_t)p % 16 == 0) p[1] = 1; }", True),
        ("void g(int n, int* q) { q[n] = 1; }\nvoid f(int* p) { g(3, &p[2]); g(4, p); }", True),
        ("void g(int* q) { q[0] += 1; }\nvoid f(int* p) { g(p); }", False),
        ("void f(int* p) { f(p); }", False),
        ("void f(int* p) { p[0] = p[1]; }", False),
        ("void f(int* p) { int x = *p; }", False),
        ("void f(int* p) { ++p; p[0] = 1; }", False),
        ("void f(int* p) { return p; }", False),
        ("void f(int*) {}", True),
        ("void f(int* p) { p[0] = 1; }\nvoid f(int* p, int n) { n = p[0]; }", False),
        ("#define GET p[0]\nvoid f(int* p) { p[1] = GET; }", False),
    ],
)
def test_only_written(text: str, written: bool) -> None:
    document = parse(text.encode())
    assert only_written(document, "f", 0) is written
    assert not only_written(document, "missing", 0)
