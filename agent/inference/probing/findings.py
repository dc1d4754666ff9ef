"""Samples -> what every pointer takes in, the grid and the shared memory, as forms over the scalars; or why not."""

import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from agent.execution.emulator.flow import dynamic_start
from agent.inference.probing.fitting import HELD_OUT, Form, fit, largest
from agent.inference.probing.launching import Launcher, Settled, Unbounded
from agent.inference.probing.mishaps import mishaps, overruns
from agent.inference.probing.outcome import Stop
from agent.inference.probing.pieces import largest_of
from agent.inference.probing.polynomials import Polynomial, is_whole, substitute, written
from agent.inference.probing.reasons import Reasons
from agent.inference.probing.sampling import Design, Variable, moved
from agent.inference.probing.subject import AXES, Pointer
from agent.inference.probing.trial import Three
from agent.workload import dtypes
from agent.workload.expression import build, number
from agent.workload.expression import name as name_of
from agent.workload.workload import Access

_BLOCKS = ("blocks", "blocks_y", "blocks_z")
_SMALL_DIVISORS = (2, 4, 8, 16, 32, 64)
_MOST_DIVISORS = 20
_MUCH = 5_000_000  # thread-instructions of one sample, beyond which a size is not raised any more


@frozen
class Extent:
    """Elements from the first that is touched, or from the pointer where all lie behind it; ``before`` of them lie
    before the pointer. None: no form gives them all."""

    pointer: Pointer
    count: Form | None
    before: Form | None
    access: Access
    accessed: bool = True


@frozen
class Findings:
    """``grid`` has a form or None for each axis; ``tied`` says for which axes the number of blocks was chosen by us."""

    design: Design
    block: Three
    grid: tuple[Form | None, Form | None, Form | None]
    shared: Form | None
    extents: tuple[Extent, ...]
    stops: tuple[Stop, ...]
    notes: tuple[str, ...]
    units: Mapping[str, int]

    @property
    def names(self) -> frozenset[str]:
        """Scalars that anything hangs on."""
        forms = [*self.grid, self.shared, *(one.count for one in self.extents), *(one.before for one in self.extents)]
        return frozenset[str]().union(*(form.names for form in forms if form is not None))

    @property
    def untouched(self) -> frozenset[str]:
        """Pointers that no run touched."""
        return frozenset(one.pointer.name for one in self.extents if not one.accessed)

    @property
    def whole(self) -> bool:
        """Whether every form was found."""
        ends = [form for one in self.extents for form in (one.count, one.before)]
        return None not in (*self.grid, self.shared, *ends)


def find(launcher: Launcher, scalars: Sequence[Variable], fixed: Mapping[str, int | float], unit: int) -> Findings:
    """Sample and fit. Raises Stopped."""
    while True:
        blocks = tuple(Variable(name, "blocks") for name in launcher.free.values())
        design = Design((*scalars, *blocks), max(launcher.block), unit)
        try:
            samples, settled = _sampled(launcher, design, fixed)
        except Unbounded as unbounded:
            _free(launcher, unbounded.axis, fixed, scalars)
            continue
        constant = _of_no_end(launcher, settled)
        if constant is None:
            return _fitted(launcher, design, samples, settled)
        _free(launcher, constant, fixed, scalars)


def _free(launcher: Launcher, axis: int, fixed: Mapping[str, object], scalars: Sequence[Variable]) -> None:
    taken = {*fixed, *(one.name for one in scalars), *(one.name for one in launcher.lab.subject.pointers)}
    name = _BLOCKS[axis]
    while name in taken:
        name += "_"
    launcher.free[axis] = name


def _of_no_end(launcher: Launcher, settled: Sequence[Settled]) -> int | None:
    """An axis along which one block suffices for some pointers at every size, while others go on: that one block does
    something of its own says nothing about how many there are."""
    for axis in launcher.axes:
        alone = all(one.grid[axis] == 1 for one in settled)
        if axis not in launcher.free and alone and any(one.going_on for one in settled):
            return axis
    return None


def _sampled(
    launcher: Launcher, design: Design, fixed: Mapping[str, int | float]
) -> tuple[list[dict[str, int]], list[Settled]]:
    samples: list[dict[str, int]] = []
    settled: list[Settled] = []
    caps: dict[str, int] = {}
    last = ""
    for values in design.alone():
        if any(values[name] > most for name, most in caps.items()):
            continue
        changed = next((name for name, value in values.items() if samples and value != samples[0][name]), "")
        if changed != last:
            launcher.starts.clear()
        last, one = changed, launcher.settle({**fixed, **values})
        if settled and _too_far(one) and not _too_far(settled[0]):
            caps |= {changed: samples[0][changed]}
            continue
        samples.append(values)
        settled.append(one)
        if settled[-1].work > _MUCH:
            caps |= {changed: values[changed]} if changed else {}
    design = evolve(design, caps=caps)
    relevant = moved(samples, [_measures(launcher, one) for one in settled])
    for values in (*design.together(relevant), *design.far(relevant)):
        launcher.starts.clear()
        one = launcher.settle({**fixed, **values})
        if not _too_far(one) or _too_far(settled[0]):
            samples.append(values)
            settled.append(one)
    return samples, settled


