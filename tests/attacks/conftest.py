"""All of this folder runs in the emulator; nvcc, where there is one, has tests of its own and takes seconds a file."""

import pytest

from agent.evaluation.gates import compile as gate
from agent.execution.compiler.result import CompileFailure, Options
from agent.source.document import Document


@pytest.fixture(autouse=True)
def _without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(document: Document, options: Options, **more: object) -> CompileFailure:
        return CompileFailure("unavailable", "not asked here")

    monkeypatch.setattr(gate, "check_file", absent)
