"""On a real card: what runs, runs right; what breaks, breaks alone."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from attrs import evolve

from agent.execution.compiler import Build, Options, compile_slice
from agent.execution.device import Answer, Image, Parts, Poison, Recipe, Request
from agent.execution.gpu import Gpu, runners
from agent.workload.binding import (
    BoundCopy,
    BoundFill,
    BoundLaunch,
    Placed,
    PointerArgument,
    RecordArgument,
    ValueArgument,
)
from tests.execution.slices import HandSlice

pytestmark = pytest.mark.gpu

SOURCE = """
__constant__ float weights[4];
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
__global__ void overrun(float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) c[i] = 1.0f;
}
__global__ void far(float* c) { c[1ull << 40] = 1.0f; }
__global__ void odd(char* c) { *(float*)(c + 1) = 1.0f; }
__global__ void hang(volatile float* c) { while (c[0] == 0.0f) {} c[1] = 1.0f; }
__global__ void stop() { __trap(); }
__global__ void shared(float* c, int n) {
    extern __shared__ float s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) c[i] = s[n - 1 - i];
}
__global__ void weigh(float* c) { c[threadIdx.x] = weights[threadIdx.x] * 2; }
"""
NAMES = ("add", "overrun", "far", "odd", "hang", "stop", "shared", "weigh")
N = 1000


@pytest.fixture(scope="module")
def build(gpu: Gpu) -> Build:
    result = compile_slice(HandSlice(SOURCE, NAMES, symbols=("weights",)), Options(arch=gpu.arch))
    assert isinstance(result, Build), result
    return result


def floats(values: object) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint8)


def launch(kernel: str, *arguments: object, threads: int = 128, shared: int = 0) -> BoundLaunch:
    packed = tuple(
        PointerArgument(item) if isinstance(item, str) else ValueArgument("i32", item)  # type: ignore[arg-type]
        for item in arguments
    )
    return BoundLaunch(kernel, (-(-N // 128), 1, 1), (threads, 1, 1), shared, packed)


def run(
    gpu: Gpu,
    build: Build,
    steps: tuple[object, ...],
    images: tuple[Image, ...],
    outputs: tuple[str, ...] = ("c",),
    **more: object,
) -> Answer:
    return gpu.run(Request(build, steps, images, outputs, **more))  # type: ignore[arg-type]


def add(gpu: Gpu, build: Build) -> Answer:
    a, b = np.arange(N), np.arange(N) * 0.5
    images = (Image("a", 4 * N, floats(a)), Image("b", 4 * N, floats(b)), Image("c", 4 * N, Poison()))
    return run(gpu, build, (launch("add", "a", "b", "c", N),), images)


def is_sum(answer: Answer) -> bool:
    return answer.status == "ok" and np.array_equal(
        answer.outputs["c"].view(np.float32), np.arange(N) * np.float32(1.5)
    )


def test_vector_addition(gpu: Gpu, build: Build) -> None:
    answer = add(gpu, build)
    assert is_sum(answer), answer.message
    assert answer.seconds > 0 and answer.complete and answer.faults == ()


def test_recipes_offsets_and_large_buffers(gpu: Gpu, build: Build) -> None:
    """Contents that are made on demand, larger than one chunk, at an address that is only 4-byte aligned."""
    n = 40_000_000

    def make(start: int, stop: int) -> np.ndarray:
        # Small whole numbers: float32 does not hold every one above 2^24.
        return (np.arange(start // 4, stop // 4) % 1000).astype(np.float32).view(np.uint8)

    images = (
        Image("a", 4 * n, Recipe(4 * n, make), offset=4), Image("b", 4 * n, Recipe(4 * n, make)),
        Image("c", 4 * n, Poison()),
    )  # fmt: skip
    step = BoundLaunch(
        "add", (-(-n // 256), 1, 1), (256, 1, 1), 0,
        (PointerArgument("a"), PointerArgument("b"), PointerArgument("c"), ValueArgument("i32", n)),
    )  # fmt: skip
    answer = run(gpu, build, (step,), images)
    assert answer.status == "ok", answer.message
    assert np.array_equal(answer.outputs["c"].view(np.float32), (np.arange(n) % 1000).astype(np.float32) * 2)


def test_parts_and_digests_of_a_large_output(gpu: Gpu) -> None:
    """The pieces are those of the whole, and two digests differ where one lane between the pieces does."""
    n, odd = 40_000_000, 12_345_678
    source = """
    __global__ void count(float* c, int n, int odd) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) c[i] = (i % 1000) + (i == odd);
    }
    """
    built = compile_slice(HandSlice(source, ("count",)), Options(arch=gpu.arch))
    assert isinstance(built, Build)
    wanted = {"c": Parts(((0, 8), (4 * (n - 2), 4 * n)), "f32", 99)}
    answers = []
    for place, byte in ((-1, 0xCB), (-1, 0x34), (odd, 0xCB)):
        numbers = (ValueArgument("i32", n), ValueArgument("i32", place))
        step = BoundLaunch("count", (-(-n // 256), 1, 1), (256, 1, 1), 0, (PointerArgument("c"), *numbers))
        answers.append(run(gpu, built, (step,), (Image("c", 4 * n, Poison(byte)),), parts=wanted))
        assert answers[-1].status == "ok", answers[-1].message
        assert answers[-1].outputs["c"].view(np.float32).tolist() == [0.0, 1.0, 998.0, 999.0]
    first, again, other = (answer.digests["c"] for answer in answers)
    assert first == again and first.hash != other.hash
    assert sum(first.magnitudes) == pytest.approx(n * 499.5)
    moved = [abs(a - b) for a, b in zip(first.sums, other.sums, strict=True)]
    assert sorted(moved)[:15] == [0.0] * 15 and max(moved) == pytest.approx(1.0)


COUNTER = """
__device__ int calls;
__global__ void count(int* c) { c[0] = ++calls; c[1] = c[2]; }
"""


def test_a_runner_of_the_same_program_forgets_between_runs(gpu: Gpu) -> None:
    """Module variables start over, poison is new, guards are whole; the process stays."""
    built = compile_slice(HandSlice(COUNTER, ("count",)), Options(arch=gpu.arch))
    assert isinstance(built, Build)
    one = BoundLaunch("count", (1, 1, 1), (1, 1, 1), 0, (PointerArgument("c"),))
    pids = set()
    for byte in (0xCB, 0x34, 0xCB):
        answer = run(gpu, built, (one,), (Image("c", 12, Poison(byte)),))
        assert answer.status == "ok", answer.message
        assert answer.outputs["c"].view(np.int32)[0] == 1
        assert (answer.outputs["c"][4:] == byte).all()
        pids.add(gpu.runners._kept[built.key].pid)
    assert len(pids) == 1


def test_another_program_gets_another_process(gpu: Gpu, build: Build) -> None:
    assert is_sum(add(gpu, build))
    built = compile_slice(HandSlice(COUNTER, ("count",)), Options(arch=gpu.arch))
    assert isinstance(built, Build)
    one = BoundLaunch("count", (1, 1, 1), (1, 1, 1), 0, (PointerArgument("c"),))
    assert run(gpu, built, (one,), (Image("c", 12, Poison()),)).status == "ok"
    assert gpu.runners._kept[built.key].pid != gpu.runners._kept[build.key].pid


def test_a_write_past_the_end_is_found_by_the_guard_band(gpu: Gpu, build: Build) -> None:
    answer = run(gpu, build, (launch("overrun", "c", N),), (Image("c", 4 * N, Poison()),))
    assert answer.status == "fault"
    (fault,) = answer.faults
    assert fault.kind == "out-of-bounds write" and "0 bytes past its end" in fault.message
    assert is_sum(add(gpu, build))


@pytest.mark.parametrize(("kernel", "kind"), [("far", "illegal address"), ("odd", "misaligned access")])
def test_a_wild_access_costs_one_runner_only(gpu: Gpu, build: Build, kernel: str, kind: str) -> None:
    answer = run(gpu, build, (launch(kernel, "c", threads=1),), (Image("c", 4 * N, Poison()),))
    assert (answer.status, answer.faults[0].kind, answer.faults[0].kernel) == ("fault", kind, kernel)
    assert is_sum(add(gpu, build))


def test_a_trap(gpu: Gpu, build: Build) -> None:
    answer = run(gpu, build, (launch("stop"),), (Image("c", 4, Poison()),))
    assert answer.status == "fault" and answer.faults[0].kernel == "stop"
    assert is_sum(add(gpu, build))


def test_an_endless_kernel_is_killed(gpu: Gpu, build: Build) -> None:
    start = time.monotonic()
    answer = run(gpu, build, (launch("hang", "c"),), (Image("c", 4 * N, Poison(0)),), seconds=2.0)
    assert answer.status == "timeout" and "2 s" in answer.message
    assert time.monotonic() - start < 30
    assert is_sum(add(gpu, build))


def test_an_endless_kernel_can_be_cancelled(gpu: Gpu, build: Build) -> None:
    stop = threading.Event()
    threading.Timer(3.0, stop.set).start()
    images = (Image("c", 4 * N, Poison(0)),)
    answer = run(gpu, build, (launch("hang", "c"),), images, seconds=60.0, cancelled=stop.is_set)
    assert answer.status == "cancelled"
    assert is_sum(add(gpu, build))


def test_killed_runners_are_an_answer(gpu: Gpu, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first ran is run once more; who kills that one too has the last word."""
    lent, lend = [], gpu.runners.of
    monkeypatch.setattr(gpu.runners, "of", lambda key: lent.append(lend(key)) or lent[-1])

    def murder() -> None:
        for number in range(2):
            while len(lent) <= number:
                time.sleep(0.01)
            time.sleep(3.0)
            os.kill(lent[number][0].pid, signal.SIGKILL)

    threading.Thread(target=murder).start()
    answer = run(gpu, build, (launch("hang", "c"),), (Image("c", 4 * N, Poison(0)),), seconds=60.0)
    assert answer.status == "unavailable" and "SIGKILL" in answer.message and len(lent) == 2
    assert is_sum(add(gpu, build))


