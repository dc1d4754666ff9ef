"""A machine without a card, made to look like one with: a stand-in for the driver and for CUPTI (``standin.cpp``).

What these tests show is the recorder's own logic and what is made of its logs. That real cards, drivers and runtimes do
what the stand-in does is shown by ``tests/gpu/test_capture.py`` alone.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.inference.capture.cupti import NEWEST, Cupti, find_cupti
from agent.inference.capture.errors import CaptureError

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def compiler() -> str:
    found = shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("needs a C++ compiler")
    return found


@pytest.fixture(scope="session")
def headers() -> Cupti:
    """CUPTI's and CUDA's headers, of whatever version."""
    try:
        return find_cupti(NEWEST)
    except CaptureError:
        pytest.skip("needs the headers of CUDA and CUPTI: pip install nvidia-cuda-cupti nvidia-cuda-runtime")


def build(compiler: str, cupti: Cupti, *arguments: str) -> None:
    """Warnings are errors; what the headers themselves do does not count."""
    includes = [part for path in cupti.includes for part in ("-isystem", str(path))]
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    done = subprocess.run([compiler, *strict, *includes, *arguments], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def machine(compiler: str, headers: Cupti, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine with the stand-in, and in ``APP`` a program for it."""
    place = tmp_path_factory.mktemp("machine")
    root = place / "toolkit"
    (root / "lib64").mkdir(parents=True)
    driver = place / "libcuda.so.1"
    build(compiler, headers, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "standin.cpp", "-o", str(driver), "-ldl")
    build(compiler, headers, "app.cpp", "-o", str(place / "app"), str(driver), f"-Wl,-rpath,{place}", "-lpthread")
    # the stand-in is its own CUPTI, found where a toolkit has it, with the headers that it was built with
    (root / "lib64" / "libcupti.so.99").symlink_to(driver)
    (root / "include").mkdir()
    for folder in reversed(headers.includes):
        for header in folder.glob("*.h"):
            target = root / "include" / header.name
            target.unlink(missing_ok=True)
            target.symlink_to(header)
    (root / "include" / "crt").symlink_to(next(f / "crt" for f in headers.includes if (f / "crt").is_dir()))
    return {
        **{name: value for name, value in os.environ.items() if name not in ("CUDA_HOME", "CONDA_PREFIX")},
        "CUDA_PATH": str(root),
        "LD_LIBRARY_PATH": str(place),
        "XDG_CACHE_HOME": str(place / "cache"),
        "APP": str(place / "app"),
    }
