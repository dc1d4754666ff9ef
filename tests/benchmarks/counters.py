"""Our counters against Nsight Compute's: sectors a request, shared wavefronts, and what crosses from L1 to L2.

``python -m tests.benchmarks counters`` where there is a card and ncu. The fixtures at middling sizes, and every pack in
the folder ``CUDA_LSP_PACKS`` (see ``agreement``; ``CUDA_LSP_COUNTERS_PACKS`` of them, 20, spread over the
repositories): each launch is run whole in the emulator with counters, and once under ncu, on the same contents, from
the same machine code. Metrics:

- loads, stores: ``l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum`` over ``l1tex__t_requests_...``, and ``op_st``; ours
  are the sectors of 32 bytes that a warp-wide instruction touches (``LineCounters``)
- shared wavefronts: ``l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum`` and ``_op_st.sum`` together; ours are
  passes (those of atomics, which these metrics leave out, not counted)
- L2: ``lts__t_sectors_srcunit_tex.sum``; ours are sectors that cross by the cache model (``evaluation/caches.py``)

Wanted: the first two equal for 27 of 30 kernels, the last within 15 % at the median. What is not equal is listed; where
``CUDA_LSP_SHARDS`` names a folder, what ncu said and the machine code of those kernels is left there.
"""

import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.estimates import traffic
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bases, bound_at, declared
from agent.execution.compiler import Options, build
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, InstructionCounters, LaunchCounters
from agent.execution.emulator import Emulator
from agent.execution.gpu import open_gpu, why_no_gpu
from agent.execution.process import kill
from agent.execution.sass import NoDisassembly, by_line
from agent.execution.targets import find_target
from agent.execution.toolkit import tool
from agent.workload.binding import BoundLaunch, BoundStep
from agent.workload.generators import families
from tests.conftest import ROOT
from tests.fixtures.cases import CASES
from tests.fixtures.running import opened
from tests.gpu import packs
from tests.gpu.packs import SUFFIX, Pack

SEED = 0xC0_11EC7
MOST = 40_000_000
"""Thread-instructions of one launch in the emulator, about: sizes double as long as they stay below."""

LAUNCHES = 4
"""Of each program at most."""

EQUAL = 1e-3
L2_WANTED = 0.15
LIMIT = 420.0
NEAR = 4
"""Launches that are looked through for the next one of ours."""

_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
METRICS = (
    *(_GLOBAL.format(what, kind) for kind in ("ld", "st") for what in ("sectors", "requests")),
    *(_SHARED.format(kind) for kind in ("ld", "st")),
    "lts__t_sectors_srcunit_tex.sum",
)
COLUMNS = ("load", "store", "shared", "l2")


@frozen
class Figures:
    """Of one launch: sectors a request of loads and of stores (0 where there are none), wavefronts of shared memory,
    sectors that cross between L1 and L2."""

    load: float
    store: float
    shared: float
    l2: float


@frozen
class Row:
    """``theirs`` None: the profiler saw nothing of this launch."""

    name: str
    kernel: str
    mine: Figures
    theirs: Figures | None
    pack: Pack | None = field(default=None, repr=False)

    @property
    def equal(self) -> bool:
        """Of what is counted, not modelled."""
        assert self.theirs is not None
        return all(_same(getattr(self.mine, one), getattr(self.theirs, one)) for one in COLUMNS[:3])

    @property
    def l2(self) -> float:
        """How far the model is off, relatively."""
        assert self.theirs is not None
        return self.mine.l2 / self.theirs.l2 - 1 if self.theirs.l2 else 0.0


def main() -> None:
    card, ncu = open_gpu(), tool("ncu")
    if card is None or ncu is None:
        print(f"counters: {f'no card ({why_no_gpu()})' if card is None else 'no ncu (part of the CUDA toolkit)'}")
        return
    name = card.name
    card.close()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        files = prepared(Path(folder))
        rows = [row for path in files for row in counted(packs.read(path))]
        took = time.perf_counter() - begun
        print(f"{len(files)} programs, {len(rows)} launches counted here ({took:.0f} s)", flush=True)
        said = _asked(ncu, files)
    if isinstance(said, str):
        print(f"  ncu could not tell: {said}")
        return
    names = [row.kernel for row in rows]
    rows = [evolve(row, theirs=theirs) for row, theirs in zip(rows, aligned(said, names), strict=True)]
    print(f"on {name} ({time.perf_counter() - begun:.0f} s)")
    print("\n".join(table(rows)))
    if shards := os.environ.get("CUDA_LSP_SHARDS"):
        leave_code([row for row in rows if row.theirs is not None and not row.equal], Path(shards))


