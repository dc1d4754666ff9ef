"""What a kernel does to its buffers, by every way that leads to an element: pointers, references, arrays in structs."""

import pytest

from agent.source.document import parse
from agent.workload.describe import origin
from agent.workload.directive import plan_statements
from agent.workload.static import infer
from agent.workload.static.usage import usage
from agent.workload.workload import Access

CELLS = """
struct Cell {
    float v[4]; int k; float4 at;
    __device__ void step() { k += 1; }
    __device__ int key() const { return k; }
};
__device__ void bump(Cell& cell) { cell.k += 1; }
__device__ int look(const Cell& cell, int i) { return cell.k + i; }
__device__ int both(int i, Cell& cell) { return cell.k = i; }
"""

READ, WRITE, BOTH, NONE = (True, False), (False, True), (True, True), (False, False)


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("o[i] = c[i].k;", READ),
        ("c[i].k = i;", WRITE),
        ("c[i].k += i;", BOTH),
        ("float* v = c[i].v; v[0] = v[1];", BOTH),
        ("float* v = c[i].v; v[0] = 1;", WRITE),
        ("float* v = c->v + i; *v = 1;", WRITE),
        ("auto v = c[i].v; o[i] = v[1];", READ),
        ("float* v = &c[i].v[1]; v[0] = 2;", WRITE),
        ("Cell& cell = c[i]; cell.v[0] = 1;", WRITE),
        ("Cell& cell = c[i]; cell.k++;", BOTH),
        ("const Cell& cell = c[i]; o[i] = cell.k;", READ),
        ("auto& v = c[i].v; v[0] = v[1];", BOTH),
        ("float& first = c[i].v[0]; first = 1;", WRITE),
        ("Cell& cell = c[i]; Cell& same = cell; same.k = 1;", WRITE),
        ("Cell& cell = c[i]; float* v = cell.v; v[0] = 1;", WRITE),
        ("Cell cell = c[i]; cell.k = 1; o[i] = cell.k;", READ),
        ("Cell* p = &c[i]; p->v[0] = p->v[1];", BOTH),
        ("(*(c + i)).v[0] = 1;", WRITE),
        ("c[i].at.x = 1;", WRITE),
        ("o[i] = c[i].at.x + 1;", READ),
        ("bump(c[i]);", BOTH),
        ("o[i] = look(c[i], 3);", READ),
        ("o[i] = both(3, c[i]);", BOTH),
        ("c[i].step();", BOTH),
        ("o[i] = c[i].key();", READ),
        ("Cell& cell = c[i]; cell.step();", BOTH),
        ("Cell* p = i ? c : other; p[0].k = 1;", BOTH),
        ("Cell* p = i ? other : c; p[0].k = 1;", BOTH),
        ("Cell* p = other; if (i) p = c; p[0].k = 1;", BOTH),
        ("atomicAdd(&c[i].k, 1);", BOTH),
        ("o[i] = sizeof(float);", NONE),
    ],
)
def test_every_way_to_an_element(body: str, role: tuple[bool, bool]) -> None:
    text = f"{CELLS}__global__ void k(Cell* c, Cell* other, float* o) {{ int i = threadIdx.x; {body} }}\n"
    document = parse(text.encode())
    assert usage(document, document.kernels[0]).role("c") == role


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("Cell (*row)[4] = a + i; (*row)[0].k = 1;", WRITE),
        ("Cell (*row)[4] = a + i; Cell* c = &(*row)[1]; c->v[0] = c->v[1];", BOTH),
        ("a[i][0].k = a[i][1].k;", BOTH),
        ("Cell& c = a[i][0]; c.k = 1;", WRITE),
        ("Cell* c = a[i]; c[0].k = 1;", BOTH),
    ],
)
def test_pointers_to_arrays_of_structs(body: str, role: tuple[bool, bool]) -> None:
    text = f"{CELLS}__global__ void k(Cell (*a)[4]) {{ int i = threadIdx.x; {body} }}\n"
    document = parse(text.encode())
    assert usage(document, document.kernels[0]).role("a") == role


