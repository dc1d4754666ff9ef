"""What slices are compiled with."""

import pytest

from agent.execution.compiler import pool


@pytest.fixture(scope="session")
def nvrtc() -> None:
    identity = pool.identity()
    if identity.missing:
        pytest.skip(f"no NVRTC here: {identity.missing}")
