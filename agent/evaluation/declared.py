"""The declared size on sampled blocks, so that a branch on the size does not hide from the small sizes.

Two runs, over the two prior contents, the second with more blocks: a lane counts only when both wrote it and both wrote
the same. What accumulates over blocks, or hangs on a block that was left out, drops out by itself. A candidate with
other blocks is sampled at the same places of its own grid; what both sides know is compared.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.comparators import Comparison, Expected, compare
from agent.evaluation.comparators.base import WRONG
from agent.evaluation.comparators.numeric import fits
from agent.evaluation.contracts.contract import LIMIT, Contract, serious
from agent.evaluation.contracts.probed import hold
from agent.evaluation.oracles import shadows
from agent.evaluation.oracles.truth import LEAST_STEPS, PATIENCE, Bench, Variant, moved, outputs, spread
from agent.evaluation.runs import PRIORS, Case, Contents
from agent.evaluation.setting import FULL, Setting
from agent.evaluation.sizes import Sizes, bound_at, declared, loop_sizes
from agent.evaluation.values import lane_bytes, to_floats
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Bytes, Fault
from agent.workload.binding import Bound, BoundLaunch
from agent.workload.dtypes import is_float
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.workload import Access, Workload

Lanes = npt.NDArray[np.int64]

LARGEST = 1 << 35
"""Buffers beyond this many bytes in all are not even laid out."""

MOST_WHOLE = 1 << 28
"""Nor are sizes run whole that need more."""

MOST_ON_A_CARD = 1 << 26
"""On a card instructions cost nothing: the bytes of all buffers, which are made and compared at hand, decide."""

MAX_STEPS = 24
"""A plan of more steps (a time loop) is sampled with its step counts as in the small sizes."""

TOO_LONG = "too long to run in the emulator here"

_BUDGET = {"screen": 20_000_000, "full": 150_000_000}
_SECONDS = {"screen": 0.7, "full": 1.5}
"""For one block, by depth: a screen leaves what takes longer to the full verdict."""
_MOST = 16

MOST_STEPS = 500_000_000
"""Thread-instructions of a rewrite's blocks in one run: where each does the work of many of the original's, fewer of
them run. What passes that is no fault: it is our own limit."""


@frozen
class Sample:
    """``blocks`` blocks, a third each at the start, the middle and the end of the grid, and those ``near`` further
    parts of it. ``known``: for each output the lanes that count and their truth. ``seconds``: how long one block took
    here; ``steps``: thread-instructions of all of them."""

    case: Case
    before: Contents = field(repr=False)
    blocks: int
    known: tuple[Expected, ...]
    seconds: float
    note: str = ""
    near: tuple[float, ...] = ()
    steps: int = 0


@frozen
class Unsampled:
    """Why the declared size was not run. ``fault``: what the original does wrong there, beyond any doubt."""

    reason: str
    fault: Fault | None = None


MOST_WRITTEN = 1 << 24
"""Bytes of output that are compared on sampled blocks, as far as three blocks stay below that."""

APART = (PRIORS[0], 0x4B)
"""Two prior contents, one far below and one far above what kernels compute: a maximum or a minimum over what a block
that was left out should have written shows in one of them. (0x34 would be a small number, which a maximum hides.)"""

OWN = frozenset({"deadlock", LIMIT})
"""Faults that leaving out blocks may itself bring about."""


def spots(count: int, extra: int = 0, near: tuple[float, ...] = ()) -> runs.Blocks:
    """``count`` blocks in all, side by side at the start, the middle and the end of the grid, ``extra`` more, and those
    around each part ``0 <= p < 1`` of the grid in ``near``."""

    def pick(total: int) -> tuple[int, ...]:
        if total <= count + extra:
            return tuple(range(total))
        part = max(1, count // 3)
        starts = (0, max(0, total // 2 - part // 2), total - part)
        chosen = {start + offset for start in starts for offset in range(part)}
        chosen |= {(start + part) % total for start in starts[:extra]}
        chosen |= {min(total - 1, max(0, int(part * total) + step)) for part in near for step in (-1, 0, 1)}
        return tuple(sorted(chosen))

    return pick


def sample_sizes(bench: Bench, base: dict[str, int]) -> dict[str, int]:
    """The declared sizes; those that only say how often a plan repeats are kept small where it repeats often."""
    top = declared(bench.workload)
    full = bound_at(bench.workload, bench.original)
    if len(full.steps) <= MAX_STEPS:
        return top
    for name in top:
        try:
            fewer = bound_at(bench.workload, bench.original, {**top, name: base[name]})
        except WorkloadError:
            continue
        if len(fewer.steps) < len(full.steps):
            top[name] = base[name]
    return top


DIVISORS = (1, 4, 16, 64)


def divided(sizes: Sizes, contract: Contract, divisor: int, only: frozenset[str] = frozenset()) -> dict[str, int]:
    """``sizes`` (of ``only`` these, if any) over ``divisor``, inside the contract and not below its base."""
    return {
        name: contract.rules[name].fit(max(min(value, contract.base[name]), value // divisor))
        if divisor > 1 and (not only or name in only)
        else value
        for name, value in sizes.items()
    }


def shrunk(bench: Bench, contract: Contract) -> list[dict[str, int]]:
    """The declared sizes, then ever smaller ones whose sampled blocks have less to do: what threads loop over is cut
    first, as grids cost nothing where only some blocks run."""
    sizes = sample_sizes(bench, dict(contract.base))
    loops = loop_sizes(bench.workload, bench.original)
    found: list[dict[str, int]] = []
    for only in (loops, frozenset[str]()) if loops else (frozenset[str](),):
        for divisor in DIVISORS:
            smaller = divided(sizes, contract, divisor, only)
            if smaller not in found:
                found.append(smaller)
    return found


def sample(bench: Bench, contract: Contract) -> Sample | Unsampled:
    """The original on sampled blocks at the declared size (smaller where that takes too long); or why there is none."""
    if not bench.setting.device.emulated:
        return Unsampled("every size runs whole on this device")
    found: Sample | Unsampled = Unsampled("")
    for place, sizes in enumerate(shrunk(bench, contract)):
        found = sample_at(bench, sizes)
        if isinstance(found, Sample):
            return evolve(found, note=TOO_LONG if place else "")
        if "too long" not in found.reason:
            break
    return found


def sample_above(bench: Bench, contract: Contract) -> Sample | Unsampled:
    """The original on sampled blocks past the declared sizes: each half as large again and one more, as the contract
    allows. What a rewrite owes to the declared size alone (an array of just that length) shows there."""
    top = declared(bench.workload)
    larger = above(top, contract)
    sizes = {
        name: larger[name] if value == top[name] else value
        for name, value in sample_sizes(bench, dict(contract.base)).items()
    }
    try:
        return sample_at(bench, sizes)
    except WorkloadError as error:
        return Unsampled(str(error))


def above(top: Sizes, contract: Contract) -> dict[str, int]:
    """Each size half as large again and one more, as the contract allows."""
    return {name: contract.rules[name].fit(value + value // 2 + 1) for name, value in top.items()}


def largest(bench: Bench, contract: Contract, budget: int) -> dict[str, int] | None:
    """The largest sizes, the declared ones divided by powers of four, that run whole within ``budget``
    thread-instructions; None where that is no more than the base."""
    sizes = sample_sizes(bench, dict(contract.base))
    for power in range(8):
        smaller = divided(sizes, contract, 4**power)
        if smaller == dict(contract.base):
            return None
        if within(bench, smaller, budget):
            return smaller
    return None


def within(bench: Bench, sizes: Sizes, budget: int) -> bool:
    """Whether the original runs whole at ``sizes`` within ``budget`` thread-instructions, by what one block takes; on a
    card, by the bytes. Raises WorkloadError where they do not bind."""
    bound = bound_at(bench.workload, bench.original, sizes)
    total = sum(prod(step.grid) for step in bound.steps if isinstance(step, BoundLaunch))
    nbytes = sum(buffer.nbytes for buffer in bound.buffers)
    if not bench.setting.device.emulated:
        return nbytes <= MOST_ON_A_CARD
    if len(bound.steps) > 4 * MAX_STEPS or nbytes > MOST_WHOLE:
        return False
    before = runs.contents(bound, runs.case(sizes, families(bench.workload)[0], 1, lazy=True))
    launches = sum(1 for step in bound.steps if isinstance(step, BoundLaunch))
    one = runs.run(bench.setting, bench.build, before, blocks=spots(1), seconds=_limit(bench.setting) / 2)
    return one.status in ("ok", "fault") and one.thread_instructions / max(1, launches) * total <= budget


def sample_at(bench: Bench, sizes: dict[str, int], near: tuple[float, ...] = ()) -> Sample | Unsampled:
    """The original on sampled blocks at ``sizes``, those ``near`` some parts of the grid among them."""
    bound = bound_at(bench.workload, bench.original, sizes)
    if len(bound.steps) > 4 * MAX_STEPS:
        return Unsampled(f"its plan has {len(bound.steps)} steps, too long to sample here")
    if sum(buffer.nbytes for buffer in bound.buffers) > LARGEST:
        return Unsampled("its buffers are larger than what is laid out here")
    chosen = runs.case(sizes, families(bench.workload)[0], runs.draw_seed(), lazy=True)
    before = runs.contents(bound, chosen)
    one = runs.run(bench.setting, bench.build, before, blocks=spots(1), seconds=_limit(bench.setting))
    if one.status != "ok":
        return _why(one, bound, bench.workload)
    cost = max(1, one.thread_instructions)
    wrote = sum(int(np.count_nonzero(marks)) for marks in (one.written or {}).values())
    blocks = max(3, min(_MOST, _BUDGET[bench.setting.depth] // cost, MOST_WRITTEN // max(1, wrote)))
    pair = _pair(bench.setting, bench.build, before, blocks, near)
    if isinstance(pair, Answer):
        return _why(pair, bound, bench.workload)
    known = _known(bench, before, pair, spots(blocks, near=near))
    if not any(len(item.original) for item in known):
        return Unsampled("no part of its outputs is written by a few blocks alone")
    return Sample(chosen, before, blocks, known, one.seconds, near=near, steps=pair[0].thread_instructions)


def _limit(setting: Setting) -> float:
    return _SECONDS["full" if setting.depth == FULL else "screen"]


def _why(answer: Answer, bound: Bound, workload: Workload) -> Unsampled:
    if answer.status == "timeout" or any(fault.kind == LIMIT for fault in answer.faults):
        return Unsampled(TOO_LONG)
    bad = serious(answer.faults)
    if not bad:
        return Unsampled(answer.message or answer.status)
    # a plan of one launch has no excuse: what faults on some blocks faults on all
    certain = len(bound.steps) == 1 and bad[0].kind not in OWN
    if certain:
        hold(workload, answer, bound.sizes)
    return Unsampled(f"sampled blocks end with: {bad[0].kind} ({bad[0].message})", bad[0] if certain else None)


def _pair(
    setting: Setting,
    build: Build,
    before: Contents,
    blocks: int,
    near: tuple[float, ...] = (),
    cap: Callable[[runs.Blocks], int] | None = None,
    ran: Answer | None = None,
) -> tuple[Answer, Answer] | Answer:
    """Both runs, or the first that did not end well. ``cap``: the thread-instructions that blocks may take; ``ran``:
    the first run, where it was made."""
    found: list[Answer] = [ran] if ran is not None else []
    for prior, extra in tuple(zip(APART, (0, 3), strict=True))[len(found) :]:
        picked = spots(blocks, extra, near)
        patient = evolve(setting, step_cap=cap(picked)) if cap is not None else setting
        answer = runs.run(patient, build, before, prior=prior, blocks=picked, seconds=5 * _limit(setting))
        if answer.status != "ok":
            return answer
        found.append(answer)
    return found[0], found[1]


def _marked(written: npt.NDArray[np.bool_], width: int) -> Lanes:
    """Lanes whose bytes are all marked, a lane at a time: of a large buffer nearly none, or nearly all, may be."""
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[width]
    flat = np.ascontiguousarray(written).view(kind)
    return np.asarray(np.flatnonzero(flat == kind(int("01" * width, 16))), np.int64)


def _gather(data: Bytes, lanes: Lanes, width: int) -> Bytes:
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[width]
    return np.ascontiguousarray(data.view(kind)[lanes]).view(np.uint8)


def _settled(dtype: str, one: Answer, other: Answer, name: str) -> Lanes:
    """The lanes of one output that do not hang on which blocks ran, nor on what was there before."""
    assert one.written is not None and other.written is not None
    width = lane_bytes(dtype)
    lanes = np.intersect1d(_marked(one.written[name], width), _marked(other.written[name], width), assume_unique=True)
    same = (
        _gather(one.outputs[name], lanes, width).reshape(-1, width)
        == _gather(other.outputs[name], lanes, width).reshape(-1, width)
    ).all(axis=1)
    return np.asarray(lanes[same], np.int64)


def _known(bench: Bench, before: Contents, pair: tuple[Answer, Answer], picked: runs.Blocks) -> tuple[Expected, ...]:
    near = moved(bench, before, 1, blocks=picked)
    wide = runs.run(bench.setting, bench.oracle, runs.widened(before), blocks=picked) if bench.oracle else None
    if bench.shadow:
        wide = shadows.shadowed(bench.setting, bench.build, before, picked)
    found: list[Expected] = []
    for buffer in outputs(before.bound):
        lanes = _settled(buffer.dtype, *pair, buffer.name)
        width = lane_bytes(buffer.dtype)
        original = _gather(pair[0].outputs[buffer.name], lanes, width)
        kind = bench.kinds.get(buffer.name, "exact")
        if kind not in ("numeric", "exact"):
            lanes, original = lanes[:0], original[:0]
        item = Expected(
            buffer.name, buffer.dtype, original, np.ones(len(lanes), np.bool_), kind, prior=PRIORS[0], places=lanes
        )
        if kind == "numeric" and is_float(buffer.dtype) and len(lanes):
            item = _sure(item, buffer.name, lanes, width, near, wide)
        found.append(item)
    return tuple(found)


def _sure(
    item: Expected, name: str, lanes: Lanes, width: int, near: Sequence[Variant], wide: Answer | None
) -> Expected:
    """Sensitivity and float64 truth of the lanes that count."""
    ran = [(one.answer, one.finer) for one in near if one.answer is not None and one.answer.status == "ok"]
    others = [(_gather(answer.outputs[name], lanes, width), finer) for answer, finer in ran]
    most, rms, fine, fine_rms = spread(item.original, others, item.dtype, item.written)
    item = evolve(item, spread=most, spread_rms=rms, fine=fine, fine_rms=fine_rms)
    if wide is not None and wide.shadows is not None:
        return _shadowed(item, name, lanes, wide)
    if wide is not None and wide.status == "ok" and item.dtype.startswith("f32"):
        oracle = to_floats(_gather(wide.outputs[name], lanes, 2 * width), "f64")
        fit = fits(item.original, item.dtype, oracle, item.written)
        item = evolve(item, oracle=oracle) if fit else evolve(item, silent=True)
    return item


def _shadowed(item: Expected, name: str, lanes: Lanes, answer: Answer) -> Expected:
    """The same from the shadow of the blocks that ran."""
    found = shadows.as_oracle(answer, name, item.dtype, item.original, item.written, lanes)
    if found is None or not fits(item.original, item.dtype, found.value, item.written):
        return item
    return evolve(item, oracle=found.value)


@frozen
class Judged:
    """``compared`` lanes in all (none is no proof of anything) on ``blocks`` blocks; ``left``: places that were asked
    for and would have taken too long."""

    comparisons: tuple[Comparison, ...]
    compared: int
    blocks: int
    answer: Answer = field(repr=False)
    left: int = 0


def judge_sample(setting: Setting, known: Sample, build: Build, bound: Bound) -> Judged:
    """The candidate at the same size and contents, on its own sampled blocks: as many as it has time for, each run with
    the steps that the original's share of the work allows (``PATIENCE``)."""
    before = runs.for_candidate(known.before, bound)
    cap = partial(allowed_steps, known, bound)
    chosen = _affordable(setting, known, build, before, bound)
    if isinstance(chosen, Answer):
        return Judged((), 0, 0, chosen)
    pair = _pair(setting, build, before, chosen.blocks, chosen.near, cap, chosen.ran)
    if isinstance(pair, Answer):
        return Judged((), 0, 0, pair)
    comparisons: list[Comparison] = []
    total = 0
    for buffer in bound.buffers:
        stray = buffer.access is Access.IN and not buffer.scratch and pair[0].written
        if stray and pair[0].written and pair[0].written.get(buffer.name, np.zeros(0, np.bool_)).any():
            comparisons.append(Comparison(buffer.name, WRONG, f"writes {buffer.name}, a read-only input"))
    for item in known.known:
        assert item.places is not None
        mine = _settled(item.dtype, *pair, item.name)
        _, ours, theirs = np.intersect1d(item.places, mine, assume_unique=True, return_indices=True)
        total += len(ours)
        if len(ours) and not item.silent:
            got = _gather(pair[0].outputs[item.name], mine[theirs], lane_bytes(item.dtype))
            comparisons.append(compare(_only(item, ours), got))
    ran = max(_ran(bound, spots(chosen.blocks, near=chosen.near)), default=0)
    return Judged(tuple(comparisons), total, ran, pair[0], len(known.near) - len(chosen.near))


