"""A PyTorch function of the user's in the editor: off without a setting, run at his word, named in verdicts."""

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from attrs import evolve
from lsprotocol import types

from agent.evaluation.verdict import IN_PYTORCH, Baseline
from cuda_lsp.terminal.render import evidence_lines, told_text
from tests.cli.test_reference import KERNEL, REFERENCE
from tests.evaluation.test_timing import Clock, verdict
from tests.server.connected import REAL, Connected, connect

CHANGED = KERNEL.replace("d /= 2", "d >>= 1")
linux = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")
torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def session(folder: Path, scenario: Callable[[Connected], Awaitable[None]], reference: str = REFERENCE) -> bool:
    """A change that was not saved yet, and a scenario with it; whether the function ran."""
    work = folder / "work"
    work.mkdir()
    (work / "total.cu").write_text(KERNEL)
    (work / "refs.py").write_text(reference)

    async def run() -> None:
        async with connect(work / "total.cu", CHANGED, folder / "state", server=REAL) as client:
            await scenario(client)

    asyncio.run(run())
    return (work / "ran").exists()


async def switched_on(client: Connected) -> None:
    client.settings = {"reference": True}
    client.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(client.settings))
    await client.eventually(lambda: client.titles())


async def verified(client: Connected) -> str:
    """The message at the end of the job."""
    before = len(client.messages)
    job = await client.command("verify", await client.kernel("total"))
    assert isinstance(job, str), client.messages
    await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"], 120)
    told = "total against", "does not compute", "RuntimeError"

    def results() -> list[str]:
        return [text for text in client.messages[before:] if any(piece in text for piece in told)]

    await client.until(lambda: bool(results()))
    return results()[0]


@linux
def test_it_is_not_run_unasked_nor_against_a_no(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = "Run"
        assert "right (emulated" in await verified(client)
        assert client.asked == [], "the setting is off"
        await switched_on(client)
        client.answer = "Never in this project"
        await verified(client)
        (question,) = client.asked
        assert "refs.py:total would be run" in question.message and "can do whatever you can" in question.message
        assert str(tmp_path / "work" / "refs.py") in question.message
        assert [item.title for item in question.actions or ()] == [
            "Run", "Always in this project", "Never in this project",
        ]  # fmt: skip
        assert any("in this project refs.py:total is not run" in text for text in client.messages)
        client.answer = "Run"
        await verified(client)
        assert len(client.asked) == 1, "it was refused for good"

    assert not session(tmp_path, scenario)


@linux
@torch
def test_once_agreed_the_verdict_is_held_against_it(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await switched_on(client)
        client.answer = "Always in this project"
        assert "same precision (held against refs.py:total)" in await verified(client)
        stages = [value.get("message", "") for _, value in client.progress]
        assert "waiting for your answer: may refs.py:total run?" in stages
        (tmp_path / "work" / "refs.py").write_text(REFERENCE.replace(".sum(dim=1)", ".abs().sum(dim=1)"))
        assert "does not compute what refs.py:total does: y[" in await verified(client)
        assert len(client.asked) == 1, "it was allowed for good"
        (tmp_path / "work" / "refs.py").write_text(REFERENCE.replace("x.view(rows, cols)", "x.view(rows, 7)"))
        assert "refs.py, line 5 in total: RuntimeError: shape" in await verified(client)

    assert session(tmp_path, scenario)


def test_what_was_timed_beside_a_verdict_is_told_with_it() -> None:
    measured = verdict(Clock(), "full")
    evidence = evolve(measured.evidence, baselines=(Baseline("refs.py:total eager", 12.5e-6),))
    precision = evolve(measured.precision, oracle=f"refs.py:total{IN_PYTORCH}")
    beside = evolve(measured, evidence=evidence, precision=precision)
    assert "same precision (held against refs.py:total)" in told_text(beside)
    assert told_text(beside).endswith("; beside it on this card: refs.py:total eager 12.5 us, the rewrite 500 us")
    assert "held against: refs.py:total in PyTorch, float64" in evidence_lines(beside)
