"""Large outputs in a screen on a card: compared in parts, and as a whole by digests that the card makes.

Parts are compared lane by lane, each with the original's error, sensitivity and float64 truth. The rest is held to
three digests: runs over the two prior contents must agree in every bit (so nothing is left unwritten), outputs that are
compared exactly must be the original's, and sums with random signs must lie as near to the original's as errors that
the parts allow may bring them. Where anything is in doubt, nothing is said here: all of it is fetched and compared, as
a full verdict does in any case, unless the outputs are larger than this machine's memory takes.
"""

import math
from collections.abc import Mapping

import numpy as np
from attrs import evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.comparators.base import SAME, Comparison
from agent.evaluation.oracles.truth import Bench, Truth, disagreements, expected_of, moved, outputs
from agent.evaluation.prepare import Prepared
from agent.evaluation.runs import PRIORS, Case
from agent.evaluation.setting import FULL
from agent.evaluation.sizes import bound_at
from agent.evaluation.values import lane_bytes
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Digest, Parts, ReadsParts
from agent.execution.host_memory import free_bytes
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.random import key

LARGE = 64 << 20
"""Bytes of outputs in all from which on they are not fetched."""

COPIES = 16
"""Whole outputs lie in memory about so many times at once: of both sides over two prior contents, of inputs that moved
by one unit in the last place, in float64, and as numbers that are compared."""

PIECE = 64 << 10
PIECES = 64
"""Pieces of an output that are fetched: its first, its last, and others at places that nobody can know."""

_SPREADS = 8.0
"""Sums with random signs of so many independent errors go astray by so many standard deviations in no screen ever."""


@frozen
class Glimpse:
    """What the original answers: its truth on the parts, and its digests."""

    known: Truth
    parts: Mapping[str, Parts] = field(repr=False)
    digests: Mapping[str, Digest] = field(repr=False)


def glimpse(prepared: Prepared, build: Build, bound: Bound, chosen: Case) -> tuple[Truth, list[Comparison]] | None:
    """The candidate at ``chosen`` against the original: what was known, and each comparison. None where the outputs are
    not so large, or where they have to be compared whole. Raises WorkloadError where the sizes do not bind."""
    if not _large(prepared, chosen) or (prepared.setting.depth == FULL and not crowded(prepared, chosen)):
        return None
    held = prepared.cache.glimpses
    if chosen not in held:
        held[chosen] = _glimpse(prepared.bench, chosen)
    seen = held[chosen]
    return None if seen is None else _judged(prepared, seen, build, bound)


def words(prepared: Prepared, chosen: Case) -> str:
    """What a screen leaves to the full verdict, and what a full one has no room for."""
    if prepared.setting.depth != FULL:
        return f"every lane at {chosen}: a screen compares parts of large outputs, and digests of all of them"
    return f"every lane at {chosen}: {crowded(prepared, chosen)}, so parts were compared, and digests of all of them"


def crowded(prepared: Prepared, chosen: Case) -> str:
    """Why this machine's memory does not take the outputs whole; empty where it does."""
    needed, free = COPIES * _nbytes(prepared, chosen), free_bytes()
    if needed <= free:
        return ""
    return f"comparing all of it takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free here"


def _nbytes(prepared: Prepared, chosen: Case) -> int:
    bound = bound_at(prepared.workload, prepared.original, dict(chosen.sizes))
    return sum(buffer.nbytes for buffer in outputs(bound))


def _large(prepared: Prepared, chosen: Case) -> bool:
    device, bench = prepared.setting.device, prepared.bench
    if not isinstance(device, ReadsParts) or not device.reads_parts or not bench.deterministic:
        return False
    found = outputs(bound_at(bench.workload, bench.original, dict(chosen.sizes)))
    plain = all(bench.kinds.get(buffer.name, "exact") in ("numeric", "exact") for buffer in found)
    return plain and _nbytes(prepared, chosen) > LARGE


def _parts(buffer: BoundBuffer, chosen: Case) -> Parts:
    """The same pieces for every run of this case; whoever wrote the rewrite cannot know which."""
    whole = buffer.nbytes // PIECE
    if whole <= PIECES:
        return Parts(((0, buffer.nbytes),), buffer.dtype, chosen.seed)
    drawn = np.random.default_rng(key(chosen.seed, len(buffer.name))).choice(whole, PIECES - 2, replace=False)
    starts = sorted({0, *(int(place) * PIECE for place in drawn), buffer.nbytes - PIECE})
    ranges: list[tuple[int, int]] = []
    for start in starts:
        begin = max(start, ranges[-1][1] if ranges else 0)
        if begin < start + PIECE:
            ranges.append((begin, start + PIECE))
    return Parts(tuple(ranges), buffer.dtype, chosen.seed)