# What is run --------------------------------------------------------------------------------------------------------


def prepared(folder: Path) -> list[Path]:
    """A file for each program: the fixtures', and those given."""
    given = os.environ.get("CUDA_LSP_PACKS", "")
    most = int(os.environ.get("CUDA_LSP_COUNTERS_PACKS", "20"))
    others = spread(sorted(Path(given).glob(f"*{SUFFIX}")), most) if given else []
    files: list[Path] = []
    for found in (*(fixture(case.file, case.kernel) for case in CASES), *map(packs.read, others)):
        files.append(folder / f"{len(files):03}{SUFFIX}")
        packs.write(evolve(found, steps=first(found.steps)), files[-1])
    return files


def first(steps: Sequence[BoundStep]) -> tuple[BoundStep, ...]:
    """Up to the last launch that is looked at."""
    launches = [at for at, step in enumerate(steps) if isinstance(step, BoundLaunch)]
    return tuple(steps[: launches[:LAUNCHES][-1] + 1])


def spread(paths: Sequence[Path], most: int) -> list[Path]:
    """At most so many, evenly from all over a list that is sorted by repository."""
    step = max(1.0, len(paths) / max(1, most))
    return [paths[int(k * step)] for k in range(min(most, len(paths)))]


def fixture(file: str, kernel: str) -> Pack:
    """A fixture at a size that the emulator runs whole in a second or so."""
    found, emulator = opened(file, kernel), Emulator()
    options = Options(arch="sm_90")
    built = build(found.program, options)
    assert isinstance(built, Build), built
    setting = Setting(device=emulator, target=find_target("H200"), options=options)
    sizes, top = next(iter(bases(found.workload, found.program))), declared(found.workload)
    while True:
        bound = bound_at(found.workload, found.program, sizes)
        before = runs.contents(bound, runs.case(sizes, families(found.workload)[0], SEED))
        answer = runs.run(setting, built, before)
        assert answer.status == "ok", (file, answer)
        larger = {name: min(top[name], 2 * value) for name, value in sizes.items()}
        growth = 2.0 ** sum(larger[name] > sizes[name] for name in sizes)
        if larger == sizes or answer.thread_instructions * growth > MOST:
            break
        sizes = larger
    kinds = {buffer.name: buffer.dtype for buffer in bound.buffers}
    stored = tuple(packs.stored(image, answer, kinds[image.name]) for image in runs.images(before, runs.PRIORS[0]))
    return Pack("fixtures", file, kernel, sizes, built, bound.steps, stored, answer.inexact, 1.0, 0)


def counted(pack: Pack) -> Iterator[Row]:
    """What the emulator counts of its first launches."""
    request = evolve(pack.request(), count=True, seconds=60.0)
    answer: Answer = Emulator().run(request)
    assert answer.status == "ok", (pack.file, answer.message)
    buffers = {image.name: image.nbytes for image in request.images}
    steps = [step for step in pack.steps if isinstance(step, BoundLaunch)]
    for step, one in zip(steps, answer.counters, strict=True):
        name = f"{pack.repository[:20]}/{pack.file.rsplit('/', 1)[-1][:16]}:{one.kernel[:20]}"
        yield Row(name, one.kernel, mine(pack.build, step, one, buffers), None, pack)


def mine(built: Build, step: BoundLaunch, one: LaunchCounters, buffers: Mapping[str, int]) -> Figures:
    loads = [part for part in one.instructions if part.kind == "load"]
    stores = [part for part in one.instructions if part.kind == "store"]
    work = traffic.load(one, one.blocks_run, buffers, built.resources[step.kernel], step.shared, find_target("H200"))
    passes = sum(part.counts.wavefronts for part in one.instructions if part.kind == "shared")
    return Figures(_ratio(loads), _ratio(stores), float(passes), work.moved.l2)


def _ratio(parts: Iterable[InstructionCounters]) -> float:
    found = list(parts)
    requests = sum(part.counts.requests for part in found)
    return sum(part.counts.sectors for part in found) / requests if requests else 0.0


# What ncu says ------------------------------------------------------------------------------------------------------


def command(ncu: Path, files: Iterable[Path]) -> list[str]:
    return [
        str(ncu), "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", ",".join(METRICS),
        sys.executable, "-m", "tests.gpu.replayer", *map(str, files),
    ]  # fmt: skip


Seen = tuple[str, Figures]
"""A launch's kernel, mangled or with its parameters, and what was read of it."""


