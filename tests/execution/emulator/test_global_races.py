"""Races on global memory: planted ones at the right lines, their race-free twins and the harmless classes by name."""

import numpy as np
import pytest

from agent.execution.device import Answer, Fault
from agent.execution.emulator.races import clocks as race_clocks
from agent.execution.emulator.races.clocks import Clocks
from agent.execution.emulator.races.global_memory import KEPT
from agent.execution.emulator.races.order import Clock, Order
from tests.execution.emulator.building import build, launch, run
from tests.execution.emulator.global_races import CASES, EQUAL, OUTDATED, POLLED, RACE, TESTED, UNFENCED, Case
from tests.execution.emulator.store_races import RELAXED, STORES, VOLATILE, lock

CHECKS = frozenset({"races", "barriers"})
HEAD = 'extern "C" __global__ void k(int* a, int* b, unsigned* n) { int t = threadIdx.x, g = blockIdx.x, '
HEAD += "i = g * blockDim.x + t;\n"


def execute(case: Case, *options: str) -> Answer:
    numbers = np.arange(4096, dtype=np.int32)
    buffers = {"a": numbers, "b": numbers.copy(), "n": np.zeros(256, np.uint32)}
    built = build(HEAD + case.body + "\n}", *options)
    return run(built, launch("k", case.blocks, case.threads, *buffers), buffers, checks=CHECKS)[0]


def class_of(fault: Fault) -> str:
    if fault.kind == "global-memory race":
        return EQUAL if fault.benign else RACE
    assert fault.benign
    kinds = {
        "race on a tested value": TESTED,
        "race of a test with an atomic": OUTDATED,
        "race on a polled flag": POLLED,
        "race behind a lock without a fence": UNFENCED,
    }
    return kinds[fault.kind]


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("case", (*CASES, *STORES), ids=lambda case: case.name.replace(" ", "-"))
def test_verdict(case: Case, options: tuple[str, ...]) -> None:
    answer = execute(case, *options)
    found = {class_of(fault) for fault in answer.faults}
    if case.found == {RACE}:
        assert RACE in found, (case.why, answer)
    else:
        assert found == case.found, (case.why, answer.faults)
    assert answer.status == ("fault" if RACE in case.found else "ok"), answer
    if case.lines:
        first = next(fault for fault in answer.faults if class_of(fault) == RACE)
        assert first.other is not None
        assert tuple(sorted((first.where.line, first.other.line))) == case.lines


def test_a_report_names_both_threads_and_the_element() -> None:
    """Thread 63 of block 0 reads the element that thread 0 of block 1 writes, the only pair in different blocks."""
    body = "if (i == 63) b[0] = a[i + 1];\nif (i == 64) a[i] = 1;"
    (fault,) = execute(Case("pair", body, "")).faults
    assert fault.other is not None
    parties = {(one.block[0], one.thread[0], one.line) for one in (fault.where, fault.other)}
    assert parties == {(0, 63, 2), (1, 0, 3)}
    assert "a[64]" in fault.message and fault.count == 1 and not fault.benign


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        (
            "n[0] = 0u;",
            "; the plain store of line 7 is weak beside an atomic: ",
        ),
        (VOLATILE, ""),
        (RELAXED, ""),
    ],
)
def test_a_lock_that_is_opened_by_a_weak_store_is_told_from_a_strong_one(opened: str, said: str) -> None:
    """A fence stands before the store each time; only the plain one races on the lock's own word."""
    faults = [fault for fault in execute(Case("lock", lock(opened), "", blocks=4)).faults if not fault.benign]
    assert bool(faults) is bool(said)
    assert all("'n'" in fault.message or "n[0]" in fault.message for fault in faults)
    assert all(said in fault.message for fault in faults)


def test_two_plain_accesses_are_both_weak() -> None:
    (fault,) = execute(Case("pair", "if (i == 63) b[0] = a[i + 1];\nif (i == 64) a[i] = 1;", "")).faults
    assert fault.message.endswith("with no order between")


def test_parties_in_different_batches_are_told() -> None:
    """200 blocks of 1024 threads run in many batches; block 0 and block 199 write one element."""
    body = "if (i == 5) a[7] = 1;\nif (i == 199 * 1024 + 6) a[7] = 2;"
    (fault,) = execute(Case("far", body, "", blocks=200, threads=1024)).faults
    assert fault.other is not None
    assert {(one.block[0], one.thread[0]) for one in (fault.where, fault.other)} == {(0, 5), (199, 6)}


