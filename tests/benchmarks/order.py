"""Which of two programs is faster: the estimate against a card, over pairs that differ by 1.3x or more.

``python -m tests.benchmarks order``. The pairs are the fixtures, each with the first way to write every idea of the
catalogue that applies to it, at the declared sizes; and those of ``CUDA_LSP_ORDER``, a folder of ``.cu`` files with
directives and ``pairs.txt``, a line ``FILE KERNEL IDEA`` for each. With a card both are timed by the function that a
verdict asks (a screen's depth); without one, what was measured before counts, and of the folder's pairs only those are
looked at of which ``docs/measured.md`` has one line. Wanted: the faster one told right for at least 85 % of 40 pairs or
more.

``CUDA_LSP_ORDER_SECONDS`` (480) ends the timing; ``CUDA_LSP_SHARDS`` names a folder that keeps the figures.
"""

import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import asdict, evolve, frozen

from agent.evaluation.contracts.contract import Contract
from agent.evaluation.contracts.selftest import SelfTest
from agent.evaluation.estimates.counting import recipes
from agent.evaluation.estimates.estimate import Estimate, estimate
from agent.evaluation.measures.measurement import Measurement
from agent.evaluation.measures.measuring import SCREEN, measure
from agent.evaluation.oracles.truth import Bench
from agent.evaluation.prepare import Prepared
from agent.evaluation.ptx import traits
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Rule, bases, declared
from agent.evaluation.trial import Trial
from agent.execution.compiler import Options, build
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from agent.execution.targets import find_target
from agent.ideas import source
from agent.ideas.idea import Scope
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.program import Program
from agent.workload.workload import Workload
from tests.conftest import ROOT
from tests.fixtures.cases import CASES
from tests.fixtures.running import opened

DIFFERENT = 1.3
WANTED = 0.85
TIE = 0.005
_LINE = re.compile(r"\| `(?P<idea>[\w-]+)` \| `(?P<kernel>\w+)` \|.*\| (?P<ratio>[\d.]+)x")


@frozen
class Pair:
    """An original and a rewrite of it, on one workload."""

    name: str
    kernel: str
    idea: str
    original: Program
    rewrite: Program
    workload: Workload


@frozen
class Row:
    """Old time over new, estimated and measured; ``limits`` name what the estimate takes to limit each."""

    name: str
    estimated: float | None
    measured: float | None
    limits: tuple[str, str] = ("", "")
    why: str = ""

    @property
    def counts(self) -> bool:
        known = self.estimated is not None and self.measured is not None
        return known and max(self.measured or 0, 1 / (self.measured or 1)) >= DIFFERENT

    @property
    def right(self) -> bool:
        """Told apart the right way round; what is a tie to two places is not."""
        assert self.estimated is not None and self.measured is not None
        return abs(self.estimated - 1) >= TIE and (self.estimated - 1) * (self.measured - 1) > 0


def main() -> None:
    card = open_gpu()
    known = {} if card is not None else recorded((ROOT / "docs" / "measured.md").read_text(encoding="utf-8"))
    if card is None:
        print(f"order: no card ({why_no_gpu()}); measured are the ratios of docs/measured.md")
    end = time.monotonic() + float(os.environ.get("CUDA_LSP_ORDER_SECONDS", "480"))
    rows: list[Row] = []
    for pair, before in chosen(card, known):
        row = row_of(pair, card, before) if time.monotonic() < end else Row(pair.name, None, None, why="time was over")
        rows.append(row)
        print(_line(row), flush=True)
        if shards := os.environ.get("CUDA_LSP_SHARDS"):
            Path(shards, "order.json").write_text(json.dumps([asdict(one) for one in rows], indent=1))
    if card is not None:
        card.close()
    print("\n".join(summary(rows)))


def chosen(card: Gpu | None, known: Mapping[tuple[str, str], float]) -> Iterator[tuple[Pair, float | None]]:
    """All pairs that are looked at, with what was measured of them before."""
    for pair in fixtures():
        yield pair, None
    for pair in given():
        before = known.get((pair.idea, pair.kernel))
        if card is not None or before is not None:
            yield pair, before


# Pairs --------------------------------------------------------------------------------------------------------------


def fixtures() -> Iterator[Pair]:
    for case in CASES:
        found = opened(case.file, case.kernel)
        yield from pairs(case.name, found.document, case.kernel, found.workload)


def given() -> Iterator[Pair]:
    """Those of the folder that the environment names; what cannot be read or rewritten any more is said."""
    folder = Path(os.environ.get("CUDA_LSP_ORDER", ""))
    if not os.environ.get("CUDA_LSP_ORDER"):
        return
    for text in (folder / "pairs.txt").read_text(encoding="utf-8").splitlines():
        file, kernel, ideas = text.split()
        try:
            document = read(str(folder / file))
            workload = find_workload(document, document.kernel(kernel))
        except (SourceError, WorkloadError, OSError) as error:
            print(f"  {file}: {error}")
            continue
        name = file.removesuffix(".cu")
        found = list(pairs(name, document, kernel, workload, frozenset(ideas.split(","))))
        yield from found
        if not found:
            print(f"  {name}: {ideas} does not apply")


