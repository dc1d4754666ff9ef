"""Crashes of the real compiler child, and what follows."""

import os
import signal
import sys
import threading
import time

import pytest

from agent.execution.compiler import Build, CompileFailure, Options, compile_slice, pool
from agent.execution.process import Child
from tests.execution.slices import HandSlice

pytestmark = [
    pytest.mark.usefixtures("nvrtc"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]

EASY = HandSlice("__global__ void k(int* x) { *x = 1; }", ("k",))
SLOW = HandSlice(
    """template <int N, int M> struct F { static const int v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v; };
template <int M> struct F<0, M> { static const int v = 1; };
__global__ void k(int* x) { *x = F<30, 0>::v; }
""",
    ("k",),
)


def children() -> list[Child]:
    return list(pool._all)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_child_that_was_killed_or_stopped_while_idle_is_replaced(blow: signal.Signals) -> None:
    fresh = iter(time.time_ns() + number for number in range(2))  # nothing of these is in any cache
    assert isinstance(compile_slice(EASY, Options(flags=(f"-DA={next(fresh)}",))), Build)
    assert children()
    for child in children():
        os.kill(child.pid, blow)
        while child.usable:
            time.sleep(0.01)
    assert isinstance(compile_slice(EASY, Options(flags=(f"-DA={next(fresh)}",))), Build)


def test_a_source_that_kills_two_children_crashes_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    pool.shutdown()
    stop = threading.Event()

    def assassin() -> None:
        while not stop.is_set():
            for child in children():
                if child.alive:
                    os.kill(child.pid, signal.SIGSEGV)
            time.sleep(0.3)

    thread = threading.Thread(target=assassin)
    thread.start()
    try:
        result = compile_slice(SLOW, Options(), seconds=30)
    finally:
        stop.set()
        thread.join()
    assert isinstance(result, CompileFailure)
    assert result.kind == "crashed"
    assert "NVRTC crashed on this source" in result.message and "SIGSEGV" in result.message
    assert isinstance(compile_slice(EASY, Options()), Build)


def test_many_threads_share_two_children() -> None:
    results: list[object] = []

    def work(number: int) -> None:
        results.append(compile_slice(EASY, Options(flags=(f"-DN={number}",))))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(result, Build) for result in results) and len(results) == 8
    assert len([child for child in children() if child.alive]) <= pool.SIZE
