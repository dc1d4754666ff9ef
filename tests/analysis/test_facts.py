"""What is known of a kernel: values through locals, dependence on threads, loops, accesses. Unknown stays unknown."""

import pytest

from agent.analysis.coalescing import block_lanes, sectors, unrolled, wavefronts
from agent.analysis.facts import Facts, analyse
from agent.analysis.patterns.tree_reduction import tree_reductions
from agent.analysis.values import is_uniform, thread_dependent, value
from agent.source.document import parse


def facts(
    body: str, parameters: str = "const float* x, float* y, int n, int m", before: str = "", **known: int
) -> Facts:
    document = parse(f"{before}\n__global__ void k({parameters}) {{\n{body}\n}}\n".encode(), "test.cu")
    (kernel,) = document.kernels
    assert kernel.damage is None, kernel.damage
    return analyse(document, kernel, {name.replace("_", "."): extent for name, extent in known.items()})


def index(found: Facts, at: int = 0) -> str:
    return str(found.accesses[at].index)


INDICES = {
    "y[threadIdx.x] = 0;": "threadIdx.x",
    "int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 0;": "threadIdx.x + blockDim.x*blockIdx.x",
    "int r = threadIdx.y, c = threadIdx.x; y[r * n + c] = 0;": "threadIdx.x + n*threadIdx.y",
    "const auto i = (size_t)threadIdx.x * n; y[i + 3] = 0;": "3 + n*threadIdx.x",
    "float* p = y + 2 * n; p[threadIdx.x] = 0;": "2*n + threadIdx.x",
    "size_t const i{blockIdx.x * 4 + threadIdx.x}; y[i * n] = 0;": "4*blockIdx.x*n + n*threadIdx.x",
    "unsigned int u(threadIdx.x); y[u * 9] = 0;": "9*threadIdx.x",
    "float* p = &y[n]; p[m] = 0;": "m + n",
    "y[threadIdx.x << 2] = 0;": "4*threadIdx.x",
    "y[TILE * threadIdx.x] = 0;": "16*threadIdx.x",
    "y[static_cast<int>(threadIdx.x) - unsigned(n)] = 0;": "-1*n + threadIdx.x",
    "y[threadIdx.x / 4] = 0;": "(threadIdx.x)/(4)",
    "y[7 / 2 + 7 % 4] = 0;": "6",
    "*(y + n) = 0;": "n",
    "*y = 0;": "0",
}


@pytest.mark.parametrize("body", INDICES)
def test_indices_through_local_definitions(body: str) -> None:
    assert index(facts(body, before="#define TILE 16")) == INDICES[body]


def test_one_value_in_brackets_is_that_of_a_number_and_of_nothing_else() -> None:
    assert index(facts("float* p{y + 8}; p[1] = 0;")) == "9"
    assert index(facts("Index i{threadIdx.x}; y[i] = 0;")) != "threadIdx.x"
    assert index(facts("float4 i(3); y[i.x] = 0;")) != "3"


HINTED = {
    "y[0] = __ldg(x + threadIdx.x * n);": ("x", "n*threadIdx.x", True, False),
    "y[0] = __ldcs(&x[2 * threadIdx.x]);": ("x", "2*threadIdx.x", True, False),
    "y[0] = __ldg(x);": ("x", "0", True, False),
    "__stcs(&y[threadIdx.x + 3], x[0]);": ("y", "3 + threadIdx.x", False, True),
    "const float* p = x + n; y[0] = __ldcg(p + threadIdx.x);": ("x", "n + threadIdx.x", True, False),
}


@pytest.mark.parametrize("body", HINTED)
def test_loads_and_stores_by_functions(body: str) -> None:
    (found,) = facts(body).hinted
    assert (found.name, str(found.index), found.reads, found.writes) == HINTED[body]
    assert (found.space, found.element, found.atomic) == ("global", "float", False)


def test_a_vector_that_a_function_loads_is_loaded_whole() -> None:
    (found,) = facts("y[0] = __ldg(v + threadIdx.x).x;", parameters="const float4* v, float* y").hinted
    assert (found.element, found.member) == ("float4", "")


