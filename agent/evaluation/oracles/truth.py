"""What the original answers to one case, how sure that answer is, and whether a candidate's answer agrees."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.comparators import Comparison, Expected, compare
from agent.evaluation.comparators.base import WRONG, first
from agent.evaluation.comparators.numeric import fits, spread_of
from agent.evaluation.contracts.probed import hold
from agent.evaluation.joined import Pair, apart
from agent.evaluation.oracles import shadows
from agent.evaluation.oracles.referred import referred
from agent.evaluation.runs import MORE_PRIORS, PRIORS, Case, Contents
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bound_at
from agent.evaluation.values import Mask, by_parts, lane_bytes, lane_mask, to_floats
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Bytes, Parts, Recipe
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.dtypes import is_float
from agent.workload.program import Program
from agent.workload.workload import Access, Workload

EXACT_FAMILY = "small-integers"

PATIENCE = 200
"""A candidate that needs so many times the original's instructions is taken for endless."""

LEAST_STEPS, PROVEN_STEPS = 20_000_000, 200_000_000
"""However little the original needs. A candidate that has ended before is ``PROVEN``: at a size where the original has
next to nothing to do, large tiles do hundreds of times as much, most of it padding."""

LEAST_SECONDS = 20.0
"""Of a run on a card, whose clock also sees what else the machine does."""


@frozen
class Bench:
    """What truths are made with: the original compiled, its float64 twin (or None; with ``shadow`` the emulator's
    shadow stands for it, with ``referred`` the user's PyTorch function), how each output is compared, whether the
    order of blocks makes no difference to it, and which outputs are ``joined`` (see ``Contract``)."""

    original: Program
    workload: Workload
    setting: Setting
    build: Build = field(repr=False)
    oracle: Build | None = field(default=None, repr=False)
    shadow: bool = False
    referred: bool = False
    kinds: Mapping[str, str] = field(factory=dict)
    deterministic: bool = True
    joined: tuple[Pair, ...] = ()


@frozen
class Truth:
    """``written`` marks, per byte and output, what the original wrote. ``exact`` outputs had no rounding at all.
    ``joined`` as the contract has it."""

    case: Case
    before: Contents = field(repr=False)
    expected: tuple[Expected, ...]
    written: Mapping[str, Mask] = field(repr=False)
    answer: Answer = field(repr=False)
    oracle: bool = False
    joined: tuple[Pair, ...] = ()


def patient(setting: Setting, known: Truth, proven: bool = False) -> Setting:
    """The setting that a candidate runs under, beside what the original needed: steps in the emulator, seconds on a
    card. ``proven``: it came to an end at another size."""
    steps = max(PROVEN_STEPS if proven else LEAST_STEPS, PATIENCE * known.answer.thread_instructions)
    if setting.device.emulated:
        return evolve(setting, step_cap=steps)
    seconds = max(LEAST_SECONDS, PATIENCE * known.answer.seconds)
    return evolve(setting, step_cap=steps, seconds=min(setting.seconds, seconds))


def truth(bench: Bench, chosen: Case) -> Truth | Answer:
    """The original's answer with its sensitivity and, where there is an oracle that fits, float64's. An Answer that is
    not ``ok`` comes back as it is. Raises ShortExtent."""
    bound = bound_at(bench.workload, bench.original, dict(chosen.sizes))
    before = runs.contents(bound, chosen)
    answer = runs.run(bench.setting, bench.build, before)
    hold(bench.workload, answer, bound.sizes)
    if answer.status != "ok":
        return answer
    written = _written(bench, before, answer)
    if isinstance(written, Answer):
        return written
    moved = _moved(bench, before, chosen)
    turned = None if bench.deterministic else runs.run_reordered(bench.setting, bench.build, before)
    oracle = _oracle(bench, before)
    expected = tuple(
        expected_of(bench, buffer, before, answer, written[buffer.name], (*moved, Variant(turned)), oracle, chosen)
        for buffer in outputs(bound)
    )
    oracled = any(item.oracle is not None for item in expected)
    return Truth(chosen, before, expected, written, answer, oracled, bench.joined)


