"""Where CUDA's headers and tools are on this machine: in wheels beside CuPy, in a conda environment, in a toolkit."""

import importlib.util
import os
import re
import shutil
from functools import cache
from pathlib import Path

_TOOLKITS = ("/usr/local/cuda", "/opt/cuda")


def include_folders(major: int | None = None) -> tuple[Path, ...]:
    """CUDA's include folders, all from one place (headers of two installations must never mix).

    ``major`` is the CUDA version of the NVRTC that will read them (12, 13): wheels of that version come first. Wheels
    without the one of crt (PyTorch brings such) give way to a toolkit of the very same version that has all.
    """
    installed = [(root / "include", root / "include" / "cccl") for root in roots()]
    there = [one for one in (*_wheels(major), *installed) if (one[0] / "cuda_runtime.h").is_file()]
    if not there:
        return ()
    whole = (one for one in there if _version(one) == _version(there[0]) and _complete(one))
    return tuple(folder for folder in next(whole, there[0]) if folder.is_dir())


def _complete(folders: tuple[Path, ...]) -> bool:
    return any((folder / "crt" / "mma.h").is_file() for folder in folders)


@cache
def _version(folders: tuple[Path, ...]) -> str:
    """Of the runtime's headers, as they state it (13000), or nothing."""
    try:
        text = (folders[0] / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    stated = re.search(r"^\s*#\s*define\s+CUDART_VERSION\s+(\d+)", text, re.MULTILINE)
    return stated[1] if stated is not None else ""


def _wheels(major: int | None) -> list[tuple[Path, ...]]:
    found: list[tuple[Path, ...]] = []
    for place in wheels():
        unified = sorted(place.glob("cu[0-9]*/include"), reverse=True)
        found += [
            (folder, folder / "cccl") for folder in unified if major is None or folder.parent.name == f"cu{major}"
        ]
        if major in (None, 12):  # CUDA 12 wheels: one folder per component
            parts = [place / part / "include" for part in ("cuda_runtime", "cuda_cccl", "curand", "cuda_nvcc")]
            found.append((parts[0], *parts[1:], parts[1] / "cccl"))
    return found


def roots() -> tuple[Path, ...]:
    """Where a toolkit may be installed, the user's own choice first; some of them may not be there."""
    found = [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    if os.environ.get("CONDA_PREFIX"):
        prefix = Path(os.environ["CONDA_PREFIX"])
        found += [*sorted(prefix.glob("targets/*-linux")), prefix, prefix / "Library"]
    found += [Path(root) for root in _TOOLKITS]
    compiler = nvcc()
    if compiler is not None:
        found.append(compiler.resolve().parent.parent)
    return tuple(dict.fromkeys(found))


def wheels() -> tuple[Path, ...]:
    """The folders in which NVIDIA's wheels of this Python put their parts."""
    spec = importlib.util.find_spec("nvidia")
    return tuple(Path(place) for place in (spec.submodule_search_locations or ())) if spec is not None else ()


def nvcc() -> Path | None:
    """NVIDIA's offline compiler, or None."""
    return tool("nvcc")


def sanitizer(name: str = "compute-sanitizer") -> Path | None:
    """compute-sanitizer: of the toolkit, or of its wheel (nvidia-cuda-sanitizer-api)."""
    spec = importlib.util.find_spec("nvidia")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    wheels = (
        found for place in places for found in sorted(place.glob("cu[0-9]*/compute-sanitizer/compute-sanitizer*"))
    )
    return tool(name) or next(filter(Path.is_file, wheels), None)


def tool(name: str) -> Path | None:
    """A program of the CUDA toolkit: on the path, or in an installation that the path forgot."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    roots = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), *_TOOLKITS]
    folders = os.pathsep.join(str(Path(root) / "bin") for root in roots if root)
    found = shutil.which(name, path=folders)
    return Path(found) if found is not None else None
