"""Less precise rewrites come where a workload's statement allows them: whole searches, with ideas and gates."""

from pathlib import Path

from agent.evaluation.verdict import Verdict
from agent.search import events
from agent.search.options import SearchOptions
from agent.search.search import search
from agent.search.trace import Trace
from tests.evaluation.kernels import original, setting

IDEA = "tensor-cores"
FLOATS = """
// cuda-lsp: workload
//   size     m = 80, n = 72, k = 64
//   buffer   a: f32[m * k] in uniform(1, 2)
//   buffer   b: f32[k * n] in uniform(1, 2)
//   buffer   c: f32[m * n] out
//   launch   multiply<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, c, m, n, k)
__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}
"""
LOSSY = FLOATS.replace("//   launch", "//   lossy\n//   launch")
HALVES = "#include <cuda_fp16.h>\n" + (
    FLOATS.replace("const float*", "const half*")
    .replace("f32[m * k]", "f16[m * k]")
    .replace("f32[k * n]", "f16[k * n]")
    .replace("a[row * k + i] * b[i * n + col]", "__half2float(a[row * k + i]) * __half2float(b[i * n + col])")
)


def searched(text: str, folder: Path) -> tuple[list[Verdict], dict[str, str]]:
    """The verdicts on the idea's candidates, and what was said of ideas that do not apply."""
    program, workload = original(text)
    seen: list[events.Event] = []
    options = SearchOptions(rounds=1, candidates=1, proposals=0, trials=0, only=(IDEA,))
    trace = Trace(folder / "trace.jsonl")
    search(program, program.document.kernels[-1], workload, setting(), options, trace, seen.append)
    judged = [one.verdict for one in seen if isinstance(one, events.CandidateJudged) and one.verdict is not None]
    considered = [reason for one in seen if isinstance(one, events.IdeasFound) for reason in one.considered]
    return judged, dict(considered)


def test_without_the_statement_nothing_less_precise_is_tried(tmp_path: Path) -> None:
    judged, considered = searched(FLOATS, tmp_path)
    assert not judged
    assert "`lossy`" in considered[IDEA]


def test_with_the_statement_it_comes_and_is_called_less_precise(tmp_path: Path) -> None:
    """tf32 keeps 10 bits: each factor is off by up to 2^-11 of itself, far more than a float's sum of 64."""
    (verdict,), _ = searched(LOSSY, tmp_path)
    assert (verdict.correctness.state, verdict.precision.state) == ("right", "less"), verdict.correctness
    assert verdict.precision.candidate_error is not None
    assert 2**-16 < verdict.precision.candidate_error < 2**-9
    assert verdict.speed.state == "estimated"


def test_halves_need_no_permission(tmp_path: Path) -> None:
    (verdict,), _ = searched(HALVES, tmp_path)
    assert verdict.correctness.state == "right", verdict.correctness
    assert verdict.precision.state != "less"