def outputs(bound: Bound) -> list[BoundBuffer]:
    return [buffer for buffer in bound.buffers if not buffer.scratch and buffer.access is not Access.IN]


def inputs(bound: Bound) -> list[BoundBuffer]:
    return [buffer for buffer in bound.buffers if not buffer.scratch and buffer.access is not Access.OUT]


def _written(bench: Bench, before: Contents, answer: Answer) -> dict[str, Mask] | Answer:
    """Per byte of each output. In a buffer that is also an input every byte counts."""
    others: list[tuple[int, Answer]] = [(PRIORS[0], answer)]
    if answer.written is None:
        for prior in _priors(bench, before)[1:]:
            again = runs.run(bench.setting, bench.build, before, prior=prior)
            if again.status != "ok":
                return again
            others.append((prior, again))
    found: dict[str, Mask] = {}
    for buffer in outputs(before.bound):
        if buffer.access is Access.INOUT:
            found[buffer.name] = np.ones(buffer.nbytes, np.bool_)
        elif answer.written is not None:
            found[buffer.name] = answer.written[buffer.name]
        else:
            found[buffer.name] = touched(
                [(prior, one.outputs[buffer.name]) for prior, one in others], lane_bytes(buffer.dtype)
            )
    return found


def _priors(bench: Bench, before: Contents) -> tuple[int, ...]:
    """Over what the original is run to see where it writes. A run over other contents shows each byte, unless threads
    take their places as they come: then each run may write there just what stood there, and short lanes need more
    runs (a lane of one byte is missed once in 256 to the power of their number)."""
    narrow = any(lane_bytes(buffer.dtype) <= 2 and buffer.access is Access.OUT for buffer in outputs(before.bound))
    return PRIORS if bench.deterministic or not narrow else (*PRIORS, *MORE_PRIORS)


def touched(over: Sequence[tuple[int, Bytes]], width: int) -> Mask:
    """Which bytes were written, from runs over several prior contents (a byte that fills the buffer, and what came
    back). A lane of ``width`` bytes is written whole or not at all: where threads take their places as they come, one
    byte of it may be in each run what stood there."""
    lanes = len(over[0][1]) // width
    found = np.empty(lanes * width, np.bool_)

    def look(part: slice) -> None:
        own = slice(part.start * width, part.stop * width)
        other = np.zeros(own.stop - own.start, np.bool_)
        for prior, data in over:
            other |= data[own] != prior
        found[own] = np.repeat(other.reshape(-1, width).any(axis=1), width)

    by_parts(lanes, look)
    return found


@frozen
class Variant:
    """The original's answer to a run that differs from the first as little as makes no difference in exact arithmetic.
    ``finer`` as :class:`agent.evaluation.runs.Nudge` has it."""

    answer: Answer | None
    finer: float = 1.0


def _moved(bench: Bench, before: Contents, chosen: Case) -> list[Variant]:
    """The original again on inputs that moved by one unit in the last place."""
    if not any(is_float(buffer.dtype) for buffer in outputs(before.bound)):
        return []
    return moved(bench, before, chosen.seed ^ 1)


def moved(
    bench: Bench,
    before: Contents,
    seed: int,
    blocks: runs.Blocks | None = None,
    parts: Mapping[str, Parts] | None = None,
) -> list[Variant]:
    """The same; ``blocks`` and ``parts`` as :func:`agent.evaluation.runs.run` has them."""
    near = runs.nudges(before, seed)
    return [
        Variant(runs.run(bench.setting, bench.build, one.contents, blocks=blocks, parts=parts), one.finer)
        for one in near
    ]