WIDENED = {
    "*(float4*)(x + 3 * threadIdx.x) = v;": ("3*threadIdx.x", ("float", "float4")),
    "reinterpret_cast<float2*>(x + threadIdx.x * n + m)[0] = w;": ("n*threadIdx.x", ("float", "float2")),
    "((float2*)(x + threadIdx.x * n))[1] = w;": ("n*threadIdx.x", ("float", "float2")),
    "((float2*)(x + threadIdx.x * n))[threadIdx.y] = w;": None,
    "*(float4*)(x + 4 * threadIdx.x) = v;": None,  # whole ones, which are counted as such
}


@pytest.mark.parametrize("body", WIDENED)
def test_a_wider_type_at_an_element(body: str) -> None:
    (found,) = [one for one in facts(body, "float* x, float4 v, float2 w, int n, int m").accesses if one.writes]
    spread = None if found.spread is None else str(found.spread).removeprefix("m + ")
    assert (found.cast and (spread, found.cast)) == WIDENED[body]


FORMULAS = {
    ("#define IDX(i, j) ((i) * 8 + (j))", "y[IDX(threadIdx.y, threadIdx.x + 1)]"): "1 + threadIdx.x + 8*threadIdx.y",
    ("#define IDX(i, j) i * 8 + j", "y[IDX(threadIdx.y, n)]"): "n + 8*threadIdx.y",
    ("#define W 4\n#define IDX(i) ((i) * W)  // row", "y[IDX(m)]"): "4*m",
    ("#define IDX(i, s) ((i) * (s) + 1)", "y[IDX(threadIdx.x, n) * 2]"): "2 + 2*n*threadIdx.x",
    ("__device__ int at(int i, int j) { return j * 8 + i; }", "y[at(threadIdx.x, 1 + n)]"): "8 + 8*n + threadIdx.x",
}
NO_FORMULAS = {
    "text without parentheses round an argument": ("#define IDX(i) (i * 8)", "y[IDX(n + 1)]"),
    "text without parentheses round it all": ("#define IDX(i) (i) + 8", "y[IDX(n) * 2]"),
    "a name of the kernel": ("#define IDX(i) ((i) * width)", "int width = 3; y[IDX(n)]"),
    "the thread's index inside": ("#define IDX(i) ((i) * threadIdx.x)", "y[IDX(n)]"),
    "two definitions": ("#if A\n#define IDX(i) (i)\n#else\n#define IDX(i) (8 * (i))\n#endif", "y[IDX(n)]"),
    "a statement more": ("__device__ int at(int i) { i += 1; return i; }", "y[at(n)]"),
    "a float": ("__device__ int at(float i) { return i * 2; }", "y[at(n)]"),
}


@pytest.mark.parametrize(("before", "body"), FORMULAS)
def test_macros_and_functions_that_are_one_expression(before: str, body: str) -> None:
    assert index(facts(f"{body} = 0;", before=before)) == FORMULAS[before, body]


@pytest.mark.parametrize("case", NO_FORMULAS)
def test_macros_that_are_not_followed(case: str) -> None:
    before, body = NO_FORMULAS[case]
    poly = facts(f"{body} = 0;", before=before).accesses[0].index
    assert poly is not None and "unknown" in poly.depends


def test_shared_arrays_of_two_dimensions() -> None:
    found = facts("__shared__ float s[8][33]; s[threadIdx.y][threadIdx.x] = 0;")
    assert index(found) == "threadIdx.x + 33*threadIdx.y"
    assert found.accesses[0].space == "shared"


def test_a_variable_that_changes_is_unknown_at_each_use() -> None:
    found = facts("int i = threadIdx.x; if (n > 3) i += 2; y[i] = 0; i = 5; y[i] = 0;")
    assert found.accesses[0].index != found.accesses[1].index
    assert found.accesses[0].index is not None
    assert found.accesses[0].index.coefficient("threadIdx.x") is None
    assert "threadIdx.x" in found.accesses[0].index.depends