def allowed_steps(known: Sample, bound: Bound, picked: runs.Blocks) -> int:
    """``PATIENCE`` times what the original needs for the part of the whole job that the candidate's ``picked`` blocks
    have: where its grid is a tenth as large, each block may do ten times as much."""
    return max(LEAST_STEPS, PATIENCE * expected_steps(known, bound, picked))


def expected_steps(known: Sample, bound: Bound, picked: runs.Blocks) -> int:
    """Thread-instructions of those blocks if the candidate needs as many for the whole as the original. Of several
    launches the largest part counts, and the smallest of the original's."""
    mine = max(_parts(bound, picked), default=1.0)
    theirs = min(_parts(known.before.bound, spots(known.blocks, near=known.near)), default=1.0)
    return round(known.steps * mine / theirs)


def _parts(bound: Bound, picked: runs.Blocks) -> list[float]:
    return [ran / prod(step.grid) for ran, step in zip(_ran(bound, picked), _launches(bound), strict=True)]


def _ran(bound: Bound, picked: runs.Blocks) -> list[int]:
    return [len(picked(prod(step.grid))) for step in _launches(bound)]


def _launches(bound: Bound) -> list[BoundLaunch]:
    return [step for step in bound.steps if isinstance(step, BoundLaunch)]


@frozen
class _Affordable:
    """``ran``: the answer of the first run, where it was made to find that out."""

    blocks: int
    near: tuple[float, ...]
    ran: Answer | None = None


