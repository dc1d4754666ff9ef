"""One run of one program on one set of contents: the common ground of contract, gates and estimate."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from agent.evaluation.contents import planting
from agent.evaluation.draws import draw_between
from agent.evaluation.draws import draw_seed as draw_seed
from agent.evaluation.oracles.promotion import promote_bound, promote_bytes
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import Sizes, describe
from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Bytes, Device, Image, Made, Parts, Poison, Recipe, Request
from agent.workload.binding import Bound, BoundBuffer, BoundLaunch
from agent.workload.dtypes import base, is_float, size_of
from agent.workload.forms import form
from agent.workload.generators import recipe
from agent.workload.workload import Access

PRIORS = (0xCB, 0x34)
"""Two prior contents of outputs and scratch, every bit of one the opposite of the other's: a byte that shows both
was not written, whatever the kernel computes."""

MORE_PRIORS = (0x9A, 0x65, 0x5E)
"""For outputs to which each run may write something else."""

ALL_CHECKS = frozenset({"bounds", "races", "initialised", "barriers"})
BOUNDS = frozenset({"bounds"})

Blocks = Callable[[int], tuple[int, ...]]


@frozen
class Case:
    """Sizes, an input family and the seed of its contents. ``lazy`` contents are made page by page, for sizes that do
    not run whole. ``shift`` moves every buffer by that many bytes from a 256-byte boundary. ``planted`` values stand in
    half of the elements, ``rare`` ones in few; ``alike`` ones are all the same: the least where the seed is even, the
    largest where odd. ``small`` floats are near to zero."""

    sizes: tuple[tuple[str, int], ...]
    family: str
    seed: int
    lazy: bool = False
    shift: int = 0
    planted: tuple[float, ...] = ()
    alike: bool = False
    small: bool = False
    rare: tuple[float, ...] = ()

    def __str__(self) -> str:
        """Never the seed: what is said here may reach whoever writes the next candidate."""
        more = " with numbers that only one of the two programs compares with" if self.planted or self.rare else ""
        if self.alike:
            more = f" with all elements alike, {'the largest' if self.seed % 2 else 'the least'} of them"
        more = f"{more}, made small" if self.small else more
        return f"{describe(dict(self.sizes))}, {self.family} inputs{more}"


def case(sizes: Sizes, family: str, seed: int, lazy: bool = False) -> Case:
    return Case(tuple(sizes.items()), family, seed, lazy)


@frozen
class Contents:
    """What the buffers hold before a run. ``images`` by buffer name, without outputs' poison."""

    bound: Bound
    given: Mapping[str, Bytes | Recipe] = field(repr=False)
    shift: int = 0


def contents(bound: Bound, chosen: Case) -> Contents:
    """Contents of every buffer that the plan reads first."""
    given: dict[str, Bytes | Recipe] = {}
    for buffer in bound.buffers:
        if buffer.scratch and buffer.zeroed:
            given[buffer.name] = Recipe(buffer.nbytes, _zeros)
        elif not buffer.scratch and buffer.access is not Access.OUT:
            make = recipe(buffer, chosen.family, chosen.seed)
            found = form(buffer, chosen.family) if chosen.lazy else None
            made = Made(found, chosen.seed) if found is not None else None
            if chosen.lazy:
                given[buffer.name] = Recipe(buffer.nbytes, make, made)
            else:
                given[buffer.name] = _aimed(buffer, make(0, buffer.nbytes), chosen)
    return Contents(bound, given, chosen.shift)


def _aimed(buffer: BoundBuffer, data: Bytes, chosen: Case) -> Bytes:
    seed = chosen.seed ^ zlib.crc32(buffer.name.encode())
    if chosen.planted:
        return planting.planted(buffer, data, chosen.planted, seed)
    if chosen.rare:
        return planting.rare(buffer, data, chosen.rare, seed)
    data = planting.small(buffer, data) if chosen.small else data
    return planting.alike(buffer, data, bool(chosen.seed % 2)) if chosen.alike else data


def _zeros(start: int, stop: int) -> Bytes:
    return np.zeros(max(0, stop - start), np.uint8)


