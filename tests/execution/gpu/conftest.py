from collections.abc import Iterator

import pytest

from agent.execution.gpu import Gpu, open_gpu, why_no_gpu


@pytest.fixture(scope="session")
def gpu() -> Iterator[Gpu]:
    card = open_gpu()
    if card is None:
        pytest.skip(f"needs an NVIDIA GPU: {why_no_gpu()}")
    yield card
    card.close()
