"""Saying what races on global memory: who, where, with whom, and of which class."""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.memory_use import changes_global
from agent.execution.emulator.races.records import PLAIN, STRONG, strength_of
from agent.execution.emulator.sites import Site
from agent.execution.emulator.values import width_of

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch
    from agent.execution.emulator.races.global_memory import Ground

RACE = "global-memory race"
UNFENCED = "race behind a lock without a fence"
TESTED, OUTDATED, POLLED = "race on a tested value", "race of a test with an atomic", "race on a polled flag"


@define(eq=False)
class Access:
    """One instruction's access to one cell for each lane, in lane order: ``cells`` of ``buffer``, the first byte of
    which is ``into`` bytes into the access. ``equal`` marks writes that leave what was there (None for reads)."""

    lanes: Lanes
    site: Site
    buffer: Buffer
    cells: Array
    into: int
    mine: Array
    stamps: Array
    mark: np.uint32
    strength: int
    equal: Array | None = None


def report(
    batch: "Batch",
    ground: "Ground",
    access: Access,
    lanes: Array,
    theirs: Array,
    sites: Array,
    verb: str,
    equal: Array,
    unfenced: Array | None = None,
) -> None:
    """Record the races of ``lanes`` (positions in lane order) with the threads ``theirs``, who read or wrote (``verb``)
    at ``sites``; ``equal`` marks those where a write changed nothing, ``unfenced`` those behind a lock."""
    locked = np.zeros(len(lanes), bool) if unfenced is None else unfenced
    for number in np.unique(sites).tolist():
        partner = batch.kernel.sites[number]
        for same, behind in ((False, False), (False, True), (True, False), (True, True)):
            chosen = np.flatnonzero((sites == number) & (equal == same) & (locked == behind))
            if len(chosen):
                found = _class(ground, access, partner, verb, same, behind)
                if found is not None:
                    _record(batch, ground, access, lanes[chosen], theirs[chosen], partner, verb, *found)


def _class(
    ground: "Ground", access: Access, partner: Site, verb: str, same: bool, behind: bool
) -> tuple[str, bool, str] | None:
    """Kind, whether it is harmless by itself, and words for the end of the message; None for a flag as it should be."""
    if same:
        return RACE, True, ", which changes nothing: the value is the same"
    reader = access.site if access.site.instruction.base in ("ld", "ldu") else None
    reader, writer = (partner, access.site) if verb == "read" else (reader, partner)
    if reader is not None and ground.facts.polls(reader.index) and strength_of(reader) > PLAIN:
        return (POLLED, True, ", and is polled there") if strength_of(writer) == PLAIN else None
    if reader is not None and ground.facts.tested(reader.index):
        kind = OUTDATED if strength_of(writer) == STRONG else TESTED
        return kind, True, ", with no order between; the value read only decides branches"
    if behind:
        return UNFENCED, True, ", and no fence follows the compare-and-swap that took the lock"
    return RACE, False, f", with no order between{_weak(access.site, partner)}"


def _weak(one: Site, other: Site) -> str:
    """Which of the two keeps them from being no race at all, where that is one: to PTX, atomics, volatile accesses and
    those marked relaxed or more are strong, and strong ones do not race with one another."""
    weak = [site for site in (one, other) if strength_of(site) == PLAIN]
    if len(weak) != 1:
        return ""
    strong = next(site for site in (one, other) if site is not weak[0])
    beside = "an atomic" if strong.instruction.base in ("atom", "red") else "a volatile or relaxed access"
    what, mend = ("store", "atomicExch") if changes_global(weak[0].instruction) else ("load", "atomicAdd of 0")
    where = f"the plain {what} of line {weak[0].line} is weak beside {beside}"
    return f"; {where}: volatile, relaxed or by an atomic ({mend}) it would not race"


def _record(
    batch: "Batch",
    ground: "Ground",
    access: Access,
    lanes: Array,
    theirs: Array,
    partner: Site,
    verb: str,
    kind: str,
    benign: bool,
    words: str,
) -> None:
    site, first, threads = access.site, int(lanes[0]), ground.threads
    number, thread = divmod(int(theirs[0]), threads)
    mine, own = divmod(int(access.mine[first]), threads)
    batch.faults.record(
        kind,
        batch.kernel.name,
        lambda: batch.place(int(ground.numbers[mine]), own, site),
        lambda: f"{_does(site)} {_element(ground, access, first)}, which line {partner.line} {verb}{words}",
        len(lanes),
        (site.file, site.line),
        lambda: batch.place(int(ground.numbers[number]), thread, partner),
        partner.line,
        benign,
    )


def _does(site: Site) -> str:
    base = site.instruction.base
    if base in ("atom", "red"):
        return "changes by an atomic"
    return "writes" if changes_global(site.instruction) else "reads"


def _element(ground: "Ground", access: Access, lane: int) -> str:
    """``x[5]``: counted in elements of the width that the access has."""
    width = width_of(access.site.instruction.types[0]) if access.site.instruction.types else ground.facts.grain
    offset = int(access.cells[lane]) * ground.facts.grain - access.buffer.start
    return f"{access.buffer.name}[{offset // width}]"
