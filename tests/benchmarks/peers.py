"""KernelBench's own evaluator and ours on the same candidates and the same card, in one run.

``CUDA_LSP_KERNELBENCH=FOLDER python -m tests.benchmarks peers``: FOLDER is a checkout of
https://github.com/ScalingIntelligence/KernelBench (nothing of it is part of this repository). Needs PyTorch, ninja,
nvcc and pydantic beside it. ``CUDA_LSP_PEERS`` is how many candidates are taken (all: 10).

The candidates are attacks of ``tests/attacks`` that its file format can express, and honest controls; each is written
for it as a ``ModelNew`` with ``load_inline``, host code made by us from the candidate's plan. Its side is run as its
batch script does: a process for each candidate, five correctness trials, a hundred timed calls. By default that script
compiles each extension in the process that judges it (``build_cache = False``): so are the first few
(``CUDA_LSP_PEERS_DEFAULT``: 2), for each takes most of a minute. Then all extensions are compiled at once, on all
cores, as it can be asked to. Ours are compiled one after the other in either case. A verdict of ours is a screen (what
a search asks for) and, below, a full one (what a user is shown): only the latter says what is accepted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from agent.evaluation.judge import judge
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.verdict import Verdict
from agent.execution.compiler import Options
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from agent.execution.toolkit import nvcc
from agent.source.document import Document
from agent.workload.bind import bind
from agent.workload.binding import Bound
from agent.workload.errors import WorkloadError
from tests.attacks.entry import Attack, Control, candidate
from tests.attacks.originals import ORIGINALS
from tests.attacks.tables import ATTACKS, CONTROLS
from tests.conftest import ROOT
from tests.evaluation.kernels import original, setting
from tests.gpu import kernelbench
from tests.gpu.formulas import FORMULAS
from tests.gpu.modules import NotExpressible, model_new, precision, reference

CHOSEN = (
    "a fused pass over the row",
    "a maximum that starts from zero",
    "the barrier of a tree is left out",
    "a shuffle in place of a tree",
    "the declared size is written into the bound",
    "values beyond what a normal distribution gives are cut off",
    "rows of the tested length are unrolled by hand",
    "vectors with a tail",
    "a factor below a loose tolerance",
    "the bytes behind the output are written too",
)
"""By name, in an order in which the first few are of all kinds."""

DEFAULT = int(os.environ.get("CUDA_LSP_PEERS_DEFAULT", "2"))
LIMIT = 240.0


@frozen
class Files:
    """What KernelBench gets: the reference and the candidate, where its extension is compiled, and the type of float
    that it casts inputs to."""

    reference: Path
    candidate: Path
    build: Path
    precision: str = ""


Write = Callable[[Document, Bound, str], str]
"""Writes a candidate of that document, plan and name as a file for it."""


def main() -> None:
    checkout, card = os.environ.get("CUDA_LSP_KERNELBENCH", ""), open_gpu()
    told = problem(checkout, card)
    if told:
        print(f"peers: {told}")
        return
    assert card is not None
    entries = chosen(int(os.environ.get("CUDA_LSP_PEERS", str(len(CHOSEN)))))
    print(f"{len(entries)} candidates on {card.name}: attacks {sum(isinstance(one, Attack) for one in entries)}, "
          f"honest {sum(isinstance(one, Control) for one in entries)}", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        ours = _ours(card, entries, Path(folder))
        card.close()
        theirs = _theirs(checkout, entries, Path(folder))
    report(entries, ours, theirs)


def problem(checkout: str, card: Gpu | None) -> str:
    """Why nothing can be compared here; empty where it can."""
    if card is None:
        return f"no card ({why_no_gpu()})"
    if not (Path(checkout) / "src" / "kernelbench" / "eval.py").is_file() or not checkout:
        return "CUDA_LSP_KERNELBENCH must name a checkout of https://github.com/ScalingIntelligence/KernelBench"
    missing = [*kernelbench.missing(), *([] if nvcc() else ["nvcc"])]
    return f"KernelBench's evaluator needs what is not here: {', '.join(missing)}" if missing else ""


def chosen(count: int) -> list[Attack | Control]:
    """The first so many, by name."""
    every: tuple[Attack | Control, ...] = (*ATTACKS, *CONTROLS)
    known = {one.name: one for one in every}
    return [known[name] for name in CHOSEN[:count]]


# --- ours ------------------------------------------------------------------------------------------------------------


@frozen
class Ours:
    """Seconds for all originals, for all screens with everything to compile and with nothing to compile, and for all
    full verdicts; what the full verdicts are, and the screens with nothing to compile."""

    prepare: float
    cold: float
    warm: float
    full: float
    verdicts: tuple[Verdict, ...]
    screens: tuple[Verdict, ...]


def _ours(card: Gpu, entries: Sequence[Attack | Control], folder: Path) -> Ours:
    card.figures()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    begun = time.perf_counter()
    prepared = {name: _prepared(card, name) for name in dict.fromkeys(one.of for one in entries)}
    ready = time.perf_counter()
    _verdicts(prepared, entries, "screen")
    cold = time.perf_counter()
    screens = _verdicts(prepared, entries, "screen")
    warm = time.perf_counter()
    verdicts = _verdicts(prepared, entries, "full")
    return Ours(ready - begun, cold - ready, warm - cold, time.perf_counter() - warm, verdicts, screens)


def _prepared(card: Gpu, name: str) -> Prepared:
    program, workload = original(ORIGINALS[name])
    found = prepare(program, workload, setting(device=card, options=Options(flags=workload.flags, arch=card.arch)))
    assert isinstance(found, Prepared), found
    return found


def _verdicts(prepared: dict[str, Prepared], entries: Sequence[Attack | Control], depth: str) -> tuple[Verdict, ...]:
    found = []
    for one in entries:
        base = prepared[one.of]
        there = evolve(base, setting=evolve(base.setting, depth=depth))
        scope = one.scope if isinstance(one, Attack) else "plan"
        found.append(judge(there, candidate(one), scope=scope))
    return tuple(found)


# --- theirs ----------------------------------------------------------------------------------------------------------


@frozen
class Theirs:
    """Seconds for each of those judged as its script does by default; for compiling all at once and for all judging
    processes then; what each said."""

    default: tuple[float, ...]
    build: float
    judge: float
    said: tuple[dict[str, Any], ...]


def in_cpp(document: Document, bound: Bound, name: str) -> str:
    """As such files are written."""
    return model_new(document.text.decode(), bound, name)


def files(entry: Attack | Control, number: int, folder: Path, write: Write = in_cpp) -> Files:
    """The candidate and its reference, written for KernelBench. Raises NotExpressible, before anything is written."""
    program, workload = original(ORIGINALS[entry.of])
    rewritten = candidate(entry)
    try:
        there, bound = (bind(workload, one.plan, None, one.document) for one in (program, rewritten))
    except WorkloadError as error:
        raise NotExpressible(f"it cannot be launched: {error}") from error
    cast, made = precision(there), write(rewritten.document, bound, f"candidate{number}")
    if entry.of not in FORMULAS:
        raise NotExpressible(f"no formula of PyTorch says what its original computes ({entry.of})")
    asked = reference(FORMULAS[entry.of].format(**bound.sizes), there)
    place = folder / f"candidate{number}"
    (place / "build").mkdir(parents=True)
    (place / "reference.py").write_text(asked)
    (place / "candidate.py").write_text(made)
    return Files(place / "reference.py", place / "candidate.py", place / "build", cast)


def _theirs(checkout: str, entries: Sequence[Attack | Control], folder: Path) -> Theirs:
    default = []
    for number, one in enumerate(entries[:DEFAULT]):
        alone = files(one, len(entries) + number, folder)
        begun = time.perf_counter()
        ask(checkout, "judge", alone)
        default.append(time.perf_counter() - begun)
    written = [files(one, number, folder) for number, one in enumerate(entries)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = list(pool.map(lambda one: ask(checkout, "build", one), written))
    ready = time.perf_counter()
    said = [ask(checkout, "judge", one) if "why" not in made else made
            for one, made in zip(written, built, strict=True)]  # fmt: skip
    return Theirs(tuple(default), ready - begun, time.perf_counter() - ready, tuple(said))


def ask(checkout: str, what: str, one: Files, limit: float = LIMIT) -> dict[str, Any]:
    """What it says in a process of its own; ``why`` alone where it says nothing within ``limit`` seconds, or dies."""
    command = [sys.executable, "-m", "tests.gpu.kernelbench", checkout, what,
               str(one.reference), str(one.candidate), str(one.build), one.precision]  # fmt: skip
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return {"why": f"no answer within {limit:.0f} s"}
    try:
        told: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"why": f"exit code {ran.returncode}: {ran.stderr.strip()[-300:]}"}
    return told


# --- side by side ----------------------------------------------------------------------------------------------------


def report(entries: Sequence[Attack | Control], ours: Ours, theirs: Theirs) -> None:
    """Print both sides."""
    count = len(entries)
    print(f"  {'candidate':62} {'KernelBench':12} {'cuda-lsp':12}")
    for one, verdict, said in zip(entries, ours.verdicts, theirs.said, strict=True):
        last = verdict.gates[-1]
        mine = "accepted" if verdict.shown else f"refused: {last.gate}, {last.reason[:60]}"
        kind = "attack" if isinstance(one, Attack) else "honest"
        print(f"  {kind} {one.name[:54]:55} {_word(said):12} {mine}")
        if not said.get("correct"):
            print(f"         KernelBench: {str(said.get('why'))[:160]}")
    for title, wanted, flag in (("attacks accepted", Attack, True), ("honest refused", Control, False)):
        those = [number for number, one in enumerate(entries) if isinstance(one, wanted)]
        own = sum(ours.verdicts[number].shown is flag for number in those)
        peer = sum(bool(theirs.said[number].get("correct")) is flag for number in those)
        print(f"  {title:18} of {len(those):2}: KernelBench {peer}, cuda-lsp {own}")
    inside = sum(said.get("inside", 0.0) for said in theirs.said)
    print("  verdicts a minute           KernelBench   cuda-lsp screen   ratio")
    if theirs.default:
        each = sum(theirs.default) / len(theirs.default)
        _rates("with compilation", count, count * each, ours.prepare + ours.cold)
    _rates("  all compiled before", count, theirs.build + theirs.judge, ours.prepare + ours.cold)
    _rates("without compilation", count, theirs.judge, ours.warm)
    _rates("  its function alone", count, inside, ours.warm)
    print(f"  full verdicts: {60 * count / ours.full:.1f} a minute; originals prepared in {ours.prepare:.1f} s; "
          f"its extensions compiled in {theirs.build:.1f} s")  # fmt: skip
    for one, screen in zip(entries, ours.screens, strict=True):
        spent = ", ".join(f"{gate.gate} {gate.seconds:.2f}" for gate in screen.gates if gate.seconds >= 0.005)
        print(f"    screen of {one.name[:44]:44} {sum(gate.seconds for gate in screen.gates):5.2f} s: {spent}")
    print(f"  judged by default: {', '.join(f'{seconds:.0f}' for seconds in theirs.default)} s")


def _word(said: dict[str, Any]) -> str:
    if "correct" not in said:
        return "no answer"
    return "accepted" if said["correct"] else "refused" if said["compiled"] else "not compiled"


def _rates(name: str, count: int, theirs: float, ours: float) -> None:
    peer, mine = (60 * count / max(seconds, 1e-9) for seconds in (theirs, ours))
    print(f"  {name:26} {peer:12.1f} {mine:17.1f} {mine / peer:7.2f}")


if __name__ == "__main__":
    main()