def test_shadowed_names_are_told_apart() -> None:
    found = facts("int i = n; { int i = m; y[i] = 0; } y[i] = 0;")
    assert (index(found, 0), index(found, 1)) == ("m", "n")


def test_a_moved_pointer_keeps_its_root_but_not_its_offset() -> None:
    found = facts("float* p = y; p += n; p[0] = 0;")
    written = next(access for access in found.accesses if access.writes)
    assert written.root is not None and written.root.name == "y" and written.index is None


def test_a_pointer_of_two_origins_has_none() -> None:
    found = facts("float* p = y; if (n) p = y + 4; p[0] = 0;")
    assert next(access for access in found.accesses if access.writes).root is None


UNIFORM = {
    "n": True,
    "blockIdx.x * n + 3": True,
    "threadIdx.x": False,
    "threadIdx.x / 32": False,
    "x[n]": True,
    "x[threadIdx.x]": False,
    "sqrtf((float)n)": True,
    "mystery(n)": None,
    "__shfl_sync(0xffffffffu, n, 0)": None,
    "late": False,
    "early": True,
    "branched": False,
    "skipped": False,
    "of_block": True,
    "rsqrtf(of_block)": True,
}


@pytest.mark.parametrize("expression", UNIFORM)
def test_uniformity(expression: str) -> None:
    found = facts(f"""
        int early = n; if (m > 2) early = 7;
        int late = n; if (threadIdx.x > 2) late = 7;
        int branched = threadIdx.x < 4 ? 1 : 2;
        __shared__ float of_block; if (threadIdx.x == 0) of_block = x[0];
        int skipped = 0;
        for (int i = 0; i < n; ++i) {{ if (threadIdx.x == i) continue; skipped = i; }}
        if ({expression}) y[0] = 1;
    """)
    condition = next(node for node in _ifs(found) if node.text is not None and node.text.decode() == f"({expression})")
    assert is_uniform(condition, found.scope) == (UNIFORM[expression] is True)
    known = None if UNIFORM[expression] is None else not UNIFORM[expression]
    assert thread_dependent(condition, found.scope) is known


def _ifs(found: Facts):  # type: ignore[no-untyped-def]
    from agent.analysis.syntax import descendants

    return [node.child_by_field_name("condition") for node in descendants(found.body, "if_statement")]


LOOPS = {
    "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;": "threadIdx.x < n + blockDim.x",
    "for (int i = 0; i < n; ++i) y[i] = 0;": "0 < n + 1",
    "for (int i = n - 1; i >= 0; i--) y[i] = 0;": "-1 + n >= 0 + -1",
    "for (int s = 128; s > 0; s >>= 1) y[s] = 0;": "128 > 0 / 2",
    "for (int s = 1; s < n; s = s * 2) y[s] = 0;": "1 < n * 2",
    "int i; for (i = 2; n > i; i = i + m) y[i] = 0;": "2 < n + m",
    "int i = 3; while (i < n) { y[i] = 0; i += 2; }": "3 < n + 2",
    "int s = 64; while (s) { y[s] = 0; s /= 2; }": "64 != 0 / 2",
}


@pytest.mark.parametrize("text", LOOPS)
def test_loops(text: str) -> None:
    (loop,) = facts(text).loops
    assert f"{loop.start} {loop.relation} {loop.bound} {loop.step_kind} {loop.step}" == LOOPS[text]


NO_LOOPS = [
    "for (int i = 0; i < n; ++i) { if (x[i] > 0) i += 2; }",
    "for (int i = 0; i < n; i += 1, n--) y[i] = 0;",
    "for (int i = 0; i * i < n; ++i) y[i] = 0;",
    "int i = 0; int* p = &i; for (; i < n; ++i) *p = 3;",
    "int i = 0; while (i < n) { i += 2; y[i] = 0; }",
    "for (;;) { if (n) break; }",
    "do { y[0] = 1; } while (n);",
]


@pytest.mark.parametrize("text", NO_LOOPS)
def test_loops_that_are_not_followed(text: str) -> None:
    assert facts(text).loops == ()


