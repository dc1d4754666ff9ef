"""KernelBench's own evaluator on every attack and every control that its file format can say.

``CUDA_LSP_KERNELBENCH=FOLDER python -m tests.benchmarks peers_attacks``: FOLDER is a checkout of
https://github.com/ScalingIntelligence/KernelBench (nothing of it is part of this repository). Needs PyTorch, CuPy,
pydantic, ninja and nvcc beside it. ``CUDA_LSP_PEERS_JOBS`` is how many are judged at once (default: half the cores; its
timings mean nothing then, and none is used), ``CUDA_LSP_PEERS_LIMIT`` the seconds after which one has no answer.
``CUDA_LSP_SHARDS``, ``CUDA_LSP_SECONDS``: see ``tests/gpu/shards.py``; the table is kept there, and added to.

Each is judged in a process of its own by ``eval_kernel_against_ref``: five correctness trials at one size on contents
from ``torch.randn`` (``torch.rand`` where the original declares a range), then a hundred timed calls. Candidates are
compiled by NVRTC, through CuPy, which takes a second where ``load_inline`` takes most of a minute; one that asks which
compiler it has is written with ``load_inline``. The originals themselves are judged too: where one is refused, so would
all its rewrites be, whatever they are.

``seen`` says whether a fault shows at that size, on such contents, in the output, as ``tests/gpu/seen.py`` tells: what
is ``hidden`` there cannot be refused by comparing outputs, however many trials there are.
"""

import importlib.util
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from attrs import frozen

from agent.execution.gpu import open_gpu
from agent.execution.toolkit import include_folders
from agent.source.document import Document
from agent.workload.binding import Bound
from tests.attacks.entry import Attack, Control
from tests.attacks.originals import ORIGINALS
from tests.attacks.tables import ATTACKS, CONTROLS
from tests.benchmarks.peers import Files, ask, files, in_cpp, problem
from tests.gpu import shards
from tests.gpu.modules import NotExpressible, raw_module
from tests.gpu.seen import COMPILER, HIDDEN, seen

