"""Binding: concrete numbers, CUDA's limits, C's conversions, repeats and swaps."""

import pytest
from attrs import evolve

from agent.source.document import Document, parse
from agent.workload.bind import bind
from agent.workload.binding import BoundCopy, BoundFill, BoundLaunch, PointerArgument, ValueArgument
from agent.workload.errors import WorkloadError
from agent.workload.statements import read_statements
from agent.workload.workload import Origin, Workload

KERNELS = parse(
    b"""
template <typename T, int N> __global__ void scale(T* x, T factor, int n) { x[n] *= factor; }
__global__ void step(const float* a, float* b, int n, unsigned char small, bool flag, half h) { b[0] = a[0]; }
struct P { float x, y; };
__global__ void by_value(P p, float* x) { x[0] = p.x; }
struct D : P {};
__global__ void based(D p) {}
__global__ void nested(float** rows) { rows[0][0] = 1; }
"""
)


def read(text: str) -> Workload:
    return read_statements(text, "step", Origin("directive", 1), 1)


def bound(text: str, sizes: dict[str, int] | None = None, document: Document | None = KERNELS) -> list[object]:
    workload = read(text)
    return list(bind(workload, workload.plan, sizes, document).steps)


BUFFERS = "size n = 1000\nbuffer a: f32[n] in\nbuffer b: f32[n] out\n"


def test_numbers_pointers_and_scalars_are_concrete() -> None:
    text = (
        BUFFERS + "const k = 2\nlaunch step<<<dim3((n + 255) / 256, k), 256, n * 4>>>(a + n / 2, b, n - 1, 300, 5, 0.1)"
    )
    (launch,) = bound(text)
    assert launch == BoundLaunch(
        "step",
        (4, 2, 1),
        (256, 1, 1),
        4000,
        (
            PointerArgument("a", 2000),
            PointerArgument("b", 0),
            ValueArgument("i32", 999),
            ValueArgument("u8", 44),  # 300 mod 256
            ValueArgument("bool", 1),
            ValueArgument("f16", 0.0999755859375),  # the nearest half to 0.1
        ),
    )


def test_template_arguments_decide_the_scalar_type() -> None:
    text = "buffer a: f64[8] inout\nlaunch scale<double, 4><<<1, 32>>>(a, 0.1, 7)"
    (launch,) = bound(text)
    assert isinstance(launch, BoundLaunch)
    assert launch.arguments[1:] == (ValueArgument("f64", 0.1), ValueArgument("i32", 7))
    single = bound("buffer a: f32[8] inout\nlaunch scale<float, 4><<<1, 32>>>(a, 0.1, 7.9)")[0]
    assert isinstance(single, BoundLaunch)
    assert single.arguments[1:] == (ValueArgument("f32", 0.10000000149011612), ValueArgument("i32", 7))


def test_swaps_exchange_what_pointer_names_stand_for() -> None:
    steps = bound(BUFFERS + "repeat 3 { launch step<<<1, 1>>>(a, b, 1, 1, 1, 1) swap a b }\nfill a 0xCB\ncopy b a")
    pointers = [[p.buffer for p in s.arguments[:2]] for s in steps if isinstance(s, BoundLaunch)]  # type: ignore[union-attr]
    assert pointers == [["a", "b"], ["b", "a"], ["a", "b"]]
    assert steps[3:] == [BoundFill("b", 0xCB), BoundCopy("a", "b")]


def test_repeats_count_or_run_while_a_condition_holds() -> None:
    body = "{ launch step<<<1, 1>>>(a, b, i, 1, 1, 1) }"
    doubling = bound(BUFFERS + f"repeat i = 1; i < n; i *= 2 {body}")
    counted = bound(BUFFERS + f"repeat 3 as i {body}")
    values = [[s.arguments[2].value for s in steps] for steps in (doubling, counted)]  # type: ignore[attr-defined]
    assert values == [[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], [0, 1, 2]]


