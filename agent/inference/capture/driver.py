"""The NVIDIA driver of this machine, asked before anybody's program is started. No context is made."""

import ctypes
import sys

from attrs import frozen

from agent.inference.capture.errors import CaptureError

_DOCTOR = "`cuda-lsp doctor` says what this machine can do"


@frozen
class Driver:
    """``version`` as (major, minor) of the CUDA that it brings; ``cards`` that a program sees here."""

    version: tuple[int, int]
    cards: int


def find_driver(library: str = "libcuda.so.1") -> Driver:
    """Raises CaptureError where there is no card to capture on."""
    if not sys.platform.startswith("linux"):
        raise CaptureError("launches can be captured on Linux only: elsewhere the driver loads no recorder")
    try:
        cuda = ctypes.CDLL(library)
        begin, version, count = cuda.cuInit, cuda.cuDriverGetVersion, cuda.cuDeviceGetCount
    except (OSError, AttributeError):
        raise CaptureError(
            "there is no NVIDIA driver on this machine, and launches are captured on a card alone: run this where the "
            f"program runs ({_DOCTOR}). What a kernel is run on can also be stated: docs/workload.md"
        ) from None
    code = begin(0)
    if code != 0:
        raise CaptureError(f"the NVIDIA driver cannot be used: {_word(cuda, code)} ({_DOCTOR})")
    told, cards = ctypes.c_int(), ctypes.c_int()
    version(ctypes.byref(told))
    count(ctypes.byref(cards))
    if cards.value < 1:
        raise CaptureError(f"the NVIDIA driver shows no card here; is CUDA_VISIBLE_DEVICES set? ({_DOCTOR})")
    return Driver((told.value // 1000, told.value % 1000 // 10), cards.value)


def _word(cuda: ctypes.CDLL, code: int) -> str:
    """The driver's own words for an error."""
    word = ctypes.c_char_p()
    try:
        cuda.cuGetErrorString(code, ctypes.byref(word))
    except AttributeError:
        return f"error {code}"
    return f"{(word.value or b'error').decode(errors='replace')} ({code})"
