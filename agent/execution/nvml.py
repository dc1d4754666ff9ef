"""What NVIDIA's management library says of a card: clocks, throttling, who else is on it. Read only; no context.

Spoken to through ctypes, as the driver brings the library along. Where it is missing, :func:`watch` says so.
"""

import contextlib
import ctypes
import sys
from collections.abc import Callable
from typing import Any

from attrs import frozen

_SM, _MEMORY = 1, 2
THROTTLES = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}
"""Bits of NVML's clock event reasons that mean a card slower than it could be."""


@frozen
class Reading:
    """Clocks in MHz, and the throttle bits."""

    sm: int
    memory: int
    reasons: int


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute", ctypes.c_uint),
    )


class Watch:
    """One card, by its PCI address (``0000:0A:00.0``). Raises OSError where NVML or the card cannot be had."""

    def __init__(self, address: str) -> None:
        self._library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        self._card = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByPciBusId_v2", address.encode(), ctypes.byref(self._card))

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise OSError(f"{name} is not there") from error
        code = function(*arguments)
        if code != 0:
            raise OSError(f"{name} answered {code}")

    def _number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int:
        value = kind()
        self._call(name, self._card, *arguments, ctypes.byref(value))
        return int(value.value)

    def reading(self) -> Reading:
        """The clocks now. Raises OSError."""
        clock = "nvmlDeviceGetClockInfo"
        sm, memory = self._number(clock, ctypes.c_int(_SM)), self._number(clock, ctypes.c_int(_MEMORY))
        try:
            reasons = self._number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)
        except OSError:
            reasons = self._number("nvmlDeviceGetCurrentClocksEventReasons", kind=ctypes.c_ulonglong)
        return Reading(sm, memory, reasons)

    def text(self, name: str, *before: Any) -> str:
        """A string that NVML answers (``nvmlDeviceGetUUID``, ``nvmlSystemGetDriverVersion``); empty where it does
        not."""
        held = ctypes.create_string_buffer(96)
        with contextlib.suppress(OSError):
            self._call(name, *before, held, ctypes.c_uint(len(held)))
        return held.value.decode(errors="replace")

    @property
    def uuid(self) -> str:
        return self.text("nvmlDeviceGetUUID", self._card)

    @property
    def driver(self) -> str:
        return self.text("nvmlSystemGetDriverVersion")

    def computing(self) -> frozenset[int] | None:
        """Ids of the processes that hold a compute context here; None where the driver does not say. A desktop's
        compositor is none of them."""
        count = ctypes.c_uint(64)
        found = (_Process * 64)()
        try:
            self._call("nvmlDeviceGetComputeRunningProcesses_v3", self._card, ctypes.byref(count), found)
        except OSError:
            return None
        return frozenset(int(found[index].pid) for index in range(count.value))


def watch(address: str, make: Callable[[str], Watch] = Watch) -> Watch | str:
    """The card's watch, or why there is none."""
    try:
        return make(address)
    except OSError as error:
        return f"clocks were not watched: NVML cannot be used ({error})"


def throttled(reasons: int) -> tuple[str, ...]:
    """What held the clocks down, in words."""
    return tuple(words for bit, words in THROTTLES.items() if reasons & bit)
