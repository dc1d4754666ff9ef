"""How counters are asked for and what a profiler says of them is read, without a card and without a profiler."""

import sys
from pathlib import Path

import pytest
from attrs import evolve

from agent.execution.children import runner
from agent.workload.binding import BoundLaunch
from tests.benchmarks import counters
from tests.benchmarks.counters import METRICS, Figures, Row, aligned, command, counted, figures, first, fixture, table
from tests.gpu import packs
from tests.gpu.replayer import replayed


def said(*launches: tuple[float, ...]) -> str:
    """As ncu writes it, with other lines around. Values of a launch in the order of METRICS."""
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    lines = ["==PROF== Connected to process 77 (/usr/bin/python3.12)", "fixtures/argmax.cu ran", head]
    for number, values in enumerate(launches):
        for name, value in zip(METRICS, values, strict=True):
            unit = "sector" if "sectors" in name else ""
            lines.append(f'"{number}","77","python3","127.0.0.1","{K}","{name}","{unit}","{value:,}"')
        lines.append(f'"{number}","77","python3","127.0.0.1","k(const float *, int)","sm__cycles.max","cycle","3"')
    return "\n".join((*lines, "==PROF== Disconnected from process 77")) + "\n"


K = "k(const float *, int)"
TWO = said((4096, 1024, 32768, 1024, 0, 0, 36864), (0, 0, 256, 64, 1500, 500, 2.5))


def test_what_ncu_says_is_read_launch_by_launch() -> None:
    seen = figures(TWO.splitlines())
    assert seen == [(K, Figures(4.0, 32.0, 0.0, 36864.0)), (K, Figures(0.0, 4.0, 2000.0, 2.5))]
    assert figures(["==ERROR== no kernels were profiled"]) == []
    unknown = TWO.replace('"4,096"', '"n/a"')
    assert figures(unknown.splitlines())[0][1].load == 0.0


def test_launches_that_the_profiler_did_not_come_to_are_left_open() -> None:
    one, two = Figures(1.0, 1.0, 0.0, 1.0), Figures(2.0, 2.0, 0.0, 2.0)
    seen = [("memset", two), ("_Z3addPKf", one), ("void scale<float>(float *)", two)]
    assert aligned(seen, ["add", "scale<float>"]) == [one, two]
    assert aligned(seen, ["add", "gone", "ours::scale"]) == [one, None, two]
    assert aligned(seen[:2], ["add", "scale<float>"]) == [one, None]


def test_the_table_tells_equal_from_not_and_gives_the_median() -> None:
    one = Figures(4.0, 32.0, 0.0, 1000.0)
    rows = [
        Row("same", "k", one, one),
        Row("l2 alone", "k", evolve(one, l2=1200.0), one),
        Row("loads", "k", evolve(one, load=4.1), one),
        Row("several", "k", one, one),
        Row("several", "k", evolve(one, shared=64.0), evolve(one, shared=96.0)),
        Row("unseen", "k", one, None),
    ]
    text = "\n".join(table(rows))
    assert "equal for 2 of 4 kernels" in text
    assert "median 0.0% apart, 4 of 5 launches within 15%" in text and "+20%" in text
    assert "4.1 / 4 !" in text and "64 / 96 !" in text and "1000 / -" in text
    assert "saw none" in "\n".join(table(rows[-1:]))


def test_what_is_counted_here_is_what_a_transpose_does() -> None:
    """Each warp reads 128 bytes in a row, 4 sectors, and writes 32 columns of a row each, 32 sectors. Nothing is read
    twice; of 1024 elements that a block stores to 128 sectors, half of what comes again is put together before."""
    found = fixture("transpose.cu", "transpose")
    (row,) = counted(found)
    elements = found.sizes["rows"] * found.sizes["cols"]
    assert (row.mine.load, row.mine.store, row.mine.shared) == (4.0, 32.0, 0.0)
    assert row.mine.l2 == elements / 8 + elements * (128 + (1024 - 128) / 2) / 1024


def test_only_the_first_launches_of_a_long_plan_are_looked_at() -> None:
    heat = fixture("heat.cu", "heat_step")
    assert len(heat.steps) > counters.LAUNCHES == len(first(heat.steps))
    assert len(list(counted(evolve(heat, steps=first(heat.steps))))) == counters.LAUNCHES


class Card:
    """A driver and a runtime that only remember which launches were made, on memory of their own."""

    memcpyHostToDevice = 1
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    def __init__(self) -> None:
        self.log: list[str] = []
        self.copied: list[int] = []

    def launchKernel(self, function: int, *shape: int) -> None:
        self.log.append(f"{function} {shape[:6]}")

    def memcpy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        self.copied.append(nbytes)

    def malloc(self, nbytes: int) -> int:
        return 256

    def moduleLoadData(self, cubin: bytes) -> int:
        return 3

    def moduleGetFunction(self, module: int, name: str) -> int:
        return 7

    def nothing(self, *values: object) -> None: ...

    setDevice = free = memset = deviceSynchronize = moduleUnload = funcSetAttribute = nothing


def test_the_process_for_the_profiler_makes_each_launch_once(tmp_path: Path) -> None:
    scan = fixture("scan.cu", "scan_step")
    packs.write(scan, tmp_path / "scan.pack")
    card = Card()
    again = packs.read(tmp_path / "scan.pack")
    assert again == scan
    assert replayed(card, card, runner.Memory(), again.request()) == ""
    launches = [step for step in scan.steps if isinstance(step, BoundLaunch)]
    assert len(card.log) == len(launches) and card.log[0].startswith(f"7 ({launches[0].grid[0]}, ")
    assert sum(card.copied) == sum(one.nbytes for one in scan.buffers if one.before)


@pytest.mark.skipif(sys.platform == "win32", reason="a script of the shell")
def test_the_profiler_is_asked_for_these_metrics_and_its_refusal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_LSP_SHARDS", str(tmp_path))
    (tmp_path / "said").write_text(TWO)

    def ncu(script: str) -> Path:
        (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ncu").chmod(0o755)
        return tmp_path / "ncu"

    assert counters._asked(ncu(f"cat '{tmp_path / 'said'}'"), []) == figures(TWO.splitlines())
    assert (tmp_path / "counters.csv").read_text() == TWO
    assert "be root" in str(counters._asked(ncu("echo ERR_NVGPUCTRPERM; exit 1"), []))
    assert "exit code 4: no such metric" in str(counters._asked(ncu("echo no such metric >&2; exit 4"), []))
    asked = command(Path("/bin/ncu"), [Path("a"), Path("b")])
    assert asked[asked.index("--metrics") + 1].split(",") == list(METRICS) and asked[-2:] == ["a", "b"]


def test_without_a_card_it_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "open_gpu", lambda: None)
    counters.main()
    assert "counters: no card (" in capsys.readouterr().out
