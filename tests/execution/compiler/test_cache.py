"""The build cache: kept, shared, bounded, and never in the way."""

import os
import threading
from pathlib import Path

import pytest
from attrs import evolve

from agent.execution import kept
from agent.execution.compiler import Build, CompileFailure, Options, cache, compile_slice, pool
from agent.execution.compiler.result import Diagnostic, Resources
from tests.execution.slices import HandSlice

BUILD = Build(
    "ptx", b"\0cubin\xff", {"k<1>": "_k"}, {"k<1>": Resources(1, 2, 3, 4, 5, 6)}, {"v": "v"}, "sm_90", "NVRTC 13.5",
    (Diagnostic("warning", "a.cu", 3, "hm"),), "key",
)  # fmt: skip


def file(key: str) -> Path:
    return cache.folder() / f"{key}.build"


@pytest.mark.parametrize("result", [BUILD, CompileFailure("source", "line 1: no", BUILD.diagnostics)])
def test_what_is_put_is_got_from_memory_and_from_disk(result: cache.Result) -> None:
    assert cache.get("a") is None
    cache.put("a", result)
    assert cache.get("a") is result
    cache.forget()
    assert cache.get("a") == result


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_file_is_forgotten(damage: bytes | None) -> None:
    cache.put("a", BUILD)
    data = file("a").read_bytes()
    file("a").write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if damage is None else damage)
    cache.forget()
    assert cache.get("a") is None
    assert not file("a").exists()
    cache.put("a", BUILD)
    cache.forget()
    assert cache.get("a") == BUILD


def test_a_full_disk_or_a_missing_home_costs_speed_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    cache.put("a", BUILD)
    assert cache.get("a") is BUILD

    def full(handle: int, mode: str) -> object:
        os.close(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    monkeypatch.setattr(os, "fdopen", full)
    cache.put("b", BUILD)
    assert cache.get("b") is BUILD
    assert list(cache.folder().iterdir()) == []


def test_the_disk_is_bounded_and_the_oldest_goes_first(tmp_path: Path) -> None:
    for number in range(10):
        place = tmp_path / f"{number}.build"
        place.write_bytes(bytes(1000))
        os.utime(place, (number, number))
    kept.prune(tmp_path, 3500)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["7.build", "8.build", "9.build"]


def test_memory_is_bounded() -> None:
    for number in range(cache.IN_MEMORY + 10):
        cache._remember(str(number), BUILD)
    assert len(cache._recent) == cache.IN_MEMORY
    assert "0" not in cache._recent and str(cache.IN_MEMORY + 9) in cache._recent


def test_many_writers_of_one_file() -> None:
    def write(number: int) -> None:
        for _ in range(20):
            cache._write("a", evolve(BUILD, ptx=str(number) * 1000))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        result = cache._read("a")
        assert result is None or (isinstance(result, Build) and len(set(result.ptx)) == 1)
    for thread in threads:
        thread.join()
    assert cache._read("a") is not None
    assert [place.suffix for place in cache.folder().iterdir()] == [".build"]


@pytest.mark.usefixtures("nvrtc")
def test_a_second_compilation_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    part = HandSlice("__global__ void k(int* x) { *x = 1; }", ("k",))
    first = compile_slice(part, Options())
    cache.forget()
    monkeypatch.setattr(pool, "compile_program", None)
    assert compile_slice(part, Options()) == first


@pytest.mark.usefixtures("nvrtc")
def test_everything_that_matters_makes_another_key() -> None:
    part = HandSlice("__global__ void k(float* x) { *x = x[1] * x[2] + x[3]; }", ("k",))
    keys = set()
    for options in (
        Options(), Options(arch="sm_80"), Options(fmad=False), Options(optimised=False), Options(flags=("-DA",)),
        Options(flags=("-use_fast_math",)),
    ):  # fmt: skip
        result = compile_slice(part, options)
        assert isinstance(result, Build)
        keys.add(result.key)
    other = compile_slice(evolve(part, path="/elsewhere/kernel.cu"), Options())
    assert isinstance(other, Build)
    keys.add(other.key)
    assert len(keys) == 7
