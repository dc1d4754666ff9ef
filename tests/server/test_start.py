"""What the server does without until its first answer."""

import sys

import pytest

from tests.server.wire import CLIENTS, SERVER, Wire

HEAVY = ("numpy", "optuna", "openai", "cupy", "torch", "agent.execution.compiler", "agent.evaluation.verdict")
"""Each takes longer to import than the answer may take, or is used by few."""


@pytest.mark.parametrize("client", CLIENTS)
def test_what_takes_long_to_import_is_not_imported_for_the_first_answer(client: str) -> None:
    with Wire(start=[sys.executable, "-X", "importtime", *SERVER[1:]]) as wire:
        wire.initialize(CLIENTS[client])
        wire.end()
        imported = {line.split("|")[-1].strip() for line in wire.errors.decode().splitlines() if "import time:" in line}
    assert "cuda_lsp.server" in imported
    assert not imported & set(HEAVY)
