"""``hints --count``: kernels are run small, and what their counts show is said too."""

import json

from tests.cli.hinting import Hints, hints, put

__all__ = ["hints"]

SPREAD = """\
__device__ int place(int i) {
    int j = 0;
    for (int k = 0; k < 8; ++k) j += i;
    return j;
}
__global__ void spread(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[place(i)];
}
void run() {
    int n = 256;
    float *x, *y;
    cudaMalloc(&x, 8 * n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    spread<<<2, 128>>>(x, y, n);
}
"""
WRONG = "__global__ void wrong(float* x) { x[threadIdx.x] = missing; }\n"
MINE = ("--select", "M")
SAID = "M1 the lanes of a warp are spread over x (counted at n=256: 32 sectors a request, 4 would do)"


def test_it_is_off_by_default(hints: Hints) -> None:
    code, said, noted = hints(str(put("a.cu", SPREAD)), *MINE)
    assert (code, said) == (0, "") and "counted" not in noted


def test_what_counts_show_is_said_and_how_many_kernels_ran(hints: Hints) -> None:
    put("a.cu", SPREAD + WRONG)
    code, said, noted = hints("a.cu", *MINE, "--count")
    assert code == 1 and said.rstrip().endswith(f":8:23: warning {SAID}")
    assert "kernels that were counted: 1; not counted: 1 (1 not" in noted
    code, said, _ = hints("a.cu", *MINE, "--count", "--json")
    told = json.loads(said)
    assert [(one["rule"], one["counted"]) for one in told["findings"]] == [("M1", True)]
    assert (told["ran"], sum(told["unrun"].values())) == (1, 1)
    code, said, _ = hints("a.cu", *MINE, "--count", "--ignore", "M1")
    assert (code, said) == (0, "")


def test_every_other_form_says_it_too(hints: Hints) -> None:
    put("a.cu", SPREAD)
    (result,) = json.loads(hints("a.cu", *MINE, "--count", "--format", "sarif")[1])["runs"][0]["results"]
    assert result["ruleId"] == "M1" and result["properties"] == {"counted": True}
    assert SAID.removeprefix("M1 ") in hints("a.cu", *MINE, "--count", "--format", "github")[1]
