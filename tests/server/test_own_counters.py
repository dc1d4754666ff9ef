"""The action *Benchmark* of a real server with a real worker: with a card and Nsight Compute what the card itself
counted takes the place of the emulator's counts; without them it says that nothing was measured."""

import time
from pathlib import Path
from typing import Any

import pytest

from agent.execution import toolkit
from agent.execution.gpu import open_gpu, why_no_gpu
from tests.cli.running import ROW_SUMS
from tests.server.wire import VSCODE, Wire, at


def benchmarked(folder: Path) -> tuple[str, str]:
    """What the user is told, and what the log has."""
    file = folder / "rows.cu"
    file.write_text(ROW_SUMS)
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(file.as_uri(), ROW_SUMS)
        place = at(ROW_SUMS, "__shared__")
        found = client.about(
            "textDocument/codeAction", file.as_uri(), range={"start": place, "end": place},
            context={"diagnostics": [], "triggerKind": 1},
        )  # fmt: skip
        (action,) = (one for one in found if one["title"] == "Benchmark row_sums")
        assert client.request("workspace/executeCommand", action["command"]), client.messages("window/showMessage")
        return told(client)


def told(client: Wire) -> tuple[str, str]:
    """Once the job has ended; a loaded machine takes as long as it takes."""
    ends = time.monotonic() + 280
    while time.monotonic() < ends:
        said: list[Any] = [one["message"] for one in client.messages("window/showMessage")]
        logged = [
            one["message"] for one in client.messages("window/logMessage") if "benchmark row_sums" in one["message"]
        ]
        if said and logged:
            return said[-1], logged[-1]
        time.sleep(0.1)
    raise AssertionError(f"the job did not end: {client.received[-5:]}")


def test_without_a_card_nothing_is_called_measured(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a card: what it counts is looked at")
    said, logged = benchmarked(tmp_path)
    assert "nothing can be measured here" in said and "Estimated on" in said
    assert "Nsight" not in said + logged and "DRAM traffic counted" in logged


@pytest.mark.gpu
def test_the_card_itself_says_what_it_counted(tmp_path: Path) -> None:
    """By hand: 96 blocks of four warps, which read 384 numbers in three steps of 4 sectors; each stores one number."""
    gpu = open_gpu()
    if gpu is None:
        pytest.skip(f"needs a card: {why_no_gpu()}")
    gpu.close()
    if toolkit.tool("ncu") is None:
        pytest.skip("needs ncu")
    said, logged = benchmarked(tmp_path)
    assert "row_sums: measured on" in said, said
    if "NVreg_RestrictProfilingToAdminUsers" in logged:
        pytest.skip("ncu may not read counters here")
    assert f"counted by {gpu.name} itself (Nsight Compute)" in said, logged
    assert "(96, 1, 1) blocks of (128, 1, 1): 1.2k loads of 4 sectors on average; 96 stores of 1 sectors" in said
    assert "DRAM traffic counted" not in logged, "the emulator's counts are replaced"