def test_more_than_48_kb_of_shared_memory(gpu: Gpu, build: Build) -> None:
    n = 16_000
    answer = run(gpu, build, (launch("shared", "c", n, shared=4 * n),), (Image("c", 4 * n, Poison()),))
    assert answer.status == "ok", answer.message
    assert np.array_equal(answer.outputs["c"].view(np.float32), np.arange(n, dtype=np.float32)[::-1])


def test_more_shared_memory_than_a_block_can_have(gpu: Gpu, build: Build) -> None:
    answer = run(gpu, build, (launch("shared", "c", 1, shared=1 << 20),), (Image("c", 4 * N, Poison()),))
    assert answer.status == "refused"
    assert "1048576 bytes of dynamic shared memory" in answer.message and str(gpu.card.shared_optin) in answer.message


def test_too_many_threads(gpu: Gpu, build: Build) -> None:
    answer = run(gpu, build, (launch("weigh", "c", threads=2048),), (Image("c", 4 * N, Poison()),))
    assert answer.status == "refused" and "weigh<<<" in answer.message


def test_more_memory_than_the_card_has(gpu: Gpu, build: Build) -> None:
    huge = 2 * gpu.card.memory
    answer = run(gpu, build, (), (Image("c", huge, Poison()),), outputs=())
    assert answer.status == "refused" and "not enough memory" in answer.message
    assert is_sum(add(gpu, build))


