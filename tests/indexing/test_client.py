"""The server's side: a process that dies, one that keeps dying, and what nobody waits for any more."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types

from cuda_lsp.indexing import client
from cuda_lsp.indexing.client import Indexer
from cuda_lsp.indexing.messages import SYMBOLS, Answer, Progress, Question
from cuda_lsp.session import Session, Snapshot
from tests.server.test_jobs import gone, soon

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

ALL = Question(SYMBOLS, "utf-8")


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scene: Callable[[Indexer, list[Progress]], Awaitable[None]],
        module: str = client.MODULE) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "MODULE", module)

    async def play() -> None:
        told: list[Progress] = []
        indexer = Indexer(told.append)
        try:
            await scene(indexer, told)
        finally:
            indexer.end()
        assert indexer.pid is None or soon(lambda: gone(indexer.pid)), "nothing is left behind"

    asyncio.run(play())


def write(folder: Path, **files: str) -> str:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.cu").write_text(text)
    return str(folder)


async def names(indexer: Indexer, *snapshots: Snapshot) -> list[str]:
    return sorted(item.name for item in (await indexer.ask(ALL, snapshots)).items)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(3000):
        if await holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


async def knows(indexer: Indexer, *expected: str) -> None:
    async def holds() -> bool:
        return await names(indexer) == list(expected)

    await until(holds)


def opened(text: str) -> Snapshot:
    snapshot = Session().open(types.TextDocumentItem("untitled:a", "cuda-cpp", 1, text))
    assert snapshot is not None
    return snapshot


def test_a_process_that_is_killed_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "w", a="__global__ void a() {}")
    text = opened("__global__ void b() {}")

    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        indexer.look([folder])
        await knows(indexer, "a")
        assert await names(indexer, text) == ["a", "b"]
        first = indexer.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await knows(indexer, "a")
        assert indexer.pid not in (None, first)
        assert await names(indexer, text) == ["a", "b"], "it is told anew what is open"

    run(tmp_path, monkeypatch, scene)


def test_a_file_that_ends_the_process_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(
        tmp_path / "w", a="__global__ void a() {}", b="__global__ void poison() {}", c="__global__ void c() {}"
    )

    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        indexer.look([folder])
        await knows(indexer, "a", "c")
        survivor = indexer.pid
        indexer.look([folder])
        write(tmp_path / "w", d="__global__ void d() {}")
        await knows(indexer, "a", "c", "d")
        assert indexer.pid == survivor

    run(tmp_path, monkeypatch, scene, "tests.indexing.fragile")


def test_a_text_that_ends_the_process_costs_its_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "w", a="__global__ void a() {}")
    text = opened("__global__ void poison() {}")

    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        indexer.look([folder])
        for _ in range(3):
            await knows(indexer, "a")
            assert await asyncio.wait_for(names(indexer, text), 60) == []
        await knows(indexer, "a")

    run(tmp_path, monkeypatch, scene, "tests.indexing.fragile")


def test_a_process_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        indexer.look([str(tmp_path)])
        for _ in range(2):
            assert await asyncio.wait_for(names(indexer), 60) == []

    run(tmp_path, monkeypatch, scene, "tests.indexing.no_such_module")


def test_what_is_cancelled_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        waiting = [indexer.ask(ALL, ()) for _ in range(5)]
        for one in waiting[1:]:
            one.cancel()
        assert await waiting[0] == Answer()
        assert await names(indexer) == []

    run(tmp_path, monkeypatch, scene)


def test_it_rests_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "w", a="__global__ void a() {}")

    async def scene(indexer: Indexer, told: list[Progress]) -> None:
        indexer.look([folder])
        await knows(indexer, "a")
        before = indexer.pid
        assert before is not None
        indexer.rest()

        async def rests() -> bool:
            return indexer.pid is None and gone(before)

        await until(rests)
        indexer.look([folder])
        await knows(indexer, "a")

    run(tmp_path, monkeypatch, scene)