def spread(
    original: Bytes, others: Iterable[tuple[Bytes, float]], dtype: str, written: Mask
) -> "tuple[float, float, float, float]":
    """How far an output moved in other runs (bytes, ``finer``): the most and in the root mean square, as it was seen;
    then what float arithmetic does of it."""
    found = [(spread_of(original, other, dtype, written), finer) for other, finer in others]
    seen = [[one[way] for one, _ in found] for way in (0, 1)]
    fine = [[one[way] * finer for one, finer in found] for way in (0, 1)]
    most, rms, fine_most, fine_rms = (max(values, default=0.0) for values in (*seen, *fine))
    return most, rms, fine_most, fine_rms


def _oracle(bench: Bench, before: Contents) -> Answer | None:
    if bench.referred and bench.setting.reference is not None:
        found = referred(bench.setting.reference, bench.workload, before.bound, before.given, bench.setting)
        return found if isinstance(found, Answer) else None
    if bench.oracle is None:
        return shadows.shadowed(bench.setting, bench.build, before) if bench.shadow else None
    answer = runs.run(bench.setting, bench.oracle, runs.widened(before))
    return answer if answer.status == "ok" else None


def _speaks_of(bench: Bench, oracle: Answer, buffer: BoundBuffer) -> bool:
    """Whether the oracle's answer holds this output in float64: a promoted original has floats widened only."""
    return buffer.name in oracle.outputs and (bench.referred or buffer.dtype.startswith("f32"))


def expected_of(
    bench: Bench,
    buffer: BoundBuffer,
    before: Contents,
    answer: Answer,
    written: Mask,
    variants: Sequence[Variant],
    oracle: Answer | None,
    chosen: Case,
) -> Expected:
    """The truth about one output. ``written`` marks its bytes; ``variants`` are the original's answers to inputs that
    moved, and with its blocks in another order; ``oracle`` is the float64 twin's, or the original's with its shadow."""
    original = answer.outputs[buffer.name]
    kind = bench.kinds.get(buffer.name, "exact")
    spreads, exact, silent, wide = (0.0, 0.0, 0.0, 0.0), False, False, None
    if kind == "numeric":
        lanes = lane_mask(written, buffer.dtype)
        spreads = spread(original, _answers(variants, buffer.name), buffer.dtype, lanes)
        sure = True
        if oracle is not None and oracle.shadows is not None:
            found = shadows.as_oracle(oracle, buffer.name, buffer.dtype, original, lanes)
            if found is not None and fits(original, buffer.dtype, found.value, lanes):
                wide, sure = found.value, bool(found.known[lanes].all())
        elif oracle is not None and _speaks_of(bench, oracle, buffer):
            wide = np.ascontiguousarray(oracle.outputs[buffer.name]).view(np.float64)
            silent = not fits(original, buffer.dtype, wide, lanes)
            wide = None if silent else wide
        if wide is not None and sure and chosen.family == EXACT_FAMILY:
            exact = bool(np.array_equal(to_floats(original, buffer.dtype)[lanes], wide[lanes]))
    return Expected(
        name=buffer.name,
        dtype=buffer.dtype,
        original=original,
        written=lane_mask(written, buffer.dtype),
        kind=kind,
        oracle=wide,
        spread=spreads[0],
        spread_rms=spreads[1],
        fine=spreads[2],
        fine_rms=spreads[3],
        exact=exact,
        tolerance=_tolerance(bench.workload, buffer.name),
        prior=PRIORS[0],
        silent=silent,
        inputs=_inputs(before, whole=kind == "argmax"),
    )


def _answers(variants: Sequence[Variant], name: str) -> Iterator[tuple[Bytes, float]]:
    for one in variants:
        if one.answer is not None and one.answer.status == "ok":
            yield one.answer.outputs[name], one.finer


def _inputs(before: Contents, whole: bool) -> dict[str, tuple[str, Bytes]]:
    """Contents for comparators that look things up; those made on demand only where one does (``whole``)."""
    found: dict[str, tuple[str, Bytes]] = {}
    for item in inputs(before.bound):
        data = before.given.get(item.name)
        if isinstance(data, Recipe) and whole:
            data = data.make(0, data.nbytes)
        if isinstance(data, np.ndarray):
            found[item.name] = (item.dtype, data)
    return found


