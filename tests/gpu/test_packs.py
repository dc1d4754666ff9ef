"""Packs of launches: which kernels are taken, that what is read is what was written, and how answers are compared."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from agent.execution.device import Answer, Device, Request
from agent.execution.emulator import Emulator
from tests.benchmarks import agreement
from tests.gpu import packs
from tests.gpu.packs import Pack

KERNEL = """__global__ void k(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {}
}}
"""
MAIN = """int main() {
    int n = 1000;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);
    k<<<(n + 127) / 128, 128>>>(x, y, n);
}
"""
FIT = KERNEL.format("if (i < n) y[i] = 2.0f * x[i] + 1.0f;")
KERNELS = {
    "fit.cu": FIT + MAIN,
    "alone.cu": KERNEL.format("if (i < n) y[i] = expf(x[i]);"),
    "broken.cu": KERNEL.format("y[i + 1] = x[i]; if (i < n) y[i] = 0.0f;") + MAIN,
    "constant.cu": KERNEL.format("if (i < n) y[i] = 0.0f;") + MAIN,
    "unreached.cu": KERNEL.format("if (n < 0) { if (i > 3) y[1] = x[2]; else y[2] = x[5]; y[i] *= 3; } y[i] = x[i];"),
    "places.cu": "__global__ void k(const int* x, int* y, int* n) { int i = blockIdx.x * 64 + threadIdx.x;"
    " y[(atomicAdd(n, 0) & 0) + (i & 4095)] = x[i & 4095] + i; }\n",
    "order.cu": "__global__ void k(int* y, int* n) { y[atomicAdd(n, 1) % 4096] = blockIdx.x * 64 + threadIdx.x; }\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repositories")
    for name, text in KERNELS.items():
        (root / "somebody+kernels").mkdir(exist_ok=True)
        (root / "somebody+kernels" / name).write_text(text)
    agreement.make(root, root / "packs", 8)
    return root / "packs"


def taken(folder: Path) -> dict[str, Pack]:
    return {found.file: found for found in map(packs.read, sorted(folder.glob("*.pack")))}


def test_kernels_are_taken_that_run_clean_vary_and_are_reached(made: Path) -> None:
    found = taken(made)
    assert set(found) == {"fit.cu", "alone.cu", "places.cu"}
    assert found["fit.cu"].sizes and found["fit.cu"].blocks >= 2 and found["fit.cu"].reached >= 0.8
    assert found["fit.cu"].inexact == () and "ex2.approx" in found["alone.cu"].inexact[0]
    assert found["fit.cu"].repository == "somebody+kernels"


def test_what_was_packed_is_what_runs_again(made: Path) -> None:
    fit = taken(made)["fit.cu"]
    (out,) = [one for one in fit.buffers if one.name == "y"]
    (x,) = [one for one in fit.buffers if one.name == "x"]
    given = np.frombuffer(zlib.decompress(x.before), np.float32)
    np.testing.assert_array_equal(packs.after(out).view(np.float32), 2 * given + 1)
    assert agreement.compare(fit, Emulator()).outcome == "equal"


class Other:
    """A device that changes what the emulator gives."""

    name, emulated = "other", False

    def __init__(self, change: Callable[[np.ndarray], None], status: str = "ok") -> None:
        self.change, self.status = change, status

    def run(self, request: Request) -> Answer:
        answer = Emulator().run(request)
        outputs = {name: data.copy() for name, data in answer.outputs.items()}
        self.change(outputs["y"].view(np.float32))
        return evolve(answer, outputs=outputs, status=self.status, message="" if self.status == "ok" else "no memory")


def by(step: float) -> Device:
    def change(values: np.ndarray) -> None:
        values[7] *= np.float32(1 + step)

    return Other(change)


def test_one_bit_is_a_difference_where_nothing_is_left_open(made: Path) -> None:
    found = taken(made)
    differs = agreement.compare(found["fit.cu"], by(2.0**-22))
    assert differs.outcome == "differs" and "y: 1 of" in differs.words and "first [7]" in differs.words
    assert agreement.compare(found["alone.cu"], by(2.0**-22)).outcome == "within"
    assert agreement.compare(found["alone.cu"], by(0.25)).outcome == "differs"
    gone = agreement.compare(found["fit.cu"], Other(lambda values: None, "unavailable"))
    assert (gone.outcome, gone.words) == ("not run", "no memory")


def test_places_that_threads_take_may_be_others(made: Path) -> None:
    """What takes its places from an atomic may leave the same numbers in another order; others are a difference."""
    found = taken(made)

    def turned(values: np.ndarray) -> None:
        values[:] = values[::-1].copy()

    def changed(values: np.ndarray) -> None:
        values.view(np.int32)[7] += 1000

    assert agreement.compare(found["places.cu"], Other(turned)).outcome == "order"
    assert agreement.compare(found["places.cu"], Other(changed)).outcome == "differs"
    assert agreement.compare(found["fit.cu"], Other(turned)).outcome == "differs", "no atomic, no other order"


def test_the_table_counts_by_repository_and_names_what_differs(made: Path) -> None:
    found = taken(made)
    rows = [agreement.compare(found["fit.cu"], by(1.0)), agreement.compare(found["alone.cu"], Emulator())]
    text = "\n".join(agreement.table(rows, "a card"))
    assert "a card" in text and "differs: somebody+kernels/fit.cu k: y: 1 of" in text
    assert [line.split()[1:] for line in text.splitlines() if "all" in line.split()[:1]] == [["1", "0", "0", "1", "0"]]


def test_without_packs_or_a_card_it_says_so(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_LSP_REPOSITORIES", raising=False)
    monkeypatch.setattr(agreement, "open_gpu", lambda: None)
    monkeypatch.setenv("CUDA_LSP_PACKS", str(made))
    agreement.main()
    assert "3 packs, and no card to run them on" in capsys.readouterr().out
    monkeypatch.delenv("CUDA_LSP_PACKS")
    agreement.main()
    assert "names no folder" in capsys.readouterr().out
