"""Where CUPTI is on this machine: NVIDIA's library that tells of driver calls, and the headers that go with it."""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from agent.execution import toolkit
from agent.inference.capture.errors import CaptureError

NEWEST = (99, 9)
"""A driver that any CUPTI fits."""


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
    if found:
        newest = ".".join(map(str, found[0].version))
        raise CaptureError(
            f"the CUPTI that is here ({found[0].library}) is of CUDA {newest}, and the driver of CUDA "
            f"{driver[0]}.{driver[1]} takes none that new: {_mend(driver[0])}"
        )
    raise CaptureError(
        f"CUPTI, which the recorder works through, was not found on this machine with its headers: {_mend(driver[0])}"
    )


def _mend(major: int) -> str:
    if major < 13:
        wheels = [f"nvidia-cuda-{part}-cu{major}" for part in ("cupti", "runtime", "nvcc")]
        return f"pip install {' '.join(wheels)}, or install the CUDA toolkit"
    wheels = [f"'nvidia-cuda-{part}=={major}.*'" for part in ("cupti", "runtime", "crt")]
    return f"pip install {' '.join(wheels)}, or install the CUDA toolkit"


def _there() -> Iterator[Cupti]:
    for root in toolkit.roots():
        folders = (root, root / "extras" / "CUPTI", *sorted(root.glob("targets/*-linux")))
        includes = tuple(folder / "include" for folder in folders)
        yield from _pair(includes, tuple(folder / name for folder in folders for name in ("lib64", "lib")))
    for place in toolkit.wheels():
        for unified in sorted(place.glob("cu[0-9]*"), reverse=True):
            yield from _pair((unified / "include",), (unified / "lib",))
        parts = tuple(place / part / "include" for part in ("cuda_cupti", "cuda_runtime", "cuda_nvcc"))
        yield from _pair(parts, (place / "cuda_cupti" / "lib",))


def _pair(includes: tuple[Path, ...], libraries: tuple[Path, ...]) -> Iterator[Cupti]:
    """The library and the headers of one installation, where it has both. CUDA's own headers may be another's."""
    held = tuple(folder for folder in includes if folder.is_dir())
    library = next((path for folder in libraries for path in sorted(folder.glob("libcupti.so.*"))), None)
    if library is None or not _all_in(held, "cupti_callbacks.h"):
        return
    if not _all_in(held, *_BESIDE):
        held = (*held, *toolkit.include_folders())
    version = next((told for folder in held if (told := _version(folder))), None)
    if version is not None and _all_in(held, *_BESIDE):
        yield Cupti(library.resolve(), held, version)


_BESIDE = ("cuda.h", "builtin_types.h", "crt/host_defines.h")
"""What CUPTI's own header includes."""


def _all_in(folders: tuple[Path, ...], *names: str) -> bool:
    return all(any((folder / name).is_file() for folder in folders) for name in names)


def _version(folder: Path) -> tuple[int, int] | None:
    """Of CUPTI, which from 13 on has CUDA's numbers (130500); before, that of the CUDA beside it (12090)."""
    own = _number(folder / "cupti_version.h", rb"CUPTI_API_VERSION")
    if own is not None and own >= 130000:
        return own // 10000, own % 10000 // 100
    number = _number(folder / "cuda.h", rb"CUDA_VERSION")
    return (number // 1000, number % 1000 // 10) if number is not None else None


def _number(header: Path, name: bytes) -> int | None:
    try:
        told = re.search(rb"^#define\s+" + name + rb"\s+(\d+)", header.read_bytes(), re.M)
    except OSError:
        return None
    return int(told[1]) if told else None