JOBS = int(os.environ.get("CUDA_LSP_PEERS_JOBS", "0")) or max(1, (os.cpu_count() or 2) // 2)
LIMIT = float(os.environ.get("CUDA_LSP_PEERS_LIMIT", "120"))
ACCEPTED, REFUSED, CRASHED, SILENT, NOT_SAID = "accepted", "refused", "crashed", "no answer", "not expressible"
WORDS = (ACCEPTED, REFUSED, CRASHED, SILENT)
KINDS = ("attack", "honest", "original")
_LONG = ("another kernel for nvcc", "endless")
_RESTS_ON = ("agent", "tests/attacks", "tests/gpu/modules.py", "tests/gpu/formulas.py", "tests/gpu/kernelbench.py",
             "tests/gpu/seen.py", "tests/benchmarks/peers.py", "tests/benchmarks/peers_attacks.py")  # fmt: skip

Judge = Callable[[Files], dict[str, Any]]


@frozen
class Case:
    """An entry of the red team as one of the three ``KINDS``."""

    kind: str
    entry: Attack | Control

    @property
    def key(self) -> str:
        return f"{self.kind}: {self.entry.name}"


def main() -> None:
    checkout, card = os.environ.get("CUDA_LSP_KERNELBENCH", ""), open_gpu()
    told = problem(checkout, card) or ("" if importlib.util.find_spec("cupy") else "CuPy is not installed")
    if card is not None:
        card.close()
    if told or card is None:
        print(f"peers_attacks: {told}")
        return
    held, begun = shards.opened("peers_attacks", _RESTS_ON), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        fill(held, cases(), Path(folder), lambda one: ask(str(Path(checkout).resolve()), "judge", one, LIMIT))
    print(f"{len(held.rows)} of {len(cases())} on {card.name}, {JOBS} at once, {time.perf_counter() - begun:.0f} s")
    print("\n".join(report(held.rows)))


def cases() -> list[Case]:
    """All of them, what takes longest first."""
    found = [Case("attack", one) for one in ATTACKS] + [Case("honest", one) for one in CONTROLS]
    found += [Case("original", Control(name, name)) for name in ORIGINALS]
    return sorted(found, key=lambda case: not case.entry.name.startswith(_LONG))


def fill(held: shards.Shard, wanted: Iterable[Case], folder: Path, judge: Judge) -> None:
    """Judge what is not in ``held`` yet, many at once, until its time is over."""
    asked: dict[Future[dict[str, Any]], Case] = {}
    with ThreadPoolExecutor(JOBS) as pool:
        for number, case in enumerate(wanted):
            if case.key in held.rows:
                continue
            try:
                written = said_in_its_format(case.entry, number, folder)
            except NotExpressible as problem:
                held.add(case.key, _row(case, NOT_SAID, str(problem)))
                continue
            asked[pool.submit(lambda one: judge(one) if not held.over else {}, written)] = case
        for done in as_completed(asked):
            case, said = asked[done], done.result()
            if said:
                held.add(case.key, _row(case, word(said), reason(said), seen(case.entry)))


def said_in_its_format(entry: Attack | Control, number: int, folder: Path) -> Files:
    """The files. Raises NotExpressible, also where what is wrong is nothing that a run on one card is asked about."""
    if isinstance(entry, Attack) and entry.scope != "plan":
        raise NotExpressible(f"it is wrong as a {entry.scope} only, which its format does not have")
    if isinstance(entry, Attack) and entry.architectures:
        raise NotExpressible("it is wrong for other cards only")
    return files(entry, number, folder, in_python)


def in_python(document: Document, bound: Bound, name: str) -> str:
    """For NVRTC, unless the text asks which compiler it has."""
    if COMPILER in document.text:
        return in_cpp(document, bound, name)
    return raw_module(document, bound, include_folders())


# --- what it says ----------------------------------------------------------------------------------------------------


def word(said: Mapping[str, Any]) -> str:
    """One of ``WORDS``."""
    if "correct" in said:
        return ACCEPTED if said["correct"] else REFUSED
    return SILENT if str(said.get("why", "")).startswith("no answer") else CRASHED


def reason(said: Mapping[str, Any]) -> str:
    """Its own words, in short: of its metadata, or the last line of what it died with."""
    why = said.get("why", "")
    if not isinstance(why, Mapping):
        lines = str(why).strip().splitlines() or [""]
        return (lines[0] if len(lines) == 1 else f"{lines[0].partition(':')[0]}: {lines[-1]}")[:200]
    names = ("compilation_error", "runtime_error", "correctness_issue", "max_difference", "error_during_performance",
             "excessive_speedup")  # fmt: skip
    return "; ".join(f"{name} {' '.join(str(why[name]).split())[:120]}" for name in names if name in why)


def _row(case: Case, found: str, why: str, hidden: str = "") -> shards.Row:
    gate = case.entry.gate if isinstance(case.entry, Attack) else ""
    return {"kind": case.kind, "name": case.entry.name, "of": case.entry.of, "rows": list(case.entry.rows),
            "gate": gate, "word": found, "why": why, "seen": hidden}  # fmt: skip


# --- the table -------------------------------------------------------------------------------------------------------


def report(rows: Mapping[str, shards.Row]) -> list[str]:
    """The lines of the table and its totals."""
    said = sorted((row for row in rows.values() if row["word"] != NOT_SAID), key=lambda row: KINDS.index(row["kind"]))
    lines = [
        f"  {'':8} {'entry':60} {'rows':10} {'KernelBench':11} {'seen':8} here it is refused by; KernelBench's words"
    ]
    for row in said:
        numbers = ",".join(row["rows"])
        ours = f"{row['gate']}; " if row["gate"] else ""
        lines.append(f"  {row['kind']:8} {row['name'][:60]:60} {numbers:10} {row['word']:11} {row['seen']:8} "
                     f"{ours}{row['why'][:110]}")  # fmt: skip
    for kind in KINDS:
        lines.append(_total(kind, [row for row in rows.values() if row["kind"] == kind]))
    attacks = [row for row in said if row["kind"] == "attack"]
    passed = [row for row in attacks if row["word"] == ACCEPTED]
    lines.append(f"  attacks whose fault never shows at its one size and contents: {_hidden(attacks)}; "
                 f"of the {len(passed)} accepted: {_hidden(passed)}")  # fmt: skip
    gates = ", ".join(f"{name} {count}" for name, count in Counter(row["gate"] for row in passed).most_common())
    lines.append(f"  the gates that refuse them here: {gates}")
    flagged = sum("excessive_speedup" in row["why"] for row in passed)
    lines.append(f"  of them it flags {flagged} for an excessive speedup (its figures are of {JOBS} at once)")
    lines.append("  not expressible:")
    left = Counter((row["kind"], row["why"]) for row in rows.values() if row["word"] == NOT_SAID)
    return [*lines, *(f"    {count:3} {kind:8} {why}" for (kind, why), count in sorted(left.items()))]


def _hidden(those: Iterable[shards.Row]) -> int:
    return sum(row["seen"] == HIDDEN for row in those)


def _total(kind: str, those: list[shards.Row]) -> str:
    counts = Counter(row["word"] for row in those)
    words = ", ".join(f"{counts[name]} {name}" for name in WORDS)
    return f"  {kind:8} {len(those):3}: {words}; {counts[NOT_SAID]} not expressible"


if __name__ == "__main__":
    main()
