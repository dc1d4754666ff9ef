"""Headers and tools in the places where wheels, conda and toolkits put them."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

from agent.execution import toolkit


def header(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cuda_runtime.h").touch()
    return folder


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without CUDA, with an empty ``nvidia`` folder for wheels."""
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(toolkit, "_TOOLKITS", (str(tmp_path / "toolkit"),))
    spec = importlib.machinery.ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "nvidia")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return tmp_path


def test_nothing_anywhere(bare: Path) -> None:
    assert toolkit.include_folders() == ()
    assert toolkit.nvcc() is None


def test_cuda_13_wheels_have_one_folder(bare: Path) -> None:
    folder = header(bare / "nvidia" / "cu13" / "include")
    (folder / "cccl").mkdir()
    assert toolkit.include_folders(13) == (folder, folder / "cccl")


def test_cuda_12_wheels_have_one_folder_for_each_part(bare: Path) -> None:
    folder = header(bare / "nvidia" / "cuda_runtime" / "include")
    cccl = bare / "nvidia" / "cuda_cccl" / "include"
    cccl.mkdir(parents=True)
    header(bare / "nvidia" / "cu13" / "include")
    assert toolkit.include_folders(12) == (folder, cccl)
    assert toolkit.include_folders(13) == (bare / "nvidia" / "cu13" / "include",)


def test_a_toolkit_is_taken_where_there_is_no_wheel(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = header(bare / "toolkit" / "include")
    assert toolkit.include_folders(13) == (folder,)
    named = header(bare / "elsewhere" / "include")
    monkeypatch.setenv("CUDA_HOME", str(bare / "elsewhere"))
    assert toolkit.include_folders(13) == (named,)


def stating(folder: Path, version: int) -> Path:
    (folder / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {version}\n")
    return folder


def test_wheels_without_crt_give_way_to_a_whole_toolkit_of_their_version(bare: Path) -> None:
    wheel = stating(header(bare / "nvidia" / "cu13" / "include"), 13000)
    whole = stating(header(bare / "toolkit" / "include"), 13000)
    assert toolkit.include_folders(13) == (wheel,), "it lacks the same"
    (whole / "crt").mkdir()
    (whole / "crt" / "mma.h").touch()
    assert toolkit.include_folders(13) == (whole,)


def test_a_toolkit_of_another_version_does_not_mix_in(bare: Path) -> None:
    wheel = stating(header(bare / "nvidia" / "cu13" / "include"), 13000)
    other = stating(header(bare / "toolkit" / "include"), 12040)
    (other / "crt").mkdir()
    (other / "crt" / "mma.h").touch()
    assert toolkit.include_folders(13) == (wheel,)


def test_conda_keeps_headers_under_targets(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = header(bare / "conda" / "targets" / "x86_64-linux" / "include")
    monkeypatch.setenv("CONDA_PREFIX", str(bare / "conda"))
    assert toolkit.include_folders(13) == (folder,)


def test_nvcc_is_found_though_the_path_forgot_it(bare: Path) -> None:
    program = bare / "toolkit" / "bin" / "nvcc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert toolkit.nvcc() == program
