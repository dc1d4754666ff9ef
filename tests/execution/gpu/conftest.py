import pytest

from agent.execution.gpu import Gpu


@pytest.fixture(scope="session")
def gpu(card: Gpu) -> Gpu:
    """The card: here the word is needed for others, which are made of ordinary memory."""
    return card
