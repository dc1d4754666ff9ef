"""The compiler's children end with the tests."""

from collections.abc import Iterator

import pytest

from agent.execution.compiler import shutdown


@pytest.fixture(scope="session", autouse=True)
def no_children_left() -> Iterator[None]:
    yield
    shutdown()
