"""Directives: the grammar, its errors, and text that reads back as the same workload."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import parse
from agent.workload.describe import arguments
from agent.workload.directive import format_directive, partial_sizes, read_directive
from agent.workload.errors import WorkloadError
from agent.workload.expression import build, name, number
from agent.workload.find import find_workload
from agent.workload.plan import Copy, Fill, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.settings import Settings
from agent.workload.statements import read_statements
from agent.workload.workload import Access, Buffer, Comparator, Constant, Domain, Origin, Reference, Size, Workload

KERNEL = "__global__ void k(const float* x, float* y, int n) { y[n] = x[n]; }\n"
GOOD = """\
// cuda-lsp: workload
//   size     n = 1 << 10, m = 3 min 2 multiple 3
//   const    alpha = 0.5
//   buffer   x: f32[n * m] in uniform(-1, 1)
//   buffer   y: f32[n
//              * m] out
//   launch   k<<<(n + 255) / 256, (256)>>>(x, y + 1, n)
//   compare  y numeric 1e-5
//   flags    -DTILE=16 --use_fast_math
//   lossy
"""


def read(text: str) -> Workload | None:
    document = parse(text.encode())
    return read_directive(document, document.kernel("k"))


def test_everything_is_read() -> None:
    found = read(GOOD + KERNEL)
    assert found is not None
    n, m = name("n"), name("m")
    assert found.kernel == "k" and found.origin == Origin("directive", 1)
    assert found.sizes == (Size("n", 1024, Origin("directive", 2)), Size("m", 3, Origin("directive", 2), 2, 3))
    assert found.constants == (Constant("alpha", number(0.5), Origin("directive", 3)),)
    x, y = found.buffers
    assert x == Buffer(
        "x",
        "f32",
        build("*", (n, m)),
        Access.IN,
        Domain("uniform", number(-1), number(1), True),
        Origin("directive", 4),
    )
    assert y.access is Access.OUT and y.extent == build("*", (n, m)) and y.origin.line == 5
    (launch,) = found.plan.steps
    assert isinstance(launch, Launch)
    assert [str(part) for part in launch.grid] == ["(n + 255) / 256", "1", "1"]
    assert [str(part) for part in launch.arguments] == ["x", "y + 1", "n"]
    assert found.comparators == (("y", Comparator("numeric", 1e-5)),)
    assert found.flags == ("-DTILE=16", "--use_fast_math") and found.lossy


@pytest.mark.parametrize(
    "between",
    ["", "// another comment\n", "\n\n", '#pragma once\nextern "C" ', "/* block */ static "],
)
def test_what_may_stand_between_directive_and_kernel(between: str) -> None:
    assert read(GOOD + "//\n" + between + KERNEL) == read(GOOD + KERNEL)


@pytest.mark.parametrize("between", ["int other;\n", "__global__ void j() {}\n"])
def test_a_directive_of_something_else_is_not_taken(between: str) -> None:
    assert read(GOOD + between + KERNEL) is None


def test_block_comments_crlf_and_the_last_of_two() -> None:
    body = "".join(" *" + line[2:] + "\n" for line in GOOD.splitlines())
    blocked = "/*" + body[2:] + " */\n" + KERNEL
    assert read(blocked) == read(GOOD + KERNEL)
    assert read((GOOD + KERNEL).replace("\n", "\r\n")) == read(GOOD + KERNEL)
    other = GOOD.replace("1 << 10", "77")
    twice = read(GOOD + "int a;\n" + other + KERNEL)
    assert twice is not None and twice.sizes[0].value == 77


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sizes n = 3", "`sizes` is no statement; expected one of size"),
        ("size n", "expected `name = value`"),
        ("size n = 0", "whole number of at least 1"),
        ("size n = 2.5", "whole number"),
        ("size n = m + 1", "expected a number"),
        ("size n = 4 min 5", "at least 5"),
        ("buffer x f32[3] in", "expected `name: type[extent] in|out|inout domain`"),
        ("buffer x: float[3] in", "`float` is no element type; expected one of f16"),
        ("buffer x: f32[3 in", "expected `]`"),
        ("buffer x: f32[] in", "expected an expression"),
        ("buffer x: f32[3] input", "comes in, out or inout"),
        ("buffer x: f32[3] in random", "expected one of"),
        ("buffer x: i32[3] in index", "`index` takes one number"),
        ("buffer x: f32[3] in uniform(1)", "`uniform` takes none or two"),
        ("launch k<<<1>>>(x)", "expected grid, block"),
        ("launch k<<<1, 2>>>", "expected `(`"),
        ("launch k<1, 2>>>(x)", "expected `<<<`"),
        ("launch k<<<1, 2>>>(x", "expected `)`"),
        ("launch k<<<dim3(1, 2, 3, 4), 2>>>(x)", "one to three numbers"),
        ("launch 3k<<<1, 2>>>(x)", "is no kernel name"),
        ("repeat 3 { launch k<<<1, 1>>>(x)", "expected `}`"),
        ("repeat i = 1; i < 3 { }", "expected repeat"),
        ("repeat 3 { size n = 3 }", "cannot stand inside a repeat"),
        ("fill x 256", "expected a byte"),
        ("swap x", "expected a buffer's name"),
        ("compare z exact", "`z` is no buffer stated above"),
        ("compare", "expected `buffer comparator tolerance`"),
        ("flags -o /etc/passwd", "`-o` is not allowed"),
        ("flags -include /etc/passwd", "is not allowed"),
        ("flags 'open", "flags:"),
        ("scratch t: f32[3] dirty", "expected nothing or `zeroed`"),
        ("lossy please", "expected nothing after it"),
        ("const a = b c", "const `a`"),
        ("repeat 1 {" * 5 + "}" * 5, "nested more than four deep"),
    ],
)
def test_faults_are_told_with_their_line(line: str, words: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        read_statements(f"size a = 1\n{line}", "k", Origin("directive", 10), 10)
    assert words in str(raised.value)
    assert raised.value.line == 11


def test_a_directive_that_contradicts_the_kernel_is_refused_with_its_line() -> None:
    with pytest.raises(WorkloadError, match="line 2: `k` takes 3 arguments, the plan passes 1"):
        read("int a;\n// cuda-lsp: workload\n//  buffer x: f32[3] in\n//  launch k<<<1, 1>>>(x)\n" + KERNEL)
    with pytest.raises(WorkloadError, match="launches nothing"):
        read("// cuda-lsp: workload\n//  buffer x: f32[3] in\n" + KERNEL)


def test_sizes_alone_are_answers() -> None:
    document = parse(("// cuda-lsp: workload\n//   size n = 5\n" + KERNEL).encode())
    assert partial_sizes(document, document.kernel("k")) == {"n": 5}
    whole = parse((GOOD + KERNEL).encode())
    assert partial_sizes(whole, whole.kernel("k")) is None


names = st.sampled_from(["n", "m", "rows"])
extents = st.sampled_from(["n", "n * m", "(n + 255) / 256", "4096", "rows + 1", "max(n, m)", "n > m ? n : m"])
numbers = extents.map(lambda text: read_statements(f"const c = {text}", "k", Origin("directive")).constants[0].value)
domains = st.one_of(
    st.sampled_from(["normal", "uniform", "sorted", "permutation"]).map(lambda kind: Domain(kind, given=True)),
    st.tuples(st.integers(-5, 5), st.integers(6, 9), st.booleans()).map(
        lambda t: Domain("uniform", number(t[0]), number(t[1]), t[2])
    ),
    numbers.map(lambda high: Domain("index", number(0), high, False)),
    st.just(Domain("uniform", number(0), None, True)),
    st.just(Domain("constant", number(3), number(3), True)),
)
grids = st.tuples(numbers, numbers, st.sampled_from([number(1), number(2)]))
launches = st.builds(
    Launch,
    st.sampled_from(["k", "ns::k<float, 256>", "k<(3 < 4)>"]),
    grids,
    grids,
    numbers,
    st.lists(numbers | st.sampled_from([name("x"), build("+", (name("y"), number(4)))]), max_size=3).map(tuple),
)
plain = st.one_of(
    launches, st.just(Swap("x", "y")), st.builds(Fill, st.just("x"), st.integers(0, 255)), st.just(Copy("x", "y"))
)
repeats = st.one_of(
    st.builds(Repeat, st.lists(plain, min_size=1, max_size=3).map(tuple), numbers, st.sampled_from([None, "i"])),
    st.builds(
        Repeat,
        st.lists(plain, min_size=1, max_size=2).map(tuple),
        st.none(),
        st.just("s"),
        st.just(number(1)),
        st.just(build("*", (name("s"), number(2)))),
        st.just(build("<", (name("s"), name("n")))),
    ),
)
steps: st.SearchStrategy[Step] = plain | repeats
told = Origin("directive")
buffers = st.builds(
    Buffer,
    st.just("b"),
    st.sampled_from(["f32", "i32", "f32x4", "b12", "bf16"]),
    numbers,
    st.sampled_from(Access),
    domains,
    st.just(told),
    st.booleans(),
)
workloads = st.builds(
    Workload,
    st.just("k"),
    st.lists(names, unique=True).map(lambda found: tuple(Size(n, 7, told, 2, 3) for n in found)),
    st.lists(numbers, max_size=2).map(lambda found: tuple(Constant(f"c{i}", v, told) for i, v in enumerate(found))),
    st.lists(buffers, max_size=3).map(lambda found: tuple(evolve(b, name=f"b{i}") for i, b in enumerate(found))),
    st.builds(
        Plan,
        st.lists(steps, max_size=4).map(tuple),
        st.sampled_from([(), (Scratch("t", "u8", name("n"), True), Scratch("u", "f64", number(3), False))]),
        st.sampled_from([(), (("blocks", name("n")),)]),
    ),
    st.just(()),
    st.booleans(),
    st.just(told),
    st.sampled_from([(), ("-DA=1", "--use_fast_math")]),
)  # fmt: skip


def bare(workload: Workload) -> Workload:
    """Without origins, which text cannot carry."""
    return evolve(
        workload,
        sizes=tuple(evolve(size, origin=told) for size in workload.sizes),
        constants=tuple(evolve(constant, origin=told) for constant in workload.constants),
        buffers=tuple(evolve(buffer, origin=told) for buffer in workload.buffers),
        origin=told,
    )


@settings(max_examples=200, deadline=None)
@given(workloads)
def test_formatted_directives_read_back_as_the_same_workload(workload: Workload) -> None:
    text = "\n".join(line[2:] for line in format_directive(workload).splitlines()[1:])
    assert bare(read_statements(text, "k", told)) == workload


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="sizebufrlaunchk<>(),;=:[]{}/ n0x1.\n#\\", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_statements(text, "k", told, 1)
    except WorkloadError as error:
        assert error.message


def test_a_probed_extent_says_so_and_reads_back() -> None:
    text = GOOD.replace("in uniform", "probed in uniform") + KERNEL
    found = read(text)
    assert found is not None
    x, y = found.buffers
    assert x.probed and x.origin == Origin("probed", 4) and x.access is Access.IN and x.domain.kind == "uniform"
    assert not y.probed
    again = read(format_directive(found) + KERNEL)
    assert again is not None and [buffer.probed for buffer in again.buffers] == [True, False]
    assert "x f32[n*m] probed in uniform" in arguments(found)


def test_probed_alone_is_no_access() -> None:
    with pytest.raises(WorkloadError, match="comes in, out or inout"):
        read(GOOD.replace("in uniform(-1, 1)", "probed") + KERNEL)


REFERRED = """\
// cuda-lsp: workload
//   size     n = 4
//   buffer   x: f32[n] inout
//   launch   k<<<1, n>>>(x, n)
//   reference sub folder/refs.py:twice
__global__ void k(float* x, int n) { x[threadIdx.x] *= 2; }
"""


def test_a_reference_is_a_file_and_a_name() -> None:
    document = parse(REFERRED.encode(), "k.cu")
    workload = read_directive(document, document.kernels[0])
    assert workload is not None and workload.reference == Reference("sub folder/refs.py", "twice")
    again = parse((format_directive(workload) + REFERRED[REFERRED.index("__global__") :]).encode(), "k.cu")
    assert read_directive(again, again.kernels[0]).reference == workload.reference


@pytest.mark.parametrize("text", ["refs.py", "refs.txt:f", "refs.py:f()", ":f", "refs.py:f\n//   reference refs.py:g"])
def test_what_is_no_reference(text: str) -> None:
    document = parse(REFERRED.replace("sub folder/refs.py:twice", text).encode(), "k.cu")
    with pytest.raises(WorkloadError, match=r"line [56]: reference: "):
        read_directive(document, document.kernels[0])


@pytest.mark.parametrize(
    "line",
    [
        "size n = ?",
        "buffer x: f32[?] out",
        "launch k<<<?, 256>>>(x, n)",
        "launch k<<<1, 256>>>(x, ?)",
        "const a = 2 * ?",
    ],
)
def test_a_blank_that_was_left_says_which_answer_is_missing(line: str) -> None:
    text = f"// cuda-lsp: workload\n//   {line}\n__global__ void k(float* x, int n) {{ x[n] = 1; }}\n"
    document = parse(text.encode())
    with pytest.raises(WorkloadError) as raised:
        find_workload(document, document.kernel("k"), Settings())
    assert raised.value.message == f"an answer is missing: put a number, or what is meant, for the `?` in `{line}`"
    assert raised.value.line == 2


def test_a_choice_is_no_blank() -> None:
    text = (
        "// cuda-lsp: workload\n//   size n = 8\n//   buffer x: f32[n > 4 ? n : 4] out\n"
        "//   launch k<<<(n > 2) ? 1 : 2, 8>>>(x, n)\n__global__ void k(float* x, int n) { x[n] = 1; }\n"
    )
    document = parse(text.encode())
    assert find_workload(document, document.kernel("k"), Settings()).buffers[0].extent.integer({"n": 8}) == 8