def test_reads_writes_and_atomics() -> None:
    found = facts("y[0] = x[1]; y[2] += x[3]; y[4]++; atomicAdd(&y[5], 1.0f); float* p = &y[6];")
    kinds = [(str(a.index), a.reads, a.writes, a.atomic) for a in found.accesses]
    assert kinds == [
        ("0", False, True, False),
        ("1", True, False, False),
        ("2", True, True, False),
        ("3", True, False, False),
        ("4", True, True, False),
        ("5", True, True, True),
    ]


def test_sectors_by_hand() -> None:
    """32 lanes of 4 bytes: side by side 128 bytes are 4 sectors; every second one 8; a row of 100 apart 32."""
    lanes = [{"threadIdx.x": lane, "n": 100} for lane in range(32)]
    for body, expected in (("y[threadIdx.x]", 4), ("y[2 * threadIdx.x]", 8), ("y[n * threadIdx.x]", 32), ("y[n]", 1)):
        poly = facts(f"{body} = 0;").accesses[0].index
        assert poly is not None and sectors(poly, lanes, 4) == expected
    poly = facts("y[threadIdx.x] = 0;").accesses[0].index
    assert poly is not None and sectors(poly, lanes, 8) == 8 and sectors(poly, [{}], 4) is None


def test_bank_conflicts_by_hand() -> None:
    """A column of an array 32 wide is 32 passes, of one 33 wide a single pass; one word for all lanes is none."""
    lanes = [{"threadIdx.x": lane} for lane in range(32)]
    for width, passes in ((32, 32), (33, 1), (2, 2), (0, 1)):
        poly = facts(f"y[{width} * threadIdx.x] = 0;").accesses[0].index
        assert poly is not None and wavefronts(poly, lanes, 4) == passes


def test_a_strided_loop_shows_its_thread_index() -> None:
    found = facts("for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;")
    poly = found.accesses[0].index
    assert poly is not None and poly.coefficient("threadIdx.x") is None
    slope = unrolled(poly, found.loops).coefficient("threadIdx.x")
    assert slope is not None and slope.constant == 1


def test_lanes_of_a_warp() -> None:
    assert block_lanes((16, 4, 1))[17] == (1, 1, 0)
    assert block_lanes((16, 4, 1), exchanged=True)[5] == (1, 1, 0)
    assert len(block_lanes((8, 2, 1))) == 16


def test_values_of_known_launch_extents() -> None:
    found = facts("int half = blockDim.x / 2; y[half] = 0;", blockDim_x=256)
    assert value(found.accesses[0].node.children[1].named_children[0], found.scope).constant == 128


def test_a_tree_over_a_symbolic_block_is_not_guessed() -> None:
    text = """__shared__ float s[256];
    for (int h = blockDim.x / 2; h > 0; h /= 2) {
        if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
        __syncthreads();
    }"""
    assert tree_reductions(facts(text)) == ()
    (tree,) = tree_reductions(facts(text, blockDim_x=256))
    assert (tree.width, tree.array.name, tree.combination.op) == (256, "s", "sum")


NO_TREES = {
    "other distance": "if (t < h) s[t] += s[t + 2 * h];",
    "other array": "if (t < h) s[t] += u[t + h];",
    "two arrays": "if (t < h) { s[t] += s[t + h]; u[t] += u[t + h]; }",
    "else": "if (t < h) s[t] += s[t + h]; else s[t] = 0;",
    "wrong way round": "if (t > h) s[t] += s[t - h];",
    "not the same element": "if (t < h) s[t] = s[t + h] + s[t + 1];",
    "also global": "if (t < h) { s[t] += s[t + h]; } y[t] = s[t];",
}


@pytest.mark.parametrize("case", NO_TREES)
def test_what_is_no_tree(case: str) -> None:
    text = f"""__shared__ float s[256]; __shared__ float u[256]; int t = threadIdx.x;
    for (int h = 128; h > 0; h /= 2) {{ {NO_TREES[case]} __syncthreads(); }}"""
    assert tree_reductions(facts(text, blockDim_x=256)) == ()
