"""What a rewrite puts into several streams is in order only where something orders it."""

import pytest

from agent.source.document import parse
from agent.workload.errors import WorkloadError
from agent.workload.rewrite import plan_of
from agent.workload.static import infer

FILE = """
__global__ void scale(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 3 * x[threadIdx.x]; }
__global__ void square(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] *= y[threadIdx.x]; }
int main() {
    int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    STREAMS
    LAUNCHES
    cudaMemcpy(h, y, n * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
ORIGINAL = "scale<<<16, 256>>>(x, y, n); square<<<16, 256>>>(y, n);"
STREAMS = "cudaStream_t one, two; cudaStreamCreate(&one); cudaStreamCreate(&two); cudaEvent_t e; cudaEventCreate(&e);"
ALONE = STREAMS.replace("cudaStreamCreate(&one)", "cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking)")
SCALE, SQUARE = "scale<<<16, 256, 0, one>>>(x, y, n);", "square<<<16, 256, 0, two>>>(y, n);"
RECORD, WAIT = "cudaEventRecord(e, one);", "cudaStreamWaitEvent(two, e, 0);"
END = "cudaDeviceSynchronize();"


def planned(launches: str, streams: str = STREAMS, original: str = ORIGINAL) -> list[str]:
    before, after = (
        parse(FILE.replace("STREAMS", setup).replace("LAUNCHES", text).encode(), "it.cu")
        for setup, text in (("", original), (streams, launches))
    )
    return [launch.kernel for launch in plan_of(after, infer(before, before.kernel("scale")), before).launches()]


@pytest.mark.parametrize(
    ("launches", "streams"),
    [
        (f"{SCALE} {SQUARE}", STREAMS),
        (f"{SCALE} {SQUARE} {END}", STREAMS),
        (f"{SCALE} {RECORD} {SQUARE} {WAIT} {END}", STREAMS),  # the wait comes too late
        (f"{RECORD} {SCALE} {WAIT} {SQUARE} {END}", STREAMS),  # the record comes too early
        (f"{SCALE} cudaEventRecord(e, two); {WAIT} {SQUARE} {END}", STREAMS),
        (f"{SCALE} cudaStreamSynchronize(two); {SQUARE} {END}", STREAMS),
        (f"{SCALE} {SQUARE.replace('two', '0')} {END}", ALONE),
        (f"if (cudaSuccess == 0) {{ }} {SCALE} {SQUARE} {END}", STREAMS),
        (f"CHECK({SCALE[:-1]}); {SQUARE} {END}", STREAMS),
    ],
)
def test_launches_that_nothing_orders_are_refused(launches: str, streams: str) -> None:
    with pytest.raises(WorkloadError, match="`square` may run at once with `scale` before it") as raised:
        planned(launches, streams)
    assert raised.value.line == 11


@pytest.mark.parametrize("late", ["", "cudaStreamSynchronize(two);"])
def test_a_result_that_nobody_waits_for_is_refused(late: str) -> None:
    with pytest.raises(WorkloadError, match=r"`cudaMemcpy` may run at once with `scale`.* both use `y`"):
        planned(f"{SCALE} {SQUARE.replace('two', 'one')} {late}", ALONE)


def test_a_fill_that_nobody_waits_for_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"`scale` may run at once with `cudaMemset`"):
        planned(f"cudaMemset(y, 0, n * sizeof(float)); {SCALE} {END} {SQUARE} {END}", ALONE)


@pytest.mark.parametrize(
    ("launches", "streams"),
    [
        (f"{SCALE} {RECORD} {WAIT} {SQUARE} {END}", ALONE),
        (f"{SCALE} cudaStreamSynchronize(one); {SQUARE} {END}", ALONE),
        (f"{SCALE} {RECORD} cudaEventSynchronize(e); {SQUARE} {END}", ALONE),
        (f"{SCALE} {END} {SQUARE} {END}", ALONE),
        (f"{SCALE} {SQUARE.replace('two', 'one')} cudaStreamSynchronize(one);", ALONE),
        (f"{SCALE} {SQUARE.replace('two', '0')}", STREAMS),  # the default stream waits for blocking ones
        (f"{SCALE.replace('one', '0')} {SQUARE}", STREAMS),
        (f"{SCALE.replace('one', 'given()')} {SQUARE.replace('two', 'given()')} {END}", STREAMS),
        (ORIGINAL, STREAMS),
    ],
)
def test_launches_in_order_are_a_plan(launches: str, streams: str) -> None:
    assert planned(launches, streams) == ["scale", "square"]


def test_parts_of_a_buffer_may_be_worked_on_at_once() -> None:
    halves = f"{SCALE.replace('n)', 'n / 2)')} scale<<<8, 256, 0, two>>>(x + n / 2, y + n / 2, n / 2);"
    assert planned(f"{halves} {END} square<<<16, 256>>>(y, n);") == ["scale", "scale", "square"]


def test_what_the_original_does_as_well_is_not_held_against_the_rewrite() -> None:
    text = f"{STREAMS} {SCALE} {SQUARE} {END}"
    assert planned(text, "", text) == ["scale", "square"]
