import pytest

from agent.execution.compiler import pool


@pytest.fixture(scope="session")
def nvrtc() -> None:
    """For tests that need the real compiler."""
    identity = pool.identity()
    if identity.missing:
        pytest.skip(f"no NVRTC here: {identity.missing}")
