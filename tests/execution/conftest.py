"""Every test here has a build cache of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.execution.compiler import cache, pool


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.forget()
    yield
    cache.forget()


@pytest.fixture(scope="session", autouse=True)
def no_children_left() -> Iterator[None]:
    yield
    pool.shutdown()