def _asked(ncu: Path, files: list[Path]) -> list[Seen] | str:
    process = subprocess.Popen(
        command(ncu, files),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        kill(process)  # type: ignore[arg-type]
        return f"it did not end within {LIMIT:.0f} s"
    if os.environ.get("CUDA_LSP_SHARDS"):
        (Path(os.environ["CUDA_LSP_SHARDS"]) / "counters.csv").write_text(out + err, encoding="utf-8")
    if "ERR_NVGPUCTRPERM" in out + err:
        return "it may not read counters: be root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
    return figures(out.splitlines()) or f"it ended with exit code {process.returncode}: {(err or out).strip()[-500:]}"


def figures(lines: Iterable[str]) -> list[Seen]:
    """What ncu prints as CSV among other lines: a row for each launch and metric. In the order of launches."""
    told: dict[int, dict[str, float]] = {}
    names: dict[int, str] = {}
    for row in csv.DictReader([line for line in lines if line.startswith('"')]):
        if row["Metric Name"] in METRICS:
            text = row["Metric Value"].replace(",", "")
            names[int(row["ID"])] = row["Kernel Name"]
            told.setdefault(int(row["ID"]), {})[row["Metric Name"]] = float(text) if _number(text) else 0.0
    return [(names[number], _figures(told[number])) for number in sorted(told)]


def _number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _figures(told: Mapping[str, float]) -> Figures:
    def ratio(kind: str) -> float:
        requests = told.get(_GLOBAL.format("requests", kind), 0.0)
        return told.get(_GLOBAL.format("sectors", kind), 0.0) / requests if requests else 0.0

    shared = sum(told.get(_SHARED.format(kind), 0.0) for kind in ("ld", "st"))
    return Figures(ratio("ld"), ratio("st"), shared, told.get(METRICS[-1], 0.0))


def aligned(said: Sequence[Seen], kernels: Iterable[str]) -> list[Figures | None]:
    """One for each launch, None for those that the profiler did not come to. What it saw besides is passed over."""
    found: list[Figures | None] = []
    at = 0
    for kernel in kernels:
        bare = re.sub(r"<.*", "", kernel).rsplit("::", 1)[-1]
        place = next((k for k in range(at, min(at + NEAR, len(said))) if bare in said[k][0]), None)
        found.append(None if place is None else said[place][1])
        at = at if place is None else place + 1
    return found


# What is told -------------------------------------------------------------------------------------------------------


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= EQUAL * max(one, other, 1.0)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Ours and theirs of each launch, misses marked, then how many agree."""
    yield f"  {'launch':44}{'sectors a load':>18}{'sectors a store':>18}{'shared wavefronts':>24}{'L2 sectors':>24}"
    for row in rows:
        yield f"  {row.name:44}" + "".join(_cell(row, one) for one in COLUMNS)
    seen = [row for row in rows if row.theirs is not None]
    if not seen:
        yield "  ncu saw none of these launches"
        return
    names = dict.fromkeys(row.name for row in seen)
    programs = {name: all(row.equal for row in seen if row.name == name) for name in names}
    yield f"  sectors a request and shared wavefronts equal for {sum(programs.values())} of {len(programs)} kernels"
    apart = [abs(row.l2) for row in seen]
    within = f"{sum(one <= L2_WANTED for one in apart)} of {len(seen)} launches within {L2_WANTED:.0%}"
    yield f"  L2 sectors: median {statistics.median(apart):.1%} apart, {within}"


def _cell(row: Row, column: str) -> str:
    ours = getattr(row.mine, column)
    width, form = (18, ".4g") if column in ("load", "store") else (24, ".0f")
    if row.theirs is None:
        return f"{f'{ours:{form}} / -':>{width}}"
    its = getattr(row.theirs, column)
    off = f" {row.l2:+.0%}" if column == "l2" else "" if _same(ours, its) else " !"
    return f"{f'{ours:{form}} / {its:{form}}{off}':>{width}}"


def leave_code(rows: Iterable[Row], folder: Path) -> None:
    """PTX and machine code of each program that is not equal, for whoever explains it."""
    for pack in {row.pack.file: row.pack for row in rows if row.pack is not None}.values():
        try:
            lines = by_line(pack.build, [pack.kernel], pack.file)
            code = "\n".join(f"line {line}: {text}" for line, texts in sorted(lines.items()) for text in texts)
        except NoDisassembly as error:
            code = str(error)
        name = pack.file.replace("/", "_")
        (folder / f"{name}.txt").write_text(f"{pack.build.ptx}\n{code}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