def _affordable(setting: Setting, known: Sample, build: Build, before: Contents, bound: Bound) -> _Affordable | Answer:
    """As many blocks as ``MOST_STEPS`` has room for. What one takes is seen on the fewest, where the original lets
    expect too much. An Answer says why none can be judged."""
    if expected_steps(known, bound, spots(known.blocks, near=known.near)) <= MOST_STEPS:
        return _Affordable(known.blocks, known.near)
    few = spots(1)
    patient = evolve(setting, step_cap=allowed_steps(known, bound, few))
    one = runs.run(patient, build, before, prior=APART[0], blocks=few, seconds=5 * _limit(setting))
    if one.status != "ok":
        return one
    least = max(_ran(bound, few), default=1)
    room = max(least, MOST_STEPS * least // max(1, one.thread_instructions))
    near = known.near[: (room - least) // 3]
    if known.near and not near:
        return evolve(one, status="timeout", message=TOO_LONG)
    blocks = max(1, min(known.blocks, room - 3 * len(near)))
    same = not near and _ran(bound, spots(blocks)) == _ran(bound, few)
    return _Affordable(blocks, near, one if same else None)


def _only(item: Expected, lanes: Lanes) -> Expected:
    assert item.places is not None
    return evolve(
        item,
        original=_gather(item.original, lanes, lane_bytes(item.dtype)),
        written=item.written[lanes],
        oracle=item.oracle[lanes] if item.oracle is not None else None,
        places=item.places[lanes],
    )