def test_a_member_that_is_an_array_in_one_struct_alone_is_looked_at_as_both() -> None:
    text = CELLS + (
        "struct Other { float v; };\n"
        "__global__ void k(Cell* c, Other* o) { o[0].v = 1; float* v = c[0].v; v[0] = v[1]; }\n"
    )
    document = parse(text.encode())
    found = usage(document, document.kernels[0])
    assert found.role("o") == WRITE and found.role("c") == BOTH


@pytest.mark.parametrize(
    ("body", "access"),
    [
        ("x[i] *= 2;", Access.INOUT),
        ("x[i] = x[i] + 1;", Access.INOUT),
        ("float before = x[i]; x[i] = before + 1;", Access.INOUT),
        ("atomicAdd(&x[i], 1.0f);", Access.INOUT),
        ("x[i] = 1; __syncthreads(); x[i] = x[0] + 2;", Access.OUT),
        ("x[i] = 1; x[i] += 2;", Access.OUT),
        ("atomicExch(&x[i], 1.0f);", Access.OUT),
        ("x[i] = 1;", Access.OUT),
        ("if (i < 100) x[i] += 1;", Access.INOUT),
        ("if (i < 100) { float s = x[i]; x[i] = s; }", Access.INOUT),
        ("float s = 0; if (clock() > 3) { s = x[i]; } x[i] = s;", Access.OUT),
        ("float s = clock() > 3 ? x[i] : 0; x[i] = s;", Access.OUT),
        ("switch (i & 1) { case 0: { float s = x[i]; x[i] = s; } }", Access.INOUT),
        ("switch (i & 1) { case 0: float s; s = x[i]; x[i] = s; break; }", Access.INOUT),
        ("switch (i & 1) { case 0: x[i] = 1; break; default: x[i] = 2; }", Access.OUT),
    ],
)
def test_what_nothing_fills_is_no_output_where_it_is_read_first(body: str, access: Access) -> None:
    text = (
        f"__global__ void k(float* x) {{ int i = threadIdx.x; {body} }}\n"
        "int main() { float* x; cudaMalloc(&x, 256 * 4); k<<<1, 256>>>(x); }\n"
    )
    document = parse(text.encode())
    found = infer(document, document.kernels[0])
    assert [buffer.access for buffer in found.buffers] == [access]
    told = [note for note in found.notes if "reads `x` before it writes it" in note]
    assert len(told) == (access is Access.INOUT)


STEP = """
__global__ void step(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) b[i] = a[i - 1] + a[i + 1];
}
int main() {
    const int n = 1024; float *a, *b, *c;
    cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); cudaMalloc(&c, n * 4);
    for (int t = 0; t < 10; t++) { TURN }
}
"""


def test_three_buffers_in_turn() -> None:
    """The third is no argument in the first turn, but of the later ones."""
    turn = "step<<<4, 256>>>(a, b, n); float* x = a; a = b; b = c; c = x;"
    document = parse(STEP.replace("TURN", turn).encode())
    found = infer(document, document.kernels[0])
    roles = {buffer.name: buffer.access for buffer in found.buffers}
    assert roles == {"a": Access.INOUT, "b": Access.OUT, "c": Access.INOUT}
    assert [buffer.dtype for buffer in found.buffers] == ["f32"] * 3
    assert "swap     a b" in "\n".join(plan_statements(found.plan)) and len(found.plan.steps) == 1


def test_that_one_turn_is_taken_of_several_is_told_with_the_launch() -> None:
    turn = "if (rand() % 2) step<<<4, 256>>>(a, b, n); else step<<<4, 256>>>(b, a, n);"
    document = parse(STEP.replace("TURN", turn).encode())
    found = infer(document, document.kernels[0])
    assert "the first turn alone" in origin(found)
