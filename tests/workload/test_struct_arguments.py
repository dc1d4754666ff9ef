"""Structs passed by value: how a directive writes them, and what a kernel then reads."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.children import gpu_messages as say
from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.execution.device import Image, Request
from agent.execution.gpu.jobs import BadRequest, make_job
from agent.execution.wire import decode, encode
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.binding import Bound, BoundLaunch, Placed, PointerArgument, RecordArgument, ValueArgument
from agent.workload.directive import format_statements
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError
from agent.workload.statements import read_statements
from agent.workload.workload import Origin, Workload
from tests.execution.emulator.building import run
from tests.execution.slices import HandSlice

SOURCE = b"""
struct Bias { const float* w; short step; };
struct P { char tag; double scale; const float* in; Bias bias; float* out; float f[2]; int n; float3 v; float** rows; };
template <typename T> struct Span { T* first; int count; __device__ T& operator[](int i) const { return first[i]; } };
__global__ void k(P p, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n)
        p.out[i] = p.scale * p.in[i] + p.bias.w[i * p.bias.step] * p.f[turns & 1] + p.v.z + p.tag + (p.rows ? 1 : 0);
}
template <typename T> __global__ void total(Span<T> s, T* out) {
    T sum = 0;
    for (int i = 0; i < s.count; ++i) sum += s[i];
    out[0] = sum;
}
"""
DOCUMENT = parse(SOURCE)
HEAD = "size n = 300\nbuffer x: f32[2 * n] in\nbuffer y: f32[n] out\n"


def read(text: str) -> Workload:
    return read_statements(text, "k", Origin("directive", 1), 1)


def bound(text: str) -> Bound:
    workload = read(HEAD + text)
    return bind(workload, workload.plan, None, DOCUMENT)


def argument(text: str) -> RecordArgument:
    (step,) = bound(f"launch k<<<2, 256>>>({text}, 1)").steps
    assert isinstance(step, BoundLaunch) and isinstance(step.arguments[0], RecordArgument)
    return step.arguments[0]


WHOLE = "{.tag = 3, .scale = 0.5, .in = x + n, .bias = {x, 2}, .out = y, .f = {1, 2}, .n = n, .v = {.z = 4}}"


def test_members_lie_where_the_struct_has_them() -> None:
    # offsets by the rules of the ABI, by hand: a double and pointers at multiples of 8, a short of 2, floats of 4
    assert argument(WHOLE) == RecordArgument(
        80,
        8,
        (
            Placed(0, ValueArgument("i8", 3)),
            Placed(8, ValueArgument("f64", 0.5)),
            Placed(16, PointerArgument("x", 1200)),
            Placed(24, PointerArgument("x", 0)),
            Placed(32, ValueArgument("i16", 2)),
            Placed(40, PointerArgument("y", 0)),
            Placed(48, ValueArgument("f32", 1.0)),
            Placed(52, ValueArgument("f32", 2.0)),
            Placed(56, ValueArgument("i32", 300)),
            Placed(68, ValueArgument("f32", 4.0)),
        ),
    )


def test_in_order_and_by_name_are_the_same() -> None:
    assert argument("{3, .5, x, {.w = x, .step = 2}, y, {}, n}") == argument(
        "{.n = n, .out = y, .bias = {x, 2}, .in = x, .scale = 1.0 / 2, .tag = 3}"
    )


def test_pointers_follow_swaps() -> None:
    steps = bound("repeat 2 {\nlaunch k<<<1, 1>>>({.in = x, .out = y}, 0)\nswap x y\n}").steps
    held = [[one.held.buffer for one in step.arguments[0].members] for step in steps]  # type: ignore[union-attr]
    assert held == [["x", "y"], ["y", "x"]]


@pytest.fixture(scope="module")
def built() -> Build:
    made = compile_slice(HandSlice(SOURCE.decode(), ("k", "total<double>")), Options())
    assert isinstance(made, Build), made
    return made


@pytest.mark.parametrize("back_end", ["numpy", "compiled"])
def test_a_kernel_reads_them(built: Build, back_end: str) -> None:
    x = np.arange(600, dtype=np.float32)
    (step,) = bound(f"launch k<<<2, 256>>>({WHOLE}, 3)").steps
    answer, outputs = run(built, step, {"x": x, "y": np.zeros(300, np.float32)}, back_end)
    assert not answer.faults
    assert outputs["y"].tolist() == (0.5 * x[300:] + x[::2] * 2 + 4 + 3).tolist()


def test_what_a_member_leads_to_is_checked(built: Build) -> None:
    (step,) = bound("launch k<<<2, 256>>>({.in = x + n + 1, .bias = {x, 1}, .out = y, .n = n}, 0)").steps
    answer, _ = run(
        built, step, {"x": np.zeros(600, np.float32), "y": np.zeros(300, np.float32)}, checks=frozenset({"bounds"})
    )
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds read" and "4 bytes past the end" in fault.message


def test_a_template_of_a_kernel_and_of_its_struct(built: Build) -> None:
    text = "buffer d: f64[8] in\nbuffer sum: f64[1] out\nlaunch total<double><<<1, 1>>>({.first = d, .count = 8}, sum)"
    workload = read(text)
    (step,) = bind(workload, workload.plan, None, DOCUMENT).steps
    d = np.arange(8, dtype=np.float64)
    _, outputs = run(built, step, {"d": d, "sum": np.zeros(1)})
    assert outputs["sum"][0] == 28


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("{.scal = 1}", "parameter `p` of `k` (`P`) has no member `scal`; did you mean `.scale`?"),
        ("{.qq = 1}", "has no member `qq`; it has tag, scale, in, bias"),
        ("{.in = 5}", "`p` of `k`.in is a pointer: give it a buffer, or 0 where it leads nowhere, not `5`"),
        ("{.scale = x}", "`p` of `k`.scale is a number, and `x` is none"),
        ("{.scale = {1, 2}}", "`p` of `k`.scale is one value, and `{1, 2}` are members of a struct"),
        ("{.bias = 1}", "is a struct (`Bias`), and `1` is one value: write `{.w = ?, .step = ?}`"),
        ("{.f = 1}", "is an array, and `1` is one value"),
        ("{.f = {1, 2, 3}}", "has 2 elements: write them in order"),
        ("{.f = {.x = 1}}", "has 2 elements: write them in order"),
        ("{1, 2, x, {}, y, {}, 1, {}, 0, 7}", "has 9 members, and more are told"),
        ("{.rows = x}", "is a pointer to pointers, which a plan cannot pass"),
        ("{.in = x + 601}", "points 2404 bytes into `x` of 2400"),
        ("{.in = z}", "`z` has no value"),
        ("x", "is a struct (`P`), and `x` is one value: write `{.tag = ?, .scale = ?"),
        ("{.n = 1, 2}", "either all members have a name or none has one"),
        ("{.n = 1, .n = 2}", "a member is told twice"),
        ("{.n = ?}", "an answer is missing"),
        ("{.n = 1", "expected `)`"),
    ],
)
def test_what_does_not_fit_is_named(told: str, words: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        bound(f"launch k<<<2, 256>>>({told}, 1)")
    assert words in str(raised.value)


def test_a_struct_is_no_number() -> None:
    with pytest.raises(WorkloadError, match="are members of a struct"):
        bound("launch k<<<2, 256>>>({}, {1})")
    with pytest.raises(ExpressionError):
        Expression.parse("{1}")


PARTS = st.recursive(
    st.sampled_from(["x", "x + n", "0.5f", "-3", "n * 2 - 1", "a.b"]).map(Expression.parse),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda held: Expression("record", tuple(held))),
        st.dictionaries(st.sampled_from(["a", "b2", "c_"]), inner, min_size=1).map(
            lambda held: Expression("record", tuple(held.values()), ",".join(held))
        ),
    ),
    max_leaves=12,
)


@given(PARTS)
def test_what_is_written_reads_back(told: Expression) -> None:
    assert Expression.parse_argument(str(told)) == told
    assert told.substitute({"n": Expression.parse("n")}).names == told.names


def test_a_directive_says_it_again() -> None:
    workload = read(HEAD + f"launch k<<<2, 256>>>({WHOLE}, 1)")
    again = "\n".join(format_statements(workload))
    assert "{.tag = 3, .scale = 0.5, .in = x + n, .bias = {x, 2}, .out = y" in again
    found = read(again)
    assert bind(found, found.plan, None, DOCUMENT) == bind(workload, workload.plan, None, DOCUMENT)


def job(step: object, ptx: str = "") -> say.Job:
    made = Build(ptx, b"\x7fELF", {"k": "_Z1k1Pi"}, {}, {}, "sm_90", "NVRTC", (), "key")
    images = (Image("x", 2400, np.zeros(2400, np.uint8)), Image("y", 1200, np.zeros(1200, np.uint8)))
    return make_job(Request(made, (step,), images, ("y",)))  # type: ignore[arg-type]


def test_a_card_gets_the_bytes_with_its_own_addresses() -> None:
    (step,) = bound(f"launch k<<<2, 256>>>({WHOLE}, 1)").steps
    sent = decode(encode(job(step)), say.Job)
    packed = np.frombuffer(sent.steps[0].arguments[0].packed({"x": 1 << 40, "y": 7 << 32}), np.uint8)
    assert len(packed) == 80
    assert packed[16:32].view("<u8").tolist() == [(1 << 40) + 1200, 1 << 40]
    assert packed[40:48].view("<u8")[0] == 7 << 32
    assert packed[8:16].view("<f8")[0] == 0.5 and packed[56:60].view("<i4")[0] == 300
    assert packed[1:8].tolist() == [0] * 7 and packed[72:].tolist() == [0] * 8


def test_a_card_is_not_given_a_struct_of_another_size(built: Build) -> None:
    (step,) = bound(f"launch k<<<2, 256>>>({WHOLE}, 1)").steps
    ptx = ".visible .entry _Z1k1Pi(\n .param .align 8 .b8 _Z1k1Pi_param_0[80],\n .param .u32 _Z1k1Pi_param_1\n)\n{"
    assert job(step, ptx).steps
    with pytest.raises(BadRequest, match="a struct of 80 bytes is passed to k, which takes 88"):
        job(step, ptx.replace("[80]", "[88]"))
    assert ".b8 _Z1k1Pi_param_0[80]" in built.ptx  # what NVRTC writes is what is looked for


def test_another_size_is_refused_by_the_emulator(built: Build) -> None:
    (step,) = bound(f"launch k<<<2, 256>>>({WHOLE}, 1)").steps
    assert isinstance(step, BoundLaunch) and isinstance(step.arguments[0], RecordArgument)
    short = evolve(step, arguments=(evolve(step.arguments[0], nbytes=88), step.arguments[1]))
    answer, _ = run(built, short, {"x": np.zeros(600, np.float32), "y": np.zeros(300, np.float32)})
    assert "has 80 bytes, the argument 88" in answer.message


def test_a_bound_launch_survives_the_wire() -> None:
    (step,) = bound(f"launch k<<<2, 256>>>({WHOLE}, 1)").steps
    assert decode(encode(step), BoundLaunch) == step
