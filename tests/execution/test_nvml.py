"""What is asked of NVML and made of its answers, on a library of our own."""

import ctypes
from typing import Any

import pytest

from agent.execution import nvml


class Library:
    """NVML with one card: two clocks, throttle bits, two compute processes; ``missing`` functions are not there."""

    def __init__(self, missing: tuple[str, ...] = (), code: int = 0) -> None:
        self.missing, self.code = missing, code

    def __getattr__(self, name: str) -> Any:
        if name in self.missing or not name.startswith("nvml"):
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> int:
        if self.code and name != "nvmlInit_v2":
            return self.code
        if name == "nvmlDeviceGetClockInfo":
            arguments[2]._obj.value = {1: 1980, 2: 3201}[arguments[1].value]
        elif name.startswith("nvmlDeviceGetCurrentClocks"):
            arguments[1]._obj.value = 0x24
        elif name == "nvmlDeviceGetUUID":
            arguments[1].value = b"GPU-1234"
        elif name == "nvmlSystemGetDriverVersion":
            arguments[0].value = b"580.1"
        elif name == "nvmlDeviceGetComputeRunningProcesses_v3":
            arguments[1]._obj.value = 2
            arguments[2][0].pid, arguments[2][1].pid = 11, 22
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(found: Library) -> None:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: found)

    return use


def test_a_reading(library: Any) -> None:
    library(Library())
    watch = nvml.watch("0000:0A:00.0")
    assert isinstance(watch, nvml.Watch)
    assert watch.reading() == nvml.Reading(1980, 3201, 0x24)
    assert (watch.uuid, watch.driver, watch.computing()) == ("GPU-1234", "580.1", frozenset({11, 22}))


def test_newer_drivers_call_the_reasons_otherwise(library: Any) -> None:
    library(Library(missing=("nvmlDeviceGetCurrentClocksThrottleReasons",)))
    watch = nvml.watch("a")
    assert isinstance(watch, nvml.Watch) and watch.reading().reasons == 0x24


def test_what_the_driver_does_not_tell_stays_unknown(library: Any) -> None:
    library(Library(missing=("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetUUID")))
    watch = nvml.watch("a")
    assert isinstance(watch, nvml.Watch)
    assert watch.computing() is None and watch.uuid == ""


def test_no_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", none)
    found = nvml.watch("a")
    assert isinstance(found, str) and "clocks were not watched" in found and "cannot open" in found


def test_a_card_that_nvml_does_not_know_is_said(library: Any) -> None:
    library(Library(code=6))
    found = nvml.watch("a")
    assert isinstance(found, str) and "answered 6" in found


def test_bits_in_words() -> None:
    assert nvml.throttled(0x24) == ("power cap", "thermal (software)")
    assert nvml.throttled(0x01 | 0x02) == ()  # idle, or the user's own clock setting: no slower than the card can