def pairs(
    name: str, document: Document, kernel: str, workload: Workload, only: frozenset[str] = frozenset()
) -> Iterator[Pair]:
    """The first way to write each idea that applies (of ``only``, where that names any)."""
    request = source.Request(document, document.kernel(kernel), workload, workload.plan, Scope.PLAN)
    original = Program(document, workload.plan, "original")
    for idea in source.propose(request).ideas:
        if only and idea.name not in only:
            continue
        for candidate in source.implement(idea, request)[:1]:
            rewrite = source.program(document, request.kernel, candidate, "rewrite")
            yield Pair(f"{name}: {idea.name}", kernel, idea.name, original, rewrite, workload)


# Figures ------------------------------------------------------------------------------------------------------------


def row_of(pair: Pair, card: Gpu | None, measured: float | None) -> Row:
    options = Options(arch=card.arch if card is not None else "sm_90", flags=pair.workload.flags)
    old, new = build(pair.original, options), build(pair.rewrite, options)
    if isinstance(old, CompileFailure) or isinstance(new, CompileFailure):
        return Row(pair.name, None, None, why="does not compile")
    counted = Setting(Emulator(), find_target("H200"), options, seconds=40.0)
    figures = estimates(pair, old, new, counted)
    if card is not None:
        timed = _timed(pair, old, new, evolve(counted, device=card), card)
        if isinstance(timed, str):
            return Row(pair.name, None, None, why=timed)
        measured = timed
    if isinstance(figures, str):
        return Row(pair.name, None, measured, why=figures)
    one, other = figures
    return Row(pair.name, one.seconds / other.seconds, measured, (one.limit, other.limit))


def estimates(pair: Pair, old: Build, new: Build, setting: Setting) -> tuple[Estimate, Estimate] | str:
    """Both by the same recipe, as in a search; or why there is none."""
    base = next(iter(bases(pair.workload, pair.original)), declared(pair.workload))
    rules = {size.name: Rule(size.name, size.multiple, size.minimum) for size in pair.workload.sizes}
    stated = Contract("", False, base, rules, {}, True, frozenset(), {}, False)
    choices = recipes(Bench(pair.original, pair.workload, setting, old), stated, slow=False)
    why = "no recipe"
    for choice in choices:
        found = [
            estimate(program, built, pair.workload, setting, [choice])
            for program, built in ((pair.original, old), (pair.rewrite, new))
        ]
        if isinstance(found[0], Estimate) and isinstance(found[1], Estimate):
            return found[0], found[1]
        why = next(one for one in found if isinstance(one, str))
    return why


def _timed(pair: Pair, old: Build, new: Build, setting: Setting, card: Gpu) -> float | str:
    bench = Bench(pair.original, pair.workload, setting, old)
    contract = Contract("not asked for", False, {}, {}, {}, True, frozenset(), {}, False)
    nothing = SelfTest((), (), (), (), ())
    prepared = Prepared(
        pair.original, pair.workload, setting, bench, contract, nothing, "", (), traits(old.ptx), "not asked for"
    )
    found = measure(Trial(prepared, pair.rewrite, False, "plan", build=new), card, declared(pair.workload), SCREEN)
    return found.cold.ratio if isinstance(found, Measurement) else found.reason


def recorded(page: str) -> dict[tuple[str, str], float]:
    """Measured ratios by idea and kernel, of pairs that a page of measurements has one line for."""
    found: dict[tuple[str, str], list[float]] = {}
    for match in _LINE.finditer(page):
        found.setdefault((match["idea"], match["kernel"]), []).append(float(match["ratio"]))
    return {key: ratios[0] for key, ratios in found.items() if len(ratios) == 1}


# What is told -------------------------------------------------------------------------------------------------------


def _line(row: Row) -> str:
    figures = "".join(f"{f'{one:.2f}x' if one is not None else '-':>10}" for one in (row.estimated, row.measured))
    mark = "" if not row.counts else "   right" if row.right else "   WRONG"
    limits = row.why or " -> ".join(dict.fromkeys(row.limits))
    return f"  {row.name:58}{figures}{mark:9} {limits}"


def between(rows: list[Row]) -> list[Row]:
    """Two rewrites of one original as a pair: what is kept because it is faster says little about order, this more."""
    known = [(row, row.estimated, row.measured) for row in rows if row.estimated and row.measured]
    return [
        Row(f"{one.name} after {two.name.partition(': ')[2]}", estimated / other_estimated, measured / other_measured)
        for (one, estimated, measured), (two, other_estimated, other_measured) in itertools.combinations(known, 2)
        if one.name.partition(": ")[0] == two.name.partition(": ")[0]
    ]


def summary(rows: list[Row]) -> Iterator[str]:
    """How many pairs that differ are told apart the right way round."""
    counted = [row for row in rows if row.counts]
    right = sum(row.right for row in counted)
    share = f" ({right / len(counted):.0%})" if counted else ""
    told = f"{right} of {len(counted)} pairs that differ by {DIFFERENT}x or more told right{share}"
    yield f"  {told}; wanted {WANTED:.0%}"
    others = [row for row in between(rows) if row.counts]
    yield f"  of two rewrites of one original that differ as much, {sum(row.right for row in others)} of {len(others)}"
    yield from (_line(row) for row in others if not row.right)
    yield f"  {sum(row.estimated is None for row in rows)} without an estimate, {len(rows)} pairs in all"


if __name__ == "__main__":
    main()
