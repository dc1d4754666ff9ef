"""Where CUPTI is on this machine: NVIDIA's library that tells of driver calls, and the headers that go with it."""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from agent.execution import toolkit
from agent.inference.capture.errors import CaptureError

NEWEST = (99, 9)
"""A driver that any CUPTI fits."""

_VERSION = re.compile(rb"^#define\s+CUDA_VERSION\s+(\d+)", re.M)


@frozen
class Cupti:
    """``includes`` hold ``cupti_callbacks.h`` and ``cuda.h``; ``version`` is that of the CUDA they are of."""

    library: Path
    includes: tuple[Path, ...]
    version: tuple[int, int]


def find_cupti(driver: tuple[int, int]) -> Cupti:
    """The CUPTI that fits a driver of that version best: the newest that is not newer, else the oldest of the same
    major version. Raises CaptureError that says what to install."""
    found = list(dict.fromkeys(_there()))
    fitting = [cupti for cupti in found if cupti.version[0] <= driver[0]]
    older = [cupti for cupti in fitting if cupti.version <= driver]
    if fitting:
        return max(older, key=lambda cupti: cupti.version) if older else min(fitting, key=lambda cupti: cupti.version)
    wheel = "nvidia-cuda-cupti" if driver[0] >= 13 else f"nvidia-cuda-cupti-cu{driver[0]}"
    runtime = "nvidia-cuda-runtime" if driver[0] >= 13 else f"nvidia-cuda-runtime-cu{driver[0]}"
    mend = f"pip install '{wheel}=={driver[0]}.*' '{runtime}=={driver[0]}.*', or install the CUDA toolkit"
    if found:
        newest = ".".join(map(str, found[0].version))
        raise CaptureError(
            f"the CUPTI that is here ({found[0].library}) is of CUDA {newest}, and the driver of CUDA "
            f"{driver[0]}.{driver[1]} takes none that new: {mend}"
        )
    raise CaptureError(f"CUPTI, which the recorder works through, was not found on this machine: {mend}")


def _there() -> Iterator[Cupti]:
    for root in toolkit.roots():
        folders = (root, root / "extras" / "CUPTI", *sorted(root.glob("targets/*-linux")))
        includes = tuple(folder / "include" for folder in folders)
        yield from _pair(includes, tuple(folder / name for folder in folders for name in ("lib64", "lib")))
    for place in toolkit.wheels():
        for unified in sorted(place.glob("cu[0-9]*"), reverse=True):
            yield from _pair((unified / "include",), (unified / "lib",))
        yield from _pair(
            (place / "cuda_cupti" / "include", place / "cuda_runtime" / "include"), (place / "cuda_cupti" / "lib",)
        )


def _pair(includes: tuple[Path, ...], libraries: tuple[Path, ...]) -> Iterator[Cupti]:
    """The library and the headers of one installation, where it has both."""
    held = tuple(folder for folder in includes if folder.is_dir())
    version = next((told for folder in held if (told := _version(folder / "cuda.h"))), None)
    library = next((path for folder in libraries for path in sorted(folder.glob("libcupti.so.*"))), None)
    if library is not None and version is not None and any((folder / "cupti_callbacks.h").is_file() for folder in held):
        yield Cupti(library.resolve(), held, version)


def _version(header: Path) -> tuple[int, int] | None:
    try:
        told = _VERSION.search(header.read_bytes())
    except OSError:
        return None
    return (int(told[1]) // 1000, int(told[1]) % 1000 // 10) if told else None