def _too_far(settled: Settled) -> bool:
    """Whether anything lay beyond the memory that a trial has: the sizes were too large for it."""
    faults = (fault for seen in settled.seen for fault in seen.faults)
    return any(fault.kind.startswith("out-of-bounds") and "of buffer '" in fault.message for fault in faults)


def _measures(launcher: Launcher, settled: Settled) -> list[int]:
    subject = launcher.lab.subject
    found = [*settled.grid, settled.shared if subject.dynamic_shared else 0]
    for pointer in subject.pointers:
        found += _elements(pointer, settled)
    return found


def _elements(pointer: Pointer, settled: Settled) -> tuple[int, int]:
    """Elements behind the pointer, and before it."""
    span, size = settled.spans.get(pointer.name), dtypes.size_of(pointer.dtype)
    if span is None:
        return 0, 0
    return max(-(-span.high // size), 0), max(-(span.low // size), 0)


def _fitted(
    launcher: Launcher, design: Design, samples: Sequence[Mapping[str, int]], settled: Sequence[Settled]
) -> Findings:
    subject = launcher.lab.subject
    reasons = Reasons(subject, [one for each in settled for seen in each.seen for one in seen.reached])
    stops = list(reasons.stops())
    stops += mishaps(subject, settled, {stop.what for stop in stops})
    closed = {stop.what for stop in stops}
    divisors = _divisors(launcher)
    counts: list[Polynomial] = []
    extents = []
    for pointer in subject.pointers:
        behind, before = zip(*(_elements(pointer, one) for one in settled), strict=True)
        count = offset = None
        accessed = any(behind) or any(before)
        if not accessed and pointer.name not in closed and subject.takes(pointer.name):
            closed.add(pointer.name)
            why = "no run touched it, though the code may: with which values of the scalars, and of what it loads?"
            stops.append(Stop(pointer.name, why, again=True))
        if pointer.name not in closed:
            offset = fit(samples, before, divisors)
            sums = [one + other for one, other in zip(behind, before, strict=True)]
            count = fit(samples, sums, divisors, counts)
            if count is None and offset is not None:
                reach = largest_of(pointer, samples, settled, behind, divisors, counts)
                count = _shifted(reach, offset) if reach is not None else None
            if count is not None and count.polynomial:
                counts.append(count.polynomial)
        extents.append(Extent(pointer, count, offset, _access(pointer, settled), accessed))
    grids = [_grid(launcher, axis, samples, settled, divisors, counts) for axis in range(3)]
    # an extent may hang on the number of blocks, whose form may need the extents of others
    counts += [form.polynomial for form in grids if form is not None and form.polynomial]
    shared = _shared(launcher, samples, settled, divisors, counts)
    for one in extents:
        if one.pointer.name not in closed and (one.count is None or one.before is None):
            why = _unfitted(one.pointer, samples, settled) + reasons.branches()
            stops.append(Stop(one.pointer.name, why, again=True))
    if shared is None:
        why = "the bytes of dynamic shared memory that are used follow no form that was tried"
        stops.append(Stop("shared", why, again=True))
    stops += [
        Stop(
            "grid", f"the number of blocks that have work along {AXES[axis]} follows no form that was tried", again=True
        )
        for axis, form in enumerate(grids)
        if form is None
    ]
    stops += _never_more(launcher, grids, extents)
    x, y, z = grids
    found = Findings(
        design,
        launcher.block,
        (x, y, z),
        shared,
        tuple(extents),
        tuple(stops),
        (*reasons.notes(), *overruns(settled, samples)),
        {},
    )
    return _tied(found, launcher)


def _shifted(reach: Form, offset: Form) -> Form:
    """With the elements before the pointer."""
    return reach if not any(offset.polynomials) else Form(build("+", (reach.expression, offset.expression)))


def _never_more(launcher: Launcher, grids: Sequence[Form | None], extents: Sequence[Extent]) -> Iterator[Stop]:
    """That as many blocks sufficed at all sizes, of a kernel that looks at its block's number: where extents hang on
    sizes, larger ones may need more."""
    looks = any(launcher.lab.subject.guards(AXES[axis]) for axis in launcher.axes)
    same = all(form is not None and not form.names for form in grids)
    if looks and same and any(one.count is not None and one.count.names for one in extents):
        yield Stop("grid", "as many blocks sufficed at every size that was tried; larger ones may need more")


def _divisors(launcher: Launcher) -> tuple[int, ...]:
    x, y, z = launcher.block
    sides = [side for side in (x, y, z, x * y, x * y * z) if side > 1]
    written = launcher.lab.subject.factors
    products = [side * factor for side in sides for factor in (*written, 2, 4, 8) if side * factor <= 8192]
    return tuple(dict.fromkeys((*sides, *written, *products, *_SMALL_DIVISORS)))[:_MOST_DIVISORS]


def _access(pointer: Pointer, settled: Sequence[Settled]) -> Access:
    """``out`` where nothing is read that was not written before; unread and unwritten, it may as well be ``in``."""
    spans = [one.spans[pointer.name] for one in settled if pointer.name in one.spans]
    if not any(span.writes for span in spans):
        return Access.IN
    return Access.INOUT if any(span.fresh for span in spans) else Access.OUT


def _grid(
    launcher: Launcher, axis: int, samples: Sequence[Mapping[str, int]], settled: Sequence[Settled],
    divisors: Sequence[int], counts: Sequence[Polynomial],
) -> Form | None:  # fmt: skip
    if axis in launcher.free:
        name = launcher.free[axis]
        return Form(name_of(name), {(name,): 1})  # type: ignore[dict-item]
    return fit(samples, [one.grid[axis] for one in settled], divisors, counts)


def _shared(
    launcher: Launcher, samples: Sequence[Mapping[str, int]], settled: Sequence[Settled], divisors: Sequence[int],
    counts: Sequence[Polynomial],
) -> Form | None:  # fmt: skip
    subject = launcher.lab.subject
    start = dynamic_start(subject.code.code)
    if not subject.dynamic_shared:
        return Form(number(0), {})
    return fit(samples, [max(one.shared - start, 0) for one in settled], divisors, counts)


def _unfitted(pointer: Pointer, samples: Sequence[Mapping[str, int]], settled: Sequence[Settled]) -> str:
    shown = []
    for values, one in list(zip(samples, settled, strict=True))[-HELD_OUT:-1]:
        at = ", ".join(f"{name}={value}" for name, value in values.items())
        shown.append(f"{sum(_elements(pointer, one))} at {at}")
    return f"its extent follows no form that was tried: {'; '.join(shown)}"


# The number of blocks where nothing bounds it -----------------------------------------------------------------------


def _tied(found: Findings, launcher: Launcher) -> Findings:
    """With a scalar, or a part of one, in the place of each number of blocks that nothing bounds, where that makes the
    extents simpler, or takes up a scalar that nothing else hangs on."""
    left = dict(launcher.free)
    for axis, name in [*launcher.free.items()] * 2:  # one axis may only be seen to be simpler when another is tied
        options = list(_options(found, launcher, axis, name)) if axis in left else []
        if options:
            found = min(options, key=_weight)
            del left[axis]
    return found


def _options(found: Findings, launcher: Launcher, axis: int, name: str) -> Iterator[Findings]:
    weight, used = _weight(found), found.names
    sizes = [variable.name for variable in found.design.variables if variable.kind == "size"]
    for size in sizes:
        for divisor in dict.fromkeys((launcher.block[axis], *launcher.lab.subject.factors, 1)):
            other = _with(found, axis, name, size, divisor)
            if other is not None and (_weight(other) < weight or (_weight(other) == weight and size not in used)):
                yield other


def _with(found: Findings, axis: int, name: str, size: str, divisor: int) -> Findings | None:
    extents, order = [], [variable.name for variable in found.design.variables]
    for one in found.extents:
        count, before = (_replaced(form, name, size, divisor, order) for form in (one.count, one.before))
        if (count is None) != (one.count is None) or (before is None) != (one.before is None):
            return None
        extents.append(evolve(one, count=count, before=before))
    shared = _replaced(found.shared, name, size, divisor, order)
    if (shared is None) != (found.shared is None):
        return None
    blocks = build("/", (name_of(size), number(divisor)))
    x, y, z = (Form(blocks) if index == axis else form for index, form in enumerate(found.grid))
    note = f"nothing in the kernel bounds its blocks along {AXES[axis]}: `{blocks}`, as the extents are simplest so"
    units = {**found.units, size: math.lcm(found.units.get(size, 1), divisor)}
    return evolve(
        found, extents=tuple(extents), shared=shared, grid=(x, y, z), notes=(*found.notes, note), units=units
    )  # fmt: skip


def _replaced(form: Form | None, name: str, size: str, divisor: int, order: Sequence[str]) -> Form | None:
    """None where there was no form, or where the division would leave a rest."""
    if form is None or name not in form.names:
        return form
    if form.parts:
        parts = [_replaced(part, name, size, divisor, order) for part in form.parts]
        kept = [part for part in parts if part is not None]
        return largest(kept) if len(kept) == len(parts) else None
    if form.polynomial is None:
        return Form(form.expression.substitute({name: build("/", (name_of(size), number(divisor)))}))
    polynomial = substitute(form.polynomial, name, size, divisor)
    return Form(written(polynomial, order), polynomial) if is_whole(polynomial) else None


def _weight(found: Findings) -> int:
    """How long the extents are: their terms, and factors that are written as numbers."""
    polynomials = [many for one in found.extents if one.count is not None for many in one.count.polynomials]
    return sum(1 + (abs(factor) != 1) for polynomial in polynomials for factor in polynomial.values())