def test_a_tile_of_many_blocks_waits_across_batches() -> None:
    """Each block waits for the one before, over several batches: in order, and nothing to report."""
    found = next(case for case in CASES if case.name == "look-back")
    answer = execute(Case("long", found.body, "", blocks=100, threads=256))
    assert (answer.status, answer.faults) == ("ok", ())


def test_what_is_acquired_is_kept_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads 0, 32 and 64 raise a flag each; 128 sees the first and the third, 160 the second and the third."""
    monkeypatch.setattr(race_clocks, "MOST_BYTES", 0)
    clock, never = Clock(), np.zeros(2, np.uint64)
    clocks, order = Clocks(clock, 8, 32), Order(8, 32, clock)
    for k in range(3):
        clocks.fence(np.array([32 * k]), order, 0)
        clocks.exchange(np.array([32 * k]), np.array([100 + k]))
    readers = np.array([128, 160])
    for flags in ([100, 101], [102, 102]):
        clocks.observe(readers, np.array(flags), never, False)
    clocks.fence(readers, order, 0)
    for raisers, seen in (([0, 32], True), ([64, 64], True), ([32, 0], False)):
        assert clocks.before(readers, np.array(raisers), np.ones(2, np.uint64)).tolist() == [seen, seen]


def test_launches_are_ordered() -> None:
    body = 'extern "C" __global__ void k(int* a) { a[blockIdx.x * 64 + threadIdx.x] = threadIdx.x; }\n'
    body += 'extern "C" __global__ void m(int* a, int* b) { int i = blockIdx.x * 64 + threadIdx.x; b[i] = a[127 - i]; }'
    buffers = {"a": np.ones(128, np.int32), "b": np.ones(128, np.int32)}
    steps = [launch("k", 2, 64, "a"), launch("m", 2, 64, "a", "b"), launch("k", 2, 64, "a")]
    assert run(build(body), steps, buffers, checks=CHECKS)[0].faults == ()


WAYS = {
    "a variable of the module": ("__device__ int d[128];", "int* b", "d[i] = i; b[i] = d[127 - i];"),
    "a pointer through a call": (
        "__device__ __noinline__ void put(int* d, int i, int v) { d[i] = v; }",
        "int* d, int* b",
        "put(d, i, i + 1); b[i] = d[127 - i];",
    ),
    "a pointer chosen by a value": (
        "",
        "int* d, int* b",
        "int* p = b[i] > 5000 ? b : d; p[i] = i + 1; b[i] = d[127 - i];",
    ),
    "a pointer kept in memory": (
        "__shared__ int* kept;",
        "int* d, int* b",
        "if (threadIdx.x == 0) kept = d; __syncthreads(); kept[i] = i + 1; b[i] = d[127 - i];",
    ),
}


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("way", WAYS)
def test_a_buffer_is_watched_however_it_is_reached(way: str, options: tuple[str, ...]) -> None:
    """Each reads before the other block writes, so that only what is noted of reads tells."""
    before, parameters, body = WAYS[way]
    first, second = body.rsplit("; ", 1)
    late = f"if (blockIdx.x == 0) {{ {second} }} else {{ {first}; }}"
    shared = before if before.startswith("__shared__") else ""
    text = f"{before if not shared else ''}\n"
    text += f'extern "C" __global__ void k({parameters}) {{ {shared} int i = blockIdx.x * 64 + threadIdx.x; {late} }}'
    buffers = {"d": np.zeros(128, np.int32), "b": np.zeros(128, np.int32)}
    arguments = ("d", "b") if "int* d, int* b" in parameters else ("b",)
    built = build(text, *options)
    answer = run(built, launch("k", 2, 64, *arguments), buffers, checks=CHECKS)[0]
    assert any(fault.kind == "global-memory race" and not fault.benign for fault in answer.faults), answer


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("a[i ^ 1] = 2 * b[i];\n__syncthreads();\nb[i] = __ldg(a + i);", True),
        ("atomicAdd(a + i, 1);\nb[i] = __ldg(a + i);", True),
        ("a[i] = 2 * __ldg(a + i);", False),
        ("a[i] = 2 * b[i];\nb[i] = a[i] + __ldg((int*)n + (i & 7));", False),
    ],
)
def test_what_was_written_is_not_loaded_as_read_only(body: str, kept: bool) -> None:
    found = [fault for fault in execute(Case("kept", body, "")).faults if fault.kind == KEPT]
    assert bool(found) == kept
    assert all(fault.benign and fault.where.line == body.count("\n") + 2 for fault in found)
