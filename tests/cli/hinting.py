"""Files with findings that are known by hand, and the command run in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cuda_lsp.cli.hints import command

SLOW = """\
__global__ void relax(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.1;
}
"""
"""A1 at line 3, from the 30th character (0.1) to before the 33rd."""
LINE = "3:30: warning A1 "

FINE = SLOW.replace("0.1", "0.1f")

TREE = """\
__global__ void total(const float* x, float* y) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = 128; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
void run(const float* x, float* y) { total<<<64, 256>>>(x, y); }
"""
"""W6, a hint, at line 6."""

RULES = ("A1", "W6")

Hints = Callable[..., tuple[int, str, str]]


@pytest.fixture
def hints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hints:
    """The command in a folder of its own: exit code, standard output, standard error. Two rules run unless others are
    named, so that a new rule changes no test."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        chosen = () if "--select" in arguments else ("--select", ",".join(RULES))
        code = command.main([*arguments, *chosen], standalone_mode=False)
        said = capsys.readouterr()
        return int(code), said.out, said.err

    return call


def put(path: str, content: str | bytes = SLOW) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file
