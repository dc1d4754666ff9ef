"""Scans in shared memory become shuffles: for every spelling of a round, refused for anything that is no scan."""

import numpy as np
import pytest

from tests.ideas.running import ask, candidates, refusal, rewritten, run

NAME = "block-scan-by-shuffles"


def kernel(
    body: str,
    *,
    threads: int = 128,
    type: str = "float",
    dtype: str = "f32",
    zero: str = "0",
    loop: str = "for (int d = 1; d < blockDim.x; d *= 2)",
    tail: str = "",
) -> str:
    return f"""\
// cuda-lsp: workload
//   size     n = 100000
//   buffer   x: {dtype}[n] in
//   buffer   y: {dtype}[n] out
//   launch   tiles<<<(n + {threads} - 1) / {threads}, {threads}>>>(x, y, n)
__global__ void tiles(const {type}* x, {type}* y, int n) {{
    __shared__ {type} s[{threads}];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : {zero};
    __syncthreads();
    {loop} {{
        {body}
    }}
    {tail}__syncthreads();
    if (i < n) y[i] = s[t];
}}
"""  # fmt: skip


B = "__syncthreads();"
ROUNDS = {
    "a choice": f"float v = t >= d ? s[t - d] : 0.0f; {B} s[t] += v; {B}",
    "barrier first": f"{B} float v; if (t >= d) v = s[t] + s[t - d]; {B} if (t >= d) s[t] = v;",
    "grows": f"float v = s[t]; if (d <= t) v += s[t - d]; {B} s[t] = v; {B}",
    "other way round": f"float v = 0; if (t < d) v = 0; else v = s[t - d]; {B} s[t] = s[t] + v; {B}",
    "threadIdx itself": f"float v = (threadIdx.x >= d) ? s[threadIdx.x - d] : 0; {B} s[threadIdx.x] = v + s[t]; {B}",
}


@pytest.mark.parametrize("case", ROUNDS)
@pytest.mark.parametrize("threads", [64, 128, 1024])
def test_tiles_are_scanned_as_numpy_does(case: str, threads: int) -> None:
    request = ask(kernel(ROUNDS[case], threads=threads))
    for candidate in candidates(request, NAME):
        assert "d *= 2" not in candidate.code
        for n in (1, threads, threads + 33, 2500):
            x = np.random.default_rng(n).integers(-9, 10, n).astype(np.float32)
            made = run(rewritten(request, candidate), request.workload, {"x": x}, n=n)["y"]
            padded = np.pad(x, (0, -n % threads)).reshape(-1, threads)
            np.testing.assert_array_equal(made, np.cumsum(padded, axis=1).reshape(-1)[:n])


def test_integers_and_a_shifted_loop() -> None:
    text = kernel(
        ROUNDS["grows"].replace("float", "int"), type="int", dtype="i32", loop="for (int d = 1; d < 128; d <<= 1)"
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    x = np.arange(1000, dtype=np.int32)
    made = run(rewritten(request, candidate), request.workload, {"x": x}, n=1000)["y"]
    np.testing.assert_array_equal(made, np.cumsum(np.pad(x, (0, 24)).reshape(-1, 128), axis=1).reshape(-1)[:1000])


GOOD = ROUNDS["a choice"]
REFUSED = {
    "one barrier": (kernel(f"float v = t >= d ? s[t - d] : 0.0f; {B} s[t] += v;"), "no loop that scans"),
    "reads behind the barrier": (kernel(f"{B} {B} if (t >= d) s[t] += s[t - d];"), "no loop that scans"),
    "another element": (kernel(GOOD.replace("s[t - d]", "s[t - d - 1]")), "no loop that scans"),
    "off by one": (kernel(GOOD.replace("t >= d", "t > d")), "no loop that scans"),
    "a maximum": (kernel(GOOD.replace("s[t] += v", "s[t] = fmaxf(s[t], v)")), "no loop that scans"),
    "twice": (kernel(GOOD.replace("s[t] += v", "s[t] += v + v")), "no loop that scans"),
    "not all rounds": (kernel(GOOD, loop="for (int d = 1; d < 64; d *= 2)"), "128 threads"),
    "from two": (kernel(GOOD, loop="for (int d = 2; d < blockDim.x; d *= 2)"), "no loop that scans"),
    "a warp": (kernel(GOOD, threads=32), "single warp"),
    "half precision": (kernel(GOOD, type="short", dtype="i16"), "cannot shuffle"),
    "some leave": (kernel(GOOD).replace("s[t] = i <", "if (i >= n) return;\n    s[t] = i <"), "may return"),
    "a local goes on": (
        kernel(GOOD.replace("float v =", "v =").replace(" : 0.0f", " : 0"), tail="s[t] += v;\n    ").replace(
            "int t = threadIdx.x;", "int t = threadIdx.x;\n    float v = 0;"), "is used after the scan"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_says_why_not(case: str) -> None:
    text, words = REFUSED[case]
    assert words in refusal(ask(text), NAME)


def test_tabs_and_carriage_returns_stay() -> None:
    request = ask(kernel(GOOD).replace("    ", "\t").replace("\n", "\r\n"))
    for candidate in candidates(request, NAME):
        written = rewritten(request, candidate).document.text
        assert written.count(b"\r\n") == written.count(b"\n") and b"\n    " not in written