def _tolerance(workload: Workload, name: str) -> float | None:
    return dict(workload.comparators)[name].tolerance if name in dict(workload.comparators) else None


def disagreements(known: Truth, answer: Answer, prior: int = PRIORS[0]) -> list[Comparison]:
    """Each output compared, and what must not be written found untouched. ``answer`` is the candidate's, ``ok``, run
    over the same contents."""
    found = [unchanged for buffer in inputs(known.before.bound) if (unchanged := _input(known, buffer, answer))]
    for item in known.expected:
        data = answer.outputs[item.name]
        strays = _strays(known, item, answer, prior)
        if strays is not None or not item.silent:
            found.append(strays if strays is not None else _named(known, item, answer, prior, compare(item, data)))
    return [*found, *apart(known.joined, known.expected, known.answer, answer)]


def _named(known: Truth, item: Expected, answer: Answer, prior: int, found: Comparison) -> Comparison:
    """A wrong output of a device that does not say what was written: where lanes still hold the prior content, that is
    what is wrong with it, and no number."""
    given = {buffer.name for buffer in outputs(known.before.bound) if buffer.access is not Access.OUT}
    if found.grade != WRONG or answer.written is not None or item.name in given or item.places is not None:
        return found
    width = len(item.original) // max(1, len(item.written))
    got, wanted = (data.reshape(-1, max(1, width)) for data in (answer.outputs[item.name], item.original))
    missing = item.written & (got == prior).all(axis=1) & (wanted != prior).any(axis=1)
    return _unwritten(item, missing, ", or as it was before the run") if missing.any() else found


def _unwritten(item: Expected, missing: Mask, how: str = "") -> Comparison:
    words = (
        f"leaves {item.name}[{first(missing)}] unwritten{how}, which the original writes "
        f"({int(missing.sum())} of {int(item.written.sum())})"
    )
    return Comparison(item.name, WRONG, words, first(missing))


def _input(known: Truth, buffer: BoundBuffer, answer: Answer) -> Comparison | None:
    """A read-only input must hold what it held; where the device knows, it must not be written at all."""
    given = known.before.given.get(buffer.name)
    if buffer.name in answer.changed:
        return Comparison(buffer.name, WRONG, f"writes {buffer.name}, a read-only input")
    if buffer.access is not Access.IN or buffer.name not in answer.outputs:
        return None
    if answer.written is not None and buffer.name in answer.written:
        changed = answer.written[buffer.name]
    elif isinstance(given, np.ndarray):
        changed = answer.outputs[buffer.name] != given
    else:
        return None
    if not changed.any():
        return None
    at = first(changed)
    return Comparison(buffer.name, WRONG, f"writes {buffer.name}, a read-only input (first at byte {at})", at)


def _strays(known: Truth, item: Expected, answer: Answer, prior: int) -> Comparison | None:
    """Writes outside the original's written set, and places that the original writes and the candidate does not."""
    was = item.written
    if item.kind == "distribution" and not was.all():  # how much is drawn may be drawn too
        return None
    if answer.written is not None:
        now = lane_mask(answer.written[item.name], item.dtype)
        missing = (
            was & ~now
            if next(b for b in outputs(known.before.bound) if b.name == item.name).access is Access.OUT
            else was & False
        )
        extra = now & ~was
    else:
        width = len(item.original) // max(1, len(was))
        extra, missing = ~was, was[:0]
        if extra.any():
            extra &= (answer.outputs[item.name].reshape(-1, max(1, width)) != prior).any(axis=1)
    if extra.any():
        return Comparison(
            item.name,
            WRONG,
            f"writes {item.name}[{first(extra)}], which the original leaves alone ({int(extra.sum())} such places)",
            first(extra),
        )
    if missing.any():
        return _unwritten(item, missing)
    return None
