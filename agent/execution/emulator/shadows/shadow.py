"""The float64 shadow: beside every float, half and bf16 the number that it would be had nothing been rounded.

The program runs as ever and decides where to go; the shadow computes beside it, in float64 and from the same inputs.
Where it would have gone another way it cannot follow: what such threads write from there on is marked, not measured.
``docs/emulator.md`` says which instructions move a shadow, and which lose it.
"""

import numpy as np
from attrs import define, field

from agent.execution.device import ShadowLine, ShadowOutput, Shadows
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.lanes import Lanes, all_lanes
from agent.execution.emulator.shadows.cells import (
    DIGITS,
    PARTED,
    SMALLEST,
    UNITS,
    Cells,
    Flags,
    flags_of,
    gathered,
    joined,
    marked,
    marks_only,
    scattered,
)
from agent.execution.emulator.shadows.planes import CODES, Plane
from agent.execution.emulator.shadows.reach import NOTICED, reaching
from agent.execution.emulator.sites import Site

_TALLIES = ("count", "squares", "most", "brought", "parted")


@define(eq=False)
class Tally:
    """By site of a kernel: results seen, the sum of the squares of their errors and the largest, the largest error
    that operands brought from other lines, and lanes that parted there. Errors in units in the last place."""

    kernel: Kernel
    totals: dict[str, Array] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.totals = {name: np.zeros(len(self.kernel.sites)) for name in _TALLIES}

    def brought(self, site: Site, error: float) -> None:
        """An operand from another line had that error."""
        self.totals["brought"][site.index] = max(self.totals["brought"][site.index], error)

    def grown(self, site: Site, errors: Array) -> None:
        """Results that the line hands on had these errors."""
        totals, index = self.totals, site.index
        totals["count"][index] += errors.size
        totals["squares"][index] += float(np.square(errors).sum())
        totals["most"][index] = max(totals["most"][index], float(errors.max(initial=0.0)))

    def lines(self, kernel: str) -> list[ShadowLine]:
        """The lines on which any number was computed, or lanes parted."""
        found: dict[tuple[str, int], dict[str, float]] = {}
        reaches = self._reaching()
        for site in self.kernel.sites:
            here = {name: float(self.totals[name][site.index]) for name in _TALLIES}
            here["reaching"] = here["most"] if reaches[site.index] else 0.0
            if here["count"] or here["parted"] or here["brought"]:
                line = found.setdefault((site.file, site.line), dict.fromkeys(here, 0.0))
                for name in ("count", "squares", "parted"):
                    line[name] += here[name]
                for name in ("most", "brought", "reaching"):
                    line[name] = max(line[name], here[name])
        return [
            ShadowLine(
                kernel, *place, int(one["count"]), one["most"], (one["squares"] / max(1.0, one["count"])) ** 0.5,
                one["brought"], int(one["parted"]), one["reaching"],
            )
            for place, one in sorted(found.items())
        ]  # fmt: skip

    def _reaching(self) -> Array:
        most = self.totals["most"]
        if not (most >= NOTICED).any():
            return np.zeros(len(most), bool)
        kernel = self.kernel
        return reaching(kernel.sites, kernel.code.items, kernel.users, self.totals["count"], most)


