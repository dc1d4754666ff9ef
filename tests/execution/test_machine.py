"""What ``doctor`` says, on a machine that has things and on one that lacks them."""

from importlib import metadata
from pathlib import Path

import pytest

from agent.execution import gpu, machine, toolkit
from agent.execution.children.messages import CompilerIs
from agent.execution.compiler import pool


def by_name() -> dict[str, machine.Capability]:
    return {item.name: item for item in machine.capabilities()}


def test_what_is_missing_comes_with_what_mends_it() -> None:
    found = by_name()
    assert found["python"].present and found["tree-sitter"].present
    for item in found.values():
        assert item.detail
        assert item.present == (item.mend == "")


def test_an_empty_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(pool, "identity", lambda: CompilerIs((0, 0), (), "ModuleNotFoundError: No module named 'cupy'"))
    monkeypatch.setattr(toolkit, "include_folders", lambda major=None: ())
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: "no NVIDIA driver on this machine")
    monkeypatch.setenv("PATH", "")
    found = by_name()
    assert found["CuPy"].mend == found["NVRTC"].mend == "pip install 'cuda-lsp[cuda13]'"
    assert "emulator" in found["GPU"].detail and not found["GPU"].present
    assert found["tree-sitter"].mend.startswith("pip install")
    assert not found["clang-format"].present


@pytest.mark.parametrize(
    ("held", "unheld", "present", "words"),
    [
        (("seccomp", "Landlock"), (), True, "seccomp and Landlock: compiler and runners have no network"),
        (("seccomp",), ("Landlock: Function not implemented",), True, "; not Landlock: Function not implemented"),
        ((), ("CUDA_LSP_KEEP_RIGHTS is set",), False, "keep yours: CUDA_LSP_KEEP_RIGHTS is set"),
        ((), ("seccomp: Invalid argument", "Landlock: off"), False, "keep yours: seccomp: Invalid argument; Landlock"),
    ],
)
def test_which_rights_the_children_gave_up(
    held: tuple[str, ...], unheld: tuple[str, ...], present: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "identity", lambda: CompilerIs((13, 0), (90,), "", held, unheld))
    found = machine._rights()
    assert (found.present, words in found.detail, bool(found.mend)) == (present, True, not present)


def test_two_cupys_are_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"cupy-cuda13x": "14.2.0", "cupy-cuda12x": "13.6.0"}
    monkeypatch.setattr(machine, "_version", versions.get)
    found = machine._cupy()
    assert not found.present and found.mend == "pip uninstall cupy-cuda12x"


def test_a_tool_says_its_version(tmp_path: Path) -> None:
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho NVIDIA Nsight\necho Version 2026.1\n")
    program.chmod(0o755)
    assert machine._tool("ncu", "", "", lambda name: program).detail == "Version 2026.1"
    broken = tmp_path / "broken"
    broken.write_text("no program")
    assert machine._tool("broken", "", "", lambda name: broken).detail == str(broken)