def test_module_variables_fills_copies_and_aliases(gpu: Gpu, build: Build) -> None:
    images = (
        Image("weights", 16, floats([1, 2, 3, 4]), symbol=True), Image("c", 16, Poison()), Image("d", 16, Poison()),
        Image("same", 16, Poison(), alias="c"),
    )  # fmt: skip
    one = BoundLaunch("weigh", (1, 1, 1), (4, 1, 1), 0, (PointerArgument("same"),))
    answer = run(gpu, build, (one, BoundCopy("d", "c"), BoundFill("c", 0)), images, outputs=("c", "d"))
    assert answer.status == "ok", answer.message
    assert answer.outputs["d"].view(np.float32).tolist() == [2, 4, 6, 8]
    assert not answer.outputs["c"].any()


def test_poison_is_what_nobody_wrote(gpu: Gpu, build: Build) -> None:
    answer = run(gpu, build, (launch("shared", "c", 10, shared=64),), (Image("c", 80, Poison(0xCB)),))
    assert answer.status == "ok" and (answer.outputs["c"][40:] == 0xCB).all()


def test_a_build_for_another_card_is_refused(gpu: Gpu) -> None:
    other = "sm_75" if gpu.arch != "sm_75" else "sm_80"
    result = compile_slice(HandSlice(SOURCE, NAMES), Options(arch=other))
    assert isinstance(result, Build)
    answer = add(gpu, result)
    assert answer.status == "refused" and f"compile for {gpu.arch}" in answer.message


def test_the_waiting_runner_is_let_go_when_idle(gpu: Gpu, build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a device of its own: those of other tests are let go in their own time."""
    monkeypatch.setattr(runners, "IDLE_SECONDS", 1.0)
    own = Gpu(gpu.card)
    try:
        assert is_sum(add(own, build))
        waiting = [child for child in (own.runners._warm, *own.runners._kept.values()) if child is not None]
        assert waiting
        deadline = time.monotonic() + 60
        while any(child.alive for child in waiting) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert own.runners.count == 0 and not any(child.alive for child in waiting)
        assert is_sum(add(own, build))
    finally:
        own.close()


def test_a_struct_by_value(gpu: Gpu) -> None:
    """Its pointers are the card's own addresses, in every place where a job is launched: plain and under a tool."""
    source = """
    struct Inner { char tag; const float* in; };
    struct P { short turns; Inner inner; double scale; float* out; int n; float3 v; };
    __global__ void k(P p) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < p.n) p.out[i] = p.scale * p.inner.in[i] + p.inner.tag + p.v.z + p.turns;
    }
    """
    made = compile_slice(HandSlice(source, ("k",)), Options(arch=gpu.arch))
    assert isinstance(made, Build), made
    members = (
        Placed(0, ValueArgument("i16", -2)), Placed(8, ValueArgument("i8", 3)), Placed(16, PointerArgument("a", 16)),
        Placed(24, ValueArgument("f64", 0.25)), Placed(32, PointerArgument("c")),
        Placed(40, ValueArgument("i32", N - 4)), Placed(52, ValueArgument("f32", 1.5)),
    )  # fmt: skip
    step = BoundLaunch("k", (-(-N // 128), 1, 1), (128, 1, 1), 0, (RecordArgument(56, 8, members),))
    images = (Image("a", 4 * N, floats(np.arange(N))), Image("c", 4 * N, Poison()))
    answer = run(gpu, made, (step,), images)
    assert answer.status == "ok", answer.message
    assert np.array_equal(answer.outputs["c"].view(np.float32)[: N - 4], np.arange(4, N) * np.float32(0.25) + 2.5)
    short = evolve(step, arguments=(RecordArgument(64, 8, members),))
    assert "takes 56" in run(gpu, made, (short,), images).message
