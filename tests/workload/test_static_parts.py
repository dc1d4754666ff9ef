"""Members of structs and elements of host arrays that give sizes, and what may have changed them."""

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.static import infer

HEAD = """
struct Shape { int rows; int cols; };
struct Config { Shape shape; float scale; };
__global__ void k(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }
"""


def elements(body: str, head: str = "") -> int:
    """The elements of the buffer that ``int n`` sizes at the end of ``body``."""
    launch = "float* p; cudaMalloc(&p, n * sizeof(float)); k<<<1, 64>>>(p, n);"
    document = parse(f"{HEAD}{head}int main() {{ {body} {launch} }}\n".encode())
    found = infer(document, document.kernel("k"))
    values: dict[str, int | float] = {size.name: size.value for size in found.sizes}
    return int(found.buffers[0].extent.evaluate(values))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int d[] = {40, 50, 60}; int n = d[1];", 50),
        ("int d[3]; d[0] = 40; d[1] = 50; int n = d[0] * d[1];", 2000),
        ("const int d[2][1] = {{40}, {50}}; int m = 7; int n = m;", 7),
        ("Shape a = {40, 50}; Shape b = a; int n = b.rows * b.cols;", 2000),
        ("Shape a = {40, 50}, b; b = a; a.rows = 3; int n = b.rows;", 40),
        ("Config c; c.shape.rows = 40; Config e = c; int n = e.shape.rows;", 40),
        ("Shape s[2] = {{40, 50}, {60, 70}}; int n = s[1].rows;", 60),
        ("Shape* s = (Shape*)malloc(sizeof(Shape)); s->rows = 40; int n = s->rows;", 40),
        ("Shape* s = new Shape; (*s).rows = 40; int n = s->rows;", 40),
        ("Shape a = make(40); int n = a.rows;", 40),
        ("Shape a = {40, 50}; int n = area(a);", 2000),
        ("Shape a = {40, 50}; grow(&a); int n = a.rows;", 41),
        ("Shape a = {40, 50}; widen(a); int n = a.rows;", 42),
        ("int* q = (int*)malloc(sizeof(int)); *q = 40; int n = *q;", 40),
        ("std::vector<int> d = {40, 50}; int n = d[1];", 50),
    ],
)
def test_parts_keep_their_values(body: str, expected: int) -> None:
    functions = (
        "Shape make(int r) { Shape s; s.rows = r; s.cols = 2; return s; }\n"
        "int area(Shape s) { return s.rows * s.cols; }\n"
        "void grow(Shape* s) { s->rows += 1; }\n"
        "void widen(Shape& s) { s.rows += 2; }\n"
    )
    assert elements(body, functions) == expected


@pytest.mark.parametrize(
    "body",
    [
        "int d[2] = {40, 50}; read_numbers(d); int n = d[1];",
        "int d[2] = {40, 50}; fread(d, 4, 2, f); int n = d[0];",
        "int d[2] = {40, 50}; d[atoi(s)] = 3; int n = d[0];",
        "int d[2] = {40, 50}; for (int i = 0; i < m; i++) d[i] = g(i); int n = d[0];",
        "int d[2] = {40, 50}; memcpy(d, e, 8); int n = d[0];",
        "int d[2] = {40, 50}; cudaMemcpy(d, q, 8, cudaMemcpyDeviceToHost); int n = d[0];",
        "Shape a = {40, 50}; read_shape(&a); int n = a.rows;",
        'Shape a = {40, 50}; Shape* q = &a; scanf("%d", &q->rows); int n = a.rows;',
        "Shape a = {40, 50}; if (g()) a.rows = 3; int n = a.rows;",
        "Shape a = {40, 50}; while (g()) a.rows *= 2; int n = a.rows;",
        "Shape* s = (Shape*)malloc(8 * sizeof(Shape)); s[0].rows = 40; s[m].rows = 7; int n = s[0].rows;",
        "Shape a; Shape b = {40, 50}; b = a; int n = b.rows;",
    ],
)
def test_what_may_have_changed_a_part_makes_it_a_question(body: str) -> None:
    with pytest.raises(NoWorkload):
        elements("extern int m; " + body)


def sizes(body: str) -> dict[str, int]:
    launch = "float* p; cudaMalloc(&p, n * sizeof(float)); k<<<1, 64>>>(p, n);"
    document = parse(f"{HEAD}int main() {{ int n = 64; {body.replace('LAUNCH', launch)} }}\n".encode())
    return {size.name: size.value for size in infer(document, document.kernel("k")).sizes}


@pytest.mark.parametrize(
    "body",
    [
        "LAUNCH int wrong = 0; for (int i = 0; i < n; i++) wrong += i;",
        "int bad = 0; for (int i = 0; i < n; i++) if (h[i] > 1) bad++; LAUNCH",
        "for (int i = 0; i < n; i++) h[i] = i; LAUNCH",
    ],
)
def test_a_loop_that_gives_the_launch_nothing_ties_no_size(body: str) -> None:
    assert sizes(body) == {"n": 64}


def test_the_bytes_of_an_array_are_no_size_to_vary() -> None:
    assert sizes("float h[] = {1, 2, 3}; int bytes = sizeof(h); n += bytes; LAUNCH") == {"n": 64}
    assert sizes("float h[64]; int bytes = n * sizeof(float); n = bytes / 4; LAUNCH") == {"n": 64}


def test_a_loop_that_gives_a_size_ties_it_to_the_number_that_it_ran_with() -> None:
    assert sizes("int m = 1; while (m < n) m *= 2; n = m; LAUNCH") == {}


CLASS = """struct Params {
  int rows, cols;
  int unset;
  float scale = 0.5f;
  Params(int r, int c) { rows = r; int twice = 2 * c; cols = twice; if (r > 100) cols = 1; }
  Params(int r) : rows(r), cols(7) {}
  Params();
  void grow() { rows *= 2; }
  int see() const { return rows; }
};
int rows = 3;
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("const Params p(40, 50); int n = p.rows * p.cols;", 4000),
        ("int r = 40, c = 50; const Params p(r, c); int n = p.cols;", 100),
        ("int r = 400, c = 50; const Params p(r, c); int n = p.cols;", 1),
        ("const Params p(40, 50); int n = area(p);", 4000),
        ("const Params p(40, 50); int n = rows;", 3),
        ("Params p(40); int n = p.rows * p.cols;", 280),
        ("Params p(40, 50); p.see(); int n = p.rows;", 40),
    ],
    ids=[
        "numbers",
        "names, as a function is declared",
        "a branch",
        "handed on",
        "a name of the file",
        "a list of initial values",
        "a method that changes nothing",
    ],
)
def test_a_constructor_sets_the_members_of_what_stays_as_it_is(body: str, expected: int) -> None:
    assert elements(body, CLASS + "int area(const Params& q) { return q.rows * q.cols; }\n") == expected


@pytest.mark.parametrize(
    "body",
    [
        "Params p(40, 50); p.grow(); int n = p.rows;",
        "const Params p(40, 50); int n = p.unset;",
        "int r = g(), c = 2; const Params p(r, c); int n = p.rows;",
    ],
    ids=["may be changed", "not set", "an argument that is not known"],
)
def test_what_a_constructor_does_not_tell_is_asked(body: str) -> None:
    with pytest.raises(NoWorkload):
        elements(body, CLASS)
