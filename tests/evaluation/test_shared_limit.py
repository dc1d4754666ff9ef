"""More shared memory than a launch gets unasked: does the host code of the rewrite ask for it?"""

import pytest

from agent.evaluation.shared_limit import Ungranted, ungranted
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.directive import read_directive
from agent.workload.plan import Plan
from agent.workload.program import Program
from agent.workload.rewrite import plan_of
from agent.workload.static import infer

FILE = """
__global__ void total(const float* x, float* out, int n) {
    extern __shared__ float s[];
    s[threadIdx.x] = blockIdx.x * 256 + threadIdx.x < n ? x[blockIdx.x * 256 + threadIdx.x] : 0.0f;
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
int main() {
    int n = 4096;
    float *x, *out;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&out, 16 * sizeof(float));
    cudaMemcpy(x, h, n * sizeof(float), cudaMemcpyHostToDevice);
    SET
    total<<<16, 256, SHARED>>>(x, out, n);
}
"""

RAISE = "cudaFuncSetAttribute(total, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000);"
TOLD = "that the host lets total have 60000 bytes of dynamic shared memory (cudaFuncSetAttribute)"


def said(
    shared: int, call: str = "", static: int = 0, text: str = FILE, before: int = 1024, plan: Plan | None = None
) -> Ungranted | None:
    """What is said of a rewrite of a program that asks for ``before`` bytes. ``plan`` stands in place of what the
    rewrite's host code launches."""
    old = parse(text.replace("SET", "").replace("SHARED", str(before)).encode(), "old.cu")
    new = parse(text.replace("SET", call).replace("SHARED", str(shared)).encode(), "new.cu")
    workload = infer(old, old.kernel("total"))
    plan = plan or plan_of(new, workload, old)
    original, candidate = Program(old, workload.plan, "old"), Program(new, plan, "new")
    return ungranted(original, candidate, bind(workload, plan, None, new), {"total": static})


@pytest.mark.parametrize(
    ("shared", "call", "static"),
    [
        (60000, "", 0),
        (49153, "", 0),
        (40000, "", 9153),
        (60000, "cudaFuncSetAttribute(total, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);", 0),
        (60000, "cudaFuncSetAttribute(total, cudaFuncAttributePreferredSharedMemoryCarveout, 100);", 0),
        (60000, "if (0) { int other; } // FuncSetAttribute(total, MaxDynamicSharedMemorySize, 60000)\n", 0),
    ],
)
def test_a_launch_beyond_the_limit_fails(shared: int, call: str, static: int) -> None:
    found = said(shared, call, static)
    assert found is not None and found.fails
    assert f"asks for {shared} bytes" in found.words
    assert f"cudaFuncSetAttribute(total, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared});" in found.words
    assert ("beside 9153 of its own" in found.words) == bool(static)


@pytest.mark.parametrize(
    ("shared", "call", "static"),
    [
        (49152, "", 0),
        (40000, "", 9152),
        (60000, RAISE, 0),
        (60000, RAISE.replace("total", "(const void*)total"), 0),
        (60000, f"if ({RAISE[:-1]} != cudaSuccess) return 1;", 0),
        (60000, RAISE.replace("60000", "limit_of_the_card()"), 0),
    ],
)
def test_a_launch_within_its_limit_launches(shared: int, call: str, static: int) -> None:
    assert said(shared, call, static) is None


def test_a_call_behind_the_launch_comes_too_late() -> None:
    late = FILE.replace("SET", "").replace("(x, out, n);", "(x, out, n); SET")
    found = said(60000, RAISE, text=late)
    assert found is not None and found.fails


def test_a_call_that_is_not_followed_is_said() -> None:
    unseen = f"void prepare() {{ {RAISE} }}" + FILE
    assert said(60000, text=unseen) == Ungranted(TOLD, False)


def test_what_another_file_may_set_is_said() -> None:
    found = said(60000, text=FILE.replace("int main()", "void run()"))
    assert found == Ungranted(TOLD, False)
    assert said(60000, before=60000) == Ungranted(TOLD, False)  # the original does without as well


def test_a_search_writes_the_call_with_the_launch() -> None:
    """Its candidates are judged by their plan, before the host code is edited."""
    old = parse(FILE.replace("SET", "").replace("SHARED", "60000").encode(), "old.cu")
    assert said(1024, plan=infer(old, old.kernel("total")).plan) is None


def test_host_code_that_is_nowhere_in_sight_is_said() -> None:
    stated = "// cuda-lsp: workload\n//   buffer x: f32[4096] in\n//   buffer out: f32[16] out\n"
    stated += "//   launch total<<<16, 256, 60000>>>(x, out, 4096)\n"
    document = parse((stated + FILE[1 : FILE.index("int main")]).encode(), "it.cu")
    workload = read_directive(document, document.kernel("total"))
    assert workload is not None
    program = Program(document, workload.plan, "it")
    assert ungranted(program, program, bind(workload, workload.plan, None, document), {}) == Ungranted(TOLD, False)