@define(eq=False)
class TwinRun:
    """The shadow of one request: global memory by tag, and what was tallied by kernel."""

    planes: dict[int, Plane] = field(factory=dict)
    tallies: dict[str, Tally] = field(factory=dict)

    def plane(self, buffer: Buffer, make: bool) -> Plane | None:
        found = self.planes.get(buffer.tag)
        if found is None and make:
            found = self.planes[buffer.tag] = Plane(len(buffer.data) // 2)
        return found

    def tally(self, kernel: Kernel) -> Tally:
        return self.tallies.setdefault(kernel.name, Tally(kernel))

    def twin(self, kernel: Kernel, blocks: int, threads: int) -> "Twin":
        """The shadow of a batch of ``blocks``."""
        return Twin(self, self.tally(kernel), all_lanes(blocks, threads))

    def filled(self, target: Buffer, source: Buffer | None = None) -> None:
        """The host set all of ``target``, to a copy of ``source`` where it says so."""
        plane = self.planes.get(target.tag)
        if plane is not None:
            plane.code[target.start // 2 : -(-target.stop // 2)] = 0
        given = self.planes.get(source.tag) if source is not None else None
        if source is not None and given is not None and source.start % 2 == target.start % 2 == 0:
            plane = self.plane(target, True)
            assert plane is not None
            to, of = (slice(one.start // 2, one.start // 2 + one.nbytes // 2) for one in (target, source))
            for name in ("code", "value", "bits", "flags"):
                getattr(plane, name)[to] = getattr(given, name)[of]

    def shadows(self, outputs: dict[str, Buffer], names: dict[str, str]) -> Shadows:
        """What an answer says; ``names`` are the kernels' as the user wrote them."""
        lines = [line for name, tally in self.tallies.items() for line in tally.lines(names.get(name, name))]
        found = {name: _output(self.planes.get(buffer.tag), buffer) for name, buffer in outputs.items()}
        return Shadows({name: one for name, one in found.items() if one is not None}, tuple(lines))


def _output(plane: Plane | None, buffer: Buffer) -> ShadowOutput | None:
    if plane is None or buffer.start % 2:
        return None
    part = slice(buffer.start // 2, buffer.start // 2 + buffer.nbytes // 2)
    held = buffer.contents()[: buffer.nbytes // 2 * 2].view(np.uint16)
    formats = {kind: CODES[kind, 0] for kind in UNITS}
    return ShadowOutput(plane.code[part], plane.value[part], plane.flags[part], plane.bits[part], held, formats)


@define(eq=False)
class Twin:
    """The shadow of one batch. ``cells`` are those of registers, by entry, for the whole batch. ``parted``: lanes that
    went another way than they would have without rounding (None: none did)."""

    run: TwinRun
    tally: Tally
    everyone: Lanes
    cells: dict[int, Cells] = field(factory=dict)
    parted: Array | None = None
    planes: dict[int, Plane] = field(factory=dict)

    def chip(self, tag: int, units: int) -> Plane | None:
        """The shadow of shared or local memory, made where it is to have ``units`` of 16 bits."""
        if tag not in self.planes and units:
            self.planes[tag] = Plane(units)
        return self.planes.get(tag)

    def get(self, lanes: Lanes, entry: int) -> Cells | None:
        return gathered(lanes, self.cells.get(entry))

    def put(self, lanes: Lanes, entry: int, cells: Cells | None) -> None:
        if cells is not None and not any(cells):
            cells = None
        merged = scattered(lanes, self.cells.get(entry), cells)
        if merged is None:
            self.cells.pop(entry, None)
        else:
            self.cells[entry] = merged

    def astray(self, lanes: Lanes) -> Flags:
        """The mark of those of the lanes that have parted."""
        if self.parted is None:
            return None
        return marked(lanes.gather(self.parted), PARTED)

    def branch(self, lanes: Lanes, entry: int, site: Site) -> None:
        """A branch on ``entry``: lanes that would have gone another way without rounding part here, and so do those
        of whom that is not known."""
        cells = self.get(lanes, entry)
        if cells is None or cells[0] is None:
            return
        flags = flags_of(cells)
        away = cells[0].value != 0 if flags is None else (cells[0].value != 0) | (flags != 0)
        self.part(lanes, away, site)

    def part(self, lanes: Lanes, away: Array, site: Site) -> None:
        """The lanes where ``away`` holds part at ``site``."""
        if not away.any():
            return
        wide = np.broadcast_to(away, lanes.shape)
        before = np.zeros(self.everyone.shape, bool) if self.parted is None else self.parted
        already = np.broadcast_to(lanes.gather(before), lanes.shape)
        self.tally.totals["parted"][site.index] += int((wide & ~already).sum())
        now = lanes.scatter(before, np.ascontiguousarray(wide | already))
        self.parted = np.array(np.broadcast_to(now, self.everyone.shape))

    def marks(self, lanes: Lanes, *more: Flags) -> Flags:
        return joined(self.astray(lanes), *more)

    def unknown(self, lanes: Lanes, entry: int, flags: Flags, units: int, kind: str = "bits") -> None:
        """The entry holds what the program has; only marks come along."""
        self.put(lanes, entry, marks_only(flags, units, kind))


def errors(value: Array, shadow: Array, kind: str, flags: Flags) -> Array:
    """How far values lie from their shadows, in units in the last place of the larger of the two, as far as they may
    be compared: marked ones are left out. A result that is off by all of itself has 2**23 (for a float)."""
    size = np.maximum(np.maximum(np.abs(value), np.abs(shadow)), SMALLEST[kind])
    off = np.abs(value - shadow) / size
    off = np.where(np.isfinite(shadow) & ~np.isfinite(value), 1.0, off)
    # zeros on both sides, or nothing to compare with
    off = np.where(np.isfinite(off), np.minimum(off, 1.0), 0.0) * 2.0 ** DIGITS[kind]
    return off if flags is None else np.where(flags == 0, off, 0.0)
