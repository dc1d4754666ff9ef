"""A card's figures: measured once, kept by card and driver, and never trusted where they are not whole."""

import json
from pathlib import Path

import pytest

from agent.execution.children.gpu_messages import Card
from agent.execution.children.timing_messages import Calibrate, Calibrated
from agent.execution.gpu import peaks
from agent.execution.timing import Figures

CARD = Card("A card", 90, 13000, 1 << 34, 232448, address="0000:0A:00.0")
FOUND = Calibrated("", 4e12, 3e12, 3.5e12, 60 << 20, 120 << 20)


class Runner:
    def __init__(self, answer: Calibrated = FOUND) -> None:
        self.answer, self.asked = answer, 0

    def __call__(self, request: Calibrate) -> Calibrated:
        self.asked += 1
        assert request.support
        return self.answer


class Watched:
    uuid, driver = "GPU-1", "580.1"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(peaks.cache, "folder", lambda: tmp_path / "builds")
    monkeypatch.setattr(peaks, "watch", lambda address: Watched())
    return tmp_path / "cards"


def test_measured_once(place: Path) -> None:
    runner = Runner()
    first = peaks.figures(CARD, "sm_90", runner)
    again = peaks.figures(CARD, "sm_90", runner)
    assert first == again == Figures("A card", "GPU-1", "580.1", 4e12, 3e12, 3.5e12, 60 << 20, 120 << 20)
    assert runner.asked == 1 and len(list(place.iterdir())) == 1


def test_another_driver_is_measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    peaks.figures(CARD, "sm_90", runner)
    monkeypatch.setattr(Watched, "driver", "590.2")
    peaks.figures(CARD, "sm_90", runner)
    assert runner.asked == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"card": 1}'])
def test_a_damaged_file_is_measured_anew(place: Path, damage: str) -> None:
    runner = Runner()
    peaks.figures(CARD, "sm_90", runner)
    (kept,) = place.iterdir()
    kept.write_text(damage)
    assert isinstance(peaks.figures(CARD, "sm_90", runner), Figures)
    assert runner.asked == 2


def test_figures_of_nothing_are_not_kept_for_true(place: Path) -> None:
    runner = Runner()
    peaks.figures(CARD, "sm_90", runner)
    (kept,) = place.iterdir()
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"read": 0.0}))
    peaks.figures(CARD, "sm_90", runner)
    assert runner.asked == 2


def test_a_card_that_cannot_be_measured_says_why() -> None:
    found = peaks.figures(CARD, "sm_90", Runner(Calibrated("out of memory")))
    assert found == "the card could not be measured: out of memory"


def test_no_room_on_disk_costs_a_measurement_only(place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text("a file where the folder should be")
    assert isinstance(peaks.figures(CARD, "sm_90", Runner()), Figures)


def test_without_nvml_the_place_on_the_bus_names_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "watch", lambda address: "no NVML")
    found = peaks.figures(CARD, "sm_90", Runner())
    assert isinstance(found, Figures) and (found.uuid, found.driver) == ("0000:0A:00.0", "CUDA 13000")
