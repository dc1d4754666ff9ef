"""Which card figures are for, where nobody named one."""

import pytest
from attrs import evolve

from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from agent.workload.settings import Settings
from cuda_lsp.terminal.opening import open_target
from tests.execution.gpu.ailing import CARD


@pytest.mark.parametrize(
    ("name", "capability", "target"),
    [
        ("NVIDIA A100-SXM4-80GB", 80, "A100"),
        ("NVIDIA GeForce RTX 4070", 89, "RTX 4090"),
        ("NVIDIA GeForce GTX 1080", 61, "H200"),
    ],
    ids=["known", "one of its architecture", "no card like it"],
)
def test_a_card_that_nobody_published_figures_of_is_used_all_the_same(name: str, capability: int, target: str) -> None:
    gpu = Gpu(evolve(CARD, name=name, capability=capability))
    assert open_target(None, Settings(), gpu).name == target
    assert open_target("T4", Settings(), gpu).name == "T4"


def test_without_a_card_the_default() -> None:
    assert open_target(None, Settings(), Emulator()).name == "H200"
