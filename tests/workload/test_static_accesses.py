"""What a kernel does to its buffers, by every way that leads to an element: pointers, references, arrays in structs."""

import pytest

from agent.source.document import parse
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