def test_sizes_may_be_chosen_and_buffers_follow() -> None:
    extra = "scratch s: u8[n * 2] zeroed\nlocal m = n / 2\nbuffer c: i32[m] in index(m)\n"
    workload = read(BUFFERS + extra + "launch step<<<m, 1>>>(a, b, 1, 1, 1, 1)")
    found = bind(workload, workload.plan, {"n": 7}, KERNELS)
    assert {b.name: (b.count, b.nbytes) for b in found.buffers} == {
        "a": (7, 28),
        "b": (7, 28),
        "c": (3, 12),
        "s": (14, 14),
    }
    assert found.sizes == {"n": 7}
    c, s = found.buffers[2], found.buffers[3]
    assert (c.low, c.high) == (0.0, 3.0)
    assert s.scratch and s.zeroed and not c.scratch


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ("step<<<0, 1>>>(a, b, 1, 1, 1, 1)", "must be at least 1"),
        ("step<<<n - 1000, 1>>>(a, b, 1, 1, 1, 1)", "(`n - 1000`) at n=1000"),
        ("step<<<1, 1025>>>(a, b, 1, 1, 1, 1)", "at most 1024"),
        ("step<<<1, dim3(32, 33)>>>(a, b, 1, 1, 1, 1)", "1056 threads"),
        ("step<<<1, dim3(1, 1, 65)>>>(a, b, 1, 1, 1, 1)", "at most 64"),
        ("step<<<dim3(1, 65536), 1>>>(a, b, 1, 1, 1, 1)", "at most 65535"),
        ("step<<<1 << 31, 1>>>(a, b, 1, 1, 1, 1)", "at most 2147483647"),
        ("step<<<1, 1, 300000>>>(a, b, 1, 1, 1, 1)", "shared memory"),
        ("step<<<1, 1>>>(a, x, 1, 1, 1, 1)", "`x` has no value"),
        ("step<<<1, 1>>>(a * 2, b, 1, 1, 1, 1)", "not a buffer plus an element offset"),
        ("step<<<1, 1>>>(a + n + 1, b, 1, 1, 1, 1)", "points 4004 bytes into `a` of 4000"),
        ("step<<<1, 1>>>(a, 1, 1, 1, 1, 1)", "needs a buffer"),
        ("step<<<1, 1>>>(a, b, a, 1, 1, 1)", "needs a number"),
        ("step<<<1, 1>>>(a, b)", "takes 6 arguments, the plan passes 2"),
        ("other<<<1, 1>>>(a)", "no kernel 'other'"),
        ("by_value<<<1, 1>>>(3, a)", "is a struct (`P`), and `3` is one value: write `{.x = ?, .y = ?}`"),
        ("based<<<1, 1>>>({})", "`p` of `based`: the layout of `D` is not followed: it has a base class"),
        ("nested<<<1, 1>>>(a)", "pointer to pointers"),
        ("step<<<n / 0, 1>>>(a, b, 1, 1, 1, 1)", "division by zero"),
        ("step<<<1, 1>>>(a, b, 1e30, 1, 1, 1)", "does not fit"),
    ],
)
def test_what_cuda_cannot_launch_is_refused_in_words(launch: str, words: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        bound(BUFFERS + "launch " + launch)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "sizes", "words"),
    [
        (BUFFERS, {"m": 3}, "`m` is not a size of this workload; it has n"),
        (BUFFERS, {"n": 0}, "its minimum is 1"),
        ("size n = 5\nbuffer a: f32[n - 6] in", None, "-1 elements"),
        ("buffer a: f32[4] in\nbuffer a: f32[4] in", None, "two buffers are called `a`"),
        ("buffer a: f32[4] in\nswap a b", None, "`b` is no buffer"),
        ("buffer a: f32[4] in\nbuffer b: f32[5] in\ncopy a b", None, "16 bytes, `b` 20"),
        ("buffer a: f32[4] in\nrepeat 1000000 { fill a 0 }", None, "more than 100000 steps"),
        ("buffer a: f32[4] in\nrepeat i = 1; i > 0; i = i { fill a 0 }", None, "more than 100000 steps"),
        ("buffer a: f32[1 << 60] in", None, "elements"),
        ("size n = 5\nlocal n = 4\nbuffer a: f32[n] in", None, "local `n` has a value already"),
        ("const c = 5\nlocal c = 4\nbuffer a: f32[c] in", None, "local `c` has a value already"),
        ("local b = 5, b = 4\nbuffer a: f32[b] in", None, "local `b` has a value already"),
    ],
)
def test_contradictions_are_refused_in_words(text: str, sizes: dict[str, int] | None, words: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        bound(text, sizes)
    assert words in str(raised.value)


def test_scalars_need_the_document() -> None:
    with pytest.raises(WorkloadError, match="need the document"):
        bound(BUFFERS + "launch step<<<1, 1>>>(a, b, 1, 1, 1, 1)", document=None)
    assert len(bound(BUFFERS + "launch any<<<1, 1>>>(a, b)", document=None)) == 1


def test_an_empty_repeat_of_an_empty_plan_is_nothing() -> None:
    workload = read("size n = 1")
    assert bind(workload, evolve(workload.plan, steps=()), None, None).steps == ()


def test_a_launch_of_many_turns_is_worked_out_once_for_each_state() -> None:
    turns = bound(BUFFERS + "repeat 5000 {\nlaunch step<<<n / 4, 128>>>(a, b, n, 1, 1, 1)\nswap a b\n}")
    assert len(turns) == 5000
    assert len({id(step) for step in turns}) == 2
    assert [turn.arguments[0].buffer for turn in turns[:3]] == ["a", "b", "a"]  # type: ignore[attr-defined]


def test_turns_with_numbers_of_their_own_are_kept_apart() -> None:
    turns = bound(BUFFERS + "repeat 4 as i {\nlaunch step<<<i + 1, 128>>>(a, b, i, 1, 1, 1)\n}")
    assert [turn.grid[0] for turn in turns] == [1, 2, 3, 4]  # type: ignore[attr-defined]
