"""The benchmark of equal code, on a clock that says what it is told: what it counts, and how it resumes."""

import json
from pathlib import Path

import numpy as np
import pytest
from attrs import define, field

from agent.evaluation.setting import Setting
from agent.execution.compiler import Options
from agent.execution.emulator import Emulator
from agent.execution.targets import find_target
from agent.execution.timing import Figures, Race, Timed, digest_layout
from tests.benchmarks import equal
from tests.benchmarks.equal import Sized, fill, report
from tests.gpu import shards

KERNELS = (
    Sized("bias_gelu.cu", "bias_gelu", {"rows": 8, "cols": 64}),
    Sized("argmax.cu", "argmax", {"rows": 2, "cols": 9}),
)


@define
class Clock:
    """Every process gives the next of ``ratios``, but for controls, which come first for each kernel."""

    ratios: list[float]
    races: list[Race] = field(factory=list)

    def figures(self, cancelled: object = None) -> Figures:
        return Figures("Test card", "GPU-1", "580", 1e12, 1e12, 1e12, 0, 1 << 20)

    def ready(self, count: int) -> None: ...

    def begin(self, count: int) -> None: ...

    def race(self, race: Race) -> Timed:
        ratio = self.ratios[len(self.races)]
        self.races.append(race)
        block = (2e-3, 2e-3, 2e-3 / ratio, 2e-3 / ratio)
        return Timed(
            "ok", cold=(block,) * 6, first=(1.0, 1.0), calls=(1,), digests=np.zeros((1, 1, 1), digest_layout(16))
        )

    def alone(self, race: Race, timed: Timed) -> Timed:
        return Timed("ok", digests=timed.digests)


def setting() -> Setting:
    return Setting(Emulator(), find_target("H200"), Options(arch="sm_90"))


def test_each_kernel_is_timed_against_itself_as_a_verdict_does(capsys: pytest.CaptureFixture[str]) -> None:
    clock, held = Clock([1.0, 1.001, 1.0, 1.1]), shards.opened("equal", ())
    fill(held, clock, setting(), KERNELS, 1)
    seen = [race.sides[0].bound.sizes for race in clock.races]
    assert seen == [dict(sized.sizes) for sized in KERNELS for _ in range(2)]
    for race in clock.races:
        assert race.sides[0].build == race.sides[1].build and race.sides[0].bound == race.sides[1].bound
    assert [row["state"] for row in held.rows.values()] == ["same", "faster"]
    assert report(held.rows.values(), 2) == 1
    assert "argmax, screen: faster (1.09" in capsys.readouterr().out


def test_the_last_of_twenty_is_a_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal, "FULL_EVERY", 2)
    clock, held = Clock([1.0] * 99), shards.opened("equal", ())
    fill(held, clock, setting(), KERNELS[:1], 2)
    assert [row["depth"] for row in held.rows.values()] == ["screen", "full"]
    assert len(clock.races) == 2 + 4  # a control and one process; a control and three


def test_it_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LSP_SHARDS", str(tmp_path))
    fill(shards.opened("equal", ("fixtures",)), Clock([1.0] * 99), setting(), KERNELS, 1)
    again, clock = shards.opened("equal", ("fixtures",)), Clock([1.0] * 99)
    assert len(again.rows) == 2
    fill(again, clock, setting(), KERNELS, 2)
    assert len(clock.races) == 4 and len(json.loads((tmp_path / "equal.json").read_text())["rows"]) == 4
    assert shards.opened("equal", ("fixtures", "tests/gpu")).rows == {}  # other code


def test_nothing_is_begun_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LSP_SECONDS", "-1")
    held = shards.opened("equal", ())
    fill(held, Clock([]), setting(), KERNELS, 3)
    assert held.rows == {}


@pytest.mark.parametrize("text", ["", "[]", '{"code": "x"}'], ids=["empty", "no table", "no rows"])
def test_a_damaged_file_is_begun_anew(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LSP_SHARDS", str(tmp_path))
    (tmp_path / "equal.json").write_text(text)
    assert shards.opened("equal", ()).rows == {}