def images(before: Contents, prior: int) -> tuple[Image, ...]:
    """The buffers as the device gets them; outputs and scratch poisoned with ``prior``."""
    return tuple(
        Image(
            buffer.name,
            buffer.nbytes,
            before.given.get(buffer.name, Poison(prior)),
            offset=0 if buffer.symbol or buffer.name in before.bound.shown else before.shift,
            symbol=buffer.symbol,
        )
        for buffer in before.bound.buffers
    )


def elsewhere(found: Sequence[Image], before: Contents) -> tuple[Image, ...]:
    """The same contents at other addresses: in another order, apart from one another by no fixed number of buffers, and
    at other multiples of 256 bytes. Where a buffer lies is nothing that an answer may hang on."""
    placed: list[Image] = []
    for image in sorted(found, key=lambda image: draw_seed()):
        gaps = draw_between(0, 5)
        placed += [Image(f"nothing {len(placed) + turn}", 1, Poison(0)) for turn in range(gaps)]
        fixed = image.symbol or image.name in before.bound.shown
        placed.append(image if fixed else evolve(image, offset=image.offset + 256 * draw_between(1, 4095)))
    return tuple(placed)


def run(
    setting: Setting,
    build: Build,
    before: Contents,
    *,
    prior: int = PRIORS[0],
    checks: frozenset[str] = BOUNDS,
    blocks: Blocks | None = None,
    count: bool = False,
    device: Device | None = None,
    seconds: float | None = None,
    bound: Bound | None = None,
    parts: Mapping[str, Parts] | None = None,
    shadow: bool = False,
    moved: bool = False,
) -> Answer:
    """Run ``build`` over ``before``. ``bound`` is the candidate's own where it differs from that of the contents; of
    outputs with ``parts`` only these come back. ``shadow`` asks an emulator for float64 beside every number. ``moved``:
    the buffers lie elsewhere than in other runs."""
    steps = (bound or before.bound).steps
    chosen = device or setting.device
    watched = () if chosen.emulated else _watched(before)
    filled = images(before, prior)
    return chosen.run(
        Request(
            build=build,
            steps=steps,
            images=elsewhere(filled, before) if moved else filled,
            outputs=tuple(
                buffer.name for buffer in before.bound.buffers if not buffer.scratch and buffer.name not in watched
            ),
            checks=checks,
            blocks=blocks,
            step_cap=setting.step_cap,
            seconds=min(setting.seconds, seconds or setting.seconds),
            count=count,
            cancelled=setting.cancelled,
            watched=watched,
            parts=parts or {},
            shadow=shadow,
        )
    )


def _watched(before: Contents) -> tuple[str, ...]:
    """Inputs that the card made itself: it says whether they changed, and nobody has to fetch them."""
    return tuple(
        buffer.name
        for buffer in before.bound.buffers
        if buffer.access is Access.IN
        and isinstance(data := before.given.get(buffer.name), Recipe)
        and data.made is not None
    )


