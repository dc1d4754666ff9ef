"""What a candidate is when it is judged: in the user's style, with its headers where headers are."""

from pathlib import Path
from typing import Any

from agent.evaluation.setting import Setting
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.ideas.source import implement, propose
from agent.search.formatting.formatter import formatter
from agent.search.node import Node
from agent.search.options import SearchOptions
from agent.search.run import Run, child_of, request_for
from agent.source.document import parse
from agent.workload.find import find_workload
from agent.workload.program import Program
from tests.cli.running import ROW_SUMS

TILED = """\
#include <cstdio>
#include <cstdlib>

#define TILE 16

static int rows() { return 256; }

// c = a * b, for multiples of the tile.
__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        a_tile[y][x] = row < n && k0 + x < n ? a[row * n + k0 + x] : 0.0f;
        b_tile[y][x] = k0 + y < n && col < n ? b[(k0 + y) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

int main() {
    const int n = 256;
    float *a, *b, *c;
    cudaMalloc(&a, n * n * sizeof(float));
    cudaMalloc(&b, n * n * sizeof(float));
    cudaMalloc(&c, n * n * sizeof(float));
    multiply<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
    return rows() - n;
}
"""


def child(path: Path, text: str, idea: str, style: str = "") -> Node:
    """The first candidate of an idea, as a search makes it."""
    if style:
        (path.parent / ".clang-format").write_text(style)
    document = parse(text.encode(), str(path))
    kernel = document.kernels[0]
    workload = find_workload(document, kernel)
    root = Node("0", Program(document, workload.plan, "original"), None, None, None)
    nothing: Any = None
    setting = Setting(Emulator(), find_target("H200"), Options(arch="sm_90"))
    run = Run(kernel, workload, root, setting, SearchOptions(), nothing, nothing)
    if style:
        run.formatted = formatter(document.path, lambda note: None)
    request = request_for(root, run)
    found = next(one for one in propose(request).ideas if one.name == idea)
    return child_of(implement(found, request)[0], root, "1.1", run)


def lines(node: Node) -> list[str]:
    return node.program.document.text.decode().split("\n")


def test_lines_that_are_written_follow_the_style_and_the_others_stay(tmp_path: Path) -> None:
    style = "BasedOnStyle: Google\nColumnLimit: 72\nIndentWidth: 3\n"
    plain = child(tmp_path / "sums.cu", ROW_SUMS, "warp-shuffle-reduction")
    styled = child(tmp_path / "sums.cu", ROW_SUMS, "warp-shuffle-reduction", style)
    before = ROW_SUMS.split("\n")
    written = [line for line in lines(styled) if line not in before]
    assert max(map(len, written)) <= 72 < max(len(line) for line in lines(plain) if line not in before)
    assert any(line.startswith("   const ") for line in written), "a helper, indented as the style says"
    text = styled.program.document.text.decode()
    for start, end in (("// One block", "__shared__"), ("    float sum", "    s[t] = sum"), ("int main", "")):
        assert ROW_SUMS[ROW_SUMS.index(start) : ROW_SUMS.index(end) if end else None] in text
    assert styled.candidate is not None and plain.candidate is not None
    code = styled.candidate.code
    assert code != plain.candidate.code and all(part in text for part in code.split("__global__"))
    assert isinstance(build(styled.program, Options(arch="sm_90")), Build)


def test_a_header_goes_with_the_others_and_the_slice_compiles(tmp_path: Path) -> None:
    made = child(tmp_path / "multiply.cu", TILED, "asynchronous-copies")
    assert lines(made)[:4] == ["#include <cstdio>", "#include <cstdlib>", "#include <cuda_pipeline.h>", ""]
    assert sum("#include" in line for line in lines(made)) == 3
    assert isinstance(build(made.program, Options(arch="sm_90")), Build)
