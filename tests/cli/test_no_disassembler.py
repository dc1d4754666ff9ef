"""``profile --sass`` and ``doctor`` on a machine without nvdisasm."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.execution import sass
from cuda_lsp.cli import doctor, profile
from cuda_lsp.terminal.exits import CommandError, Exit
from tests.cli.running import ROW_SUMS


@pytest.fixture(autouse=True)
def none_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sass, doctor):
        monkeypatch.setattr(module, "disassembler", lambda: None)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "k.cu"
    path.write_text(ROW_SUMS)
    return str(path)


def test_the_ptx_is_shown_all_the_same(source: str) -> None:
    done = CliRunner().invoke(profile.command, [source, "--ptx", "--sass"], standalone_mode=False)
    assert done.exception is None
    assert "ld.global" in done.stdout
    assert "machine code needs nvdisasm" in done.stderr


def test_alone_it_is_an_error(source: str) -> None:
    done = CliRunner().invoke(profile.command, [source, "--sass"], standalone_mode=False)
    assert isinstance(done.exception, CommandError)
    assert done.exception.code is Exit.MACHINE


def test_doctor_names_it() -> None:
    done = CliRunner().invoke(doctor.command, ["--json"], standalone_mode=False)
    [named] = [one for one in json.loads(done.stdout)["capabilities"] if one["name"] == "nvdisasm"]
    assert not named["present"] and "nvidia-cuda-nvdisasm" in named["mend"]