def _widened(parts: Parts, buffer: BoundBuffer, wide: BoundBuffer) -> Parts:
    """The same lanes of the float64 twin."""
    factor = wide.nbytes // max(1, buffer.nbytes)
    return evolve(
        parts, ranges=tuple((factor * start, factor * stop) for start, stop in parts.ranges), dtype=wide.dtype
    )


def _glimpse(bench: Bench, chosen: Case) -> Glimpse | None:
    """None where the original leaves part of its outputs alone, or does not run so."""
    bound = bound_at(bench.workload, bench.original, dict(chosen.sizes))
    before, written_to = runs.contents(bound, chosen), outputs(bound)
    parts = {buffer.name: _parts(buffer, chosen) for buffer in written_to}
    one, other = (runs.run(bench.setting, bench.build, before, prior=prior, parts=parts) for prior in PRIORS)
    if one.status != "ok" or other.status != "ok" or not _alike(one, other, parts):
        return None
    near = moved(bench, before, chosen.seed ^ 1, parts=parts)
    wide = _wide(bench, before, parts) if bench.oracle is not None else None
    expected = []
    for buffer in written_to:
        written = np.ones(len(one.outputs[buffer.name]), np.bool_)
        item = expected_of(bench, buffer, before, one, written, near, wide, chosen)
        expected.append(evolve(item, places=_places(parts[buffer.name], lane_bytes(buffer.dtype))))
    known = Truth(chosen, before, tuple(expected), {}, one, any(item.oracle is not None for item in expected))
    return Glimpse(known, parts, one.digests)


def _wide(bench: Bench, before: runs.Contents, parts: Mapping[str, Parts]) -> Answer | None:
    assert bench.oracle is not None
    after = runs.widened(before)
    shapes = {buffer.name: buffer for buffer in after.bound.buffers}
    wanted = {
        buffer.name: _widened(parts[buffer.name], buffer, shapes[buffer.name]) for buffer in outputs(before.bound)
    }
    answer = runs.run(bench.setting, bench.oracle, after, parts=wanted)
    return answer if answer.status == "ok" else None


def _places(parts: Parts, width: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.concatenate([np.arange(start // width, stop // width, dtype=np.int64) for start, stop in parts.ranges])


def _alike(one: Answer, other: Answer, parts: Mapping[str, Parts]) -> bool:
    """Whether two runs left the same bits everywhere."""
    return one.changed == other.changed and all(one.digests[name].hash == other.digests[name].hash for name in parts)


def _judged(prepared: Prepared, seen: Glimpse, build: Build, bound: Bound) -> tuple[Truth, list[Comparison]] | None:
    before = runs.for_candidate(seen.known.before, bound)
    one, other = (runs.run(prepared.setting, build, before, prior=prior, parts=seen.parts) for prior in PRIORS)
    if one.status != "ok" or other.status != "ok" or not _alike(one, other, seen.parts):
        return None
    found = disagreements(seen.known, one)
    by_name = {item.output: item for item in found}
    near = all(
        _near(seen.digests[item.name], one.digests[item.name], by_name.get(item.name), seen, item.name)
        for item in seen.known.expected
        if not item.silent
    )
    return (seen.known, found) if near and all(item.grade == SAME for item in found) else None


def _near(was: Digest, now: Digest, compared: Comparison | None, seen: Glimpse, name: str) -> bool:
    """Whether the whole output may be what its parts were found to be."""
    if was.hash == now.hash:
        return True
    if compared is None or compared.errors is None:
        return False
    buffer = next(item for item in seen.known.before.bound.buffers if item.name == name)
    lanes = buffer.nbytes / lane_bytes(buffer.dtype) / len(was.sums)
    errors = compared.errors
    allowed = _SPREADS * errors.scale * (errors.limit_rms + errors.limit) * math.sqrt(lanes)
    return all(abs(a - b) <= allowed for a, b in zip(was.sums, now.sums, strict=True))