def run_reordered(setting: Setting, build: Build, before: Contents, **more: Any) -> Answer:
    """Like :func:`run`, with the upper half of each grid before the lower: each launch is made twice, over one half
    each. A kernel whose blocks wait for one another may not end like that, and proves nothing then."""
    launched = iter(range(2 * len(before.bound.steps)))

    def half(total: int) -> tuple[int, ...]:
        upper = next(launched) % 2 == 0
        return tuple(range(total // 2, total)) if upper else tuple(range(total // 2))

    steps = [
        again for step in before.bound.steps for again in ([step, step] if isinstance(step, BoundLaunch) else [step])
    ]
    twice = evolve(before, bound=evolve(before.bound, steps=tuple(steps)))
    return run(setting, build, twice, blocks=half, **more)


def for_candidate(before: Contents, bound: Bound) -> Contents:
    """The same contents under another plan: the workload's buffers keep theirs, the plan's own scratch is new."""
    kept = {name: data for name, data in before.given.items() if not _scratch(before.bound, name)}
    zeroed = {
        buffer.name: Recipe(buffer.nbytes, _zeros) for buffer in bound.buffers if buffer.scratch and buffer.zeroed
    }
    return Contents(bound, kept | zeroed, before.shift)


def _scratch(bound: Bound, name: str) -> bool:
    return any(buffer.name == name and buffer.scratch for buffer in bound.buffers)


FINER = {"f16": 2.0**-13, "bf16": 2.0**-16}
"""One unit in the last place of a float, in those of the types that are stored in 16 bits."""


@frozen
class Nudge:
    """Contents whose floats moved by one unit in the last place. ``finer``: this part of such a move is what float
    arithmetic does to numbers that are stored more coarsely."""

    contents: Contents
    finer: float = 1.0


def nudges(before: Contents, seed: int) -> tuple[Nudge, ...]:
    """Every float moved, up or down by chance; where some are of 16 bits and others are not, also the others alone.
    Empty without floats."""
    floats = [
        buffer
        for buffer in before.bound.buffers
        if buffer.name in before.given and is_float(buffer.dtype) and not buffer.scratch
    ]
    wide = [buffer for buffer in floats if base(buffer.dtype)[0] not in FINER]
    finer = max((FINER[base(buffer.dtype)[0]] for buffer in floats if buffer not in wide), default=1.0)
    moved = [Nudge(_nudged(before, floats, seed), finer)] if floats else []
    return (*moved, Nudge(_nudged(before, wide, seed))) if wide and len(wide) < len(floats) else tuple(moved)


def _nudged(before: Contents, buffers: Sequence[BoundBuffer], seed: int) -> Contents:
    changed = {buffer.name: _nudge_all(before.given[buffer.name], buffer, seed) for buffer in buffers}
    return Contents(before.bound, {**before.given, **changed}, before.shift)


def _nudge_all(data: Bytes | Recipe, buffer: BoundBuffer, seed: int) -> Bytes | Recipe:
    scalar = base(buffer.dtype)[0]
    if not isinstance(data, Recipe):
        return _nudge(data, scalar, 0, seed)
    width, make = size_of(scalar), data.make

    def moved(start: int, stop: int) -> Bytes:
        begin, end = start // width * width, min(data.nbytes, -(-stop // width) * width)
        return _nudge(make(begin, end), scalar, begin // width, seed)[start - begin : stop - begin]

    return Recipe(data.nbytes, moved, evolve(data.made, nudge=seed) if data.made is not None else None)


def _nudge(data: Bytes, scalar: str, place: int, seed: int) -> Bytes:
    """One step in the bit pattern is one unit in the last place; zeros and what is not finite stay (as does the
    largest finite value, which would become infinite). The direction depends on seed and place alone."""
    kind, mantissa = {"f16": ("<i2", 10), "bf16": ("<i2", 7), "f32": ("<i4", 23), "f64": ("<i8", 52)}[scalar]
    bits = np.ascontiguousarray(data).view(kind).copy()
    size = bits.dtype.itemsize * 8
    magnitude = bits & bits.dtype.type((1 << (size - 1)) - 1)
    infinite = ((1 << (size - 1 - mantissa)) - 1) << mantissa
    moves = (magnitude > 0) & (magnitude < infinite - 1)
    index = np.arange(place, place + len(bits), dtype=np.uint64) + np.uint64(seed & 0xFFFF_FFFF)
    up = (index * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(63)
    bits[moves] += np.where(up[moves] != 0, 1, -1).astype(bits.dtype)
    return bits.view(np.uint8)


def widened(before: Contents) -> Contents:
    """The same contents for the float64 twin."""
    dtypes = {buffer.name: buffer.dtype for buffer in before.bound.buffers}
    wide = promote_bound(before.bound)
    given: dict[str, Bytes | Recipe] = {}
    for buffer in wide.buffers:
        data = before.given.get(buffer.name)
        if data is None:
            continue
        if buffer.scratch:
            given[buffer.name] = Recipe(buffer.nbytes, _zeros)
        else:
            given[buffer.name] = _widen(data, dtypes[buffer.name])
    return Contents(wide, given, 2 * before.shift)


def _widen(data: Bytes | Recipe, dtype: str) -> Bytes | Recipe:
    if base(dtype)[0] != "f32":
        return data
    if not isinstance(data, Recipe):
        return promote_bytes(data, dtype)
    make = data.make

    def wide(start: int, stop: int) -> Bytes:
        first, last = start // 8, -(-stop // 8)
        return promote_bytes(make(4 * first, 4 * last), dtype)[start - 8 * first : stop - 8 * first]

    return Recipe(2 * data.nbytes, wide, evolve(data.made, wide=True) if data.made is not None else None)
