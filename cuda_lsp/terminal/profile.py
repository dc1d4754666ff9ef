"""A profile as a terminal shows it: an annotated listing, and below it totals, resources and the estimate."""

from collections.abc import Iterable, Iterator, Mapping
from math import ceil, prod

from attrs import frozen

from agent.evaluation.line_costs import Bad, CountedLine, LineCounts, bad_lines
from agent.evaluation.line_facts import SECTOR_BYTES, WARP, Facts, ProfiledLine
from agent.evaluation.line_profile import Profile, ProfiledLaunch
from cuda_lsp.terminal.profile_cells import COLUMNS, DIM, LETTERS, Cell, Whole, number, share, short
from cuda_lsp.terminal.profile_table import Paper, Row, printable, write
from cuda_lsp.terminal.render import duration, line, size

NEAR = 2
"""Lines between two that were counted, outside the kernel, that are shown with them."""


@frozen
class Shown:
    """What is shown of a file: its lines, the kernel's first and last (1-based), and further lines under a line:
    PTX with its counts where ``ptx``, and SASS by line."""

    source: tuple[str, ...]
    first: int
    last: int
    ptx: bool = False
    sass: Mapping[int, tuple[str, ...]] | None = None


def show(profile: Profile, shown: Shown, paper: Paper) -> None:
    """Print all of it."""
    bad = flagged(profile)
    whole = Whole(profile.total, warps(profile))
    rows = list(_rows(profile, shown, whole, {one.line for one in bad}))
    write(paper, COLUMNS, rows)
    for text in (_legend(profile), "", *_bad(bad), *_totals(profile), "", *_estimates(profile)):
        paper.wrap(text)


def warps(profile: Profile) -> int:
    """All warps of all launches."""
    return max(1, sum(one.blocks * one.times * ceil(prod(one.block) / WARP) for one in profile.launches))


def flagged(profile: Profile) -> tuple[Bad, ...]:
    """The lines that cost a good deal more than they must, by the rules of the editor's hints."""
    counted = tuple(part for one in profile.lines for part in _counted(one))
    return bad_lines(LineCounts(profile.kernel, counted, 1, profile.launches[0].block, profile.sizes))


def _counted(one: ProfiledLine) -> Iterator[CountedLine]:
    """Loads, stores and atomics of a line apart: what is bad about one of them is not thinned by another."""
    facts = one.facts
    for traffic, atomics in ((facts.stores, 0), (facts.updates, facts.updates.requests)):
        if traffic.requests:
            yield CountedLine(
                one.number,
                requests=traffic.requests,
                sectors=traffic.sectors,
                ideal_sectors=traffic.ideal_sectors,
                atomics=atomics,
            )
    yield CountedLine(
        one.number,
        requests=facts.loads.requests,
        sectors=facts.loads.sectors,
        ideal_sectors=facts.loads.ideal_sectors,
        shared_requests=facts.shared.requests,
        passes=facts.shared.passes,
        ideal_passes=max(1, round(facts.shared.ideal_passes / max(1, facts.shared.requests))),
        local_requests=facts.local.requests,
        instructions=facts.instructions,
        lanes=facts.lanes,
    )


# --- the listing ------------------------------------------------------------------------------------------------------


def _rows(profile: Profile, shown: Shown, whole: Whole, bad: set[int]) -> Iterator[Row]:
    counted = {one.number: one for one in profile.lines}
    ranges = [*_outside(shown, sorted(counted)), (shown.first, shown.last)]
    for place, (first, last) in enumerate(sorted(ranges)):
        if place:
            yield Row("", (), "", style=DIM)
        for at in range(first, min(last, len(shown.source)) + 1):
            yield from _line_rows(at, counted.get(at), shown, whole, at in bad)
    if profile.elsewhere.instructions:
        yield Row("", _cells(profile.elsewhere, whole), "(code that belongs to no line of this file)", style=DIM)


def _line_rows(at: int, counted: ProfiledLine | None, shown: Shown, whole: Whole, bad: bool) -> Iterator[Row]:
    text = printable(shown.source[at - 1])
    if counted is None:
        yield Row(str(at), (), text, style=DIM)
        return
    yield Row(str(at), _cells(counted.facts, whole), text, bad, "" if counted.facts.instructions else DIM)
    for one in counted.ptx if shown.ptx else ():
        yield Row("", _cells(one.facts, whole), f"        {printable(one.text)}", style=DIM)
    for instruction in (shown.sass or {}).get(at, ()):
        yield Row("", (), f"        {printable(instruction)}", style=DIM)


def _cells(facts: Facts, whole: Whole) -> tuple[Cell, ...]:
    return tuple(column.cell(facts, whole) for column in COLUMNS)


def _outside(shown: Shown, numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges of counted lines outside the kernel: functions that it calls."""
    found: list[tuple[int, int]] = []
    for at in numbers:
        if shown.first <= at <= shown.last:
            continue
        between = found and found[-1][1] < shown.first < at
        if found and at - found[-1][1] <= NEAR + 1 and not between:
            found[-1] = (found[-1][0], at)
        else:
            found.append((at, at))
    return found


def _legend(profile: Profile) -> str:
    kinds = ", ".join(f"{LETTERS.get(name, name[:1].upper())} {name}" for name in profile.total.mix)
    return f"     instructions a warp, of PTX: {kinds}"


def _bad(bad: tuple[Bad, ...]) -> Iterator[str]:
    for one in bad:
        yield line(f"line {one.line}", f"{one.words}. {one.meaning}")
    if bad:
        yield ""


# --- totals -----------------------------------------------------------------------------------------------------------


def _totals(profile: Profile) -> Iterator[str]:
    facts = profile.total
    mix = ", ".join(f"{name} {share(count, facts.instructions)}" for name, count in facts.mix.items())
    lanes = number(facts.lanes / max(1, facts.instructions))
    yield line("total", f"{short(facts.instructions)} warp-instructions: {mix}; {lanes} of {WARP} lanes at work")
    if facts.requests:
        yield line("global", _global(facts))
        yield line("caches", _caches(profile))
    if facts.shared.requests:
        ways = number(facts.shared.passes / facts.shared.ideal_passes)
        yield line(
            "shared", f"{short(facts.shared.requests)} accesses, {short(facts.shared.passes)} passes, {ways}-way"
        )
    if facts.branches.executed:
        parted = share(facts.branches.divergent, facts.branches.executed)
        active = number(facts.branches.lanes / facts.branches.executed)
        yield line("branches", f"{short(facts.branches.executed)}, {parted} divergent, {active} lanes at them")
    if facts.barriers:
        yield line("barriers", f"{short(facts.barriers)} by warps")
    if facts.atomics.requests:
        yield line("atomics", _atomics(profile))
    yield line("local", _local(profile))
    yield line("resources", _resources(profile))


def _global(facts: Facts) -> str:
    parts = [
        f"{short(traffic.requests)} {name} of {number(traffic.sectors / traffic.requests)} sectors on average"
        f" ({number(traffic.ideal_sectors / traffic.requests)} would do)"
        for name, traffic in (("loads", facts.loads), ("stores", facts.stores), ("atomics", facts.updates))
        if traffic.requests
    ]
    asked, ideal = size(SECTOR_BYTES * facts.sectors), size(SECTOR_BYTES * facts.ideal_sectors)
    return f"{'; '.join(parts)}; {asked} asked for, {ideal} would do"


def _caches(profile: Profile) -> str:
    """Bytes at each level as the model of agent/evaluation/caches.py has them."""
    asked, loaded = _moved(profile, "asked"), _moved(profile, "loaded")
    hits = f" (loads hit L1 {max(0.0, 1 - loaded / asked):.0%})" if asked else ""
    crossed, dram, least = (size(_moved(profile, name)) for name in ("l2", "dram", "compulsory"))
    return f"{crossed} L1 to L2{hits}, {dram} to DRAM ({least} at least), by the cache model"


def _moved(profile: Profile, name: str) -> float:
    """Bytes, over all launches."""
    return SECTOR_BYTES * sum(float(getattr(one.moved, name)) * one.times for one in profile.launches)


def _atomics(profile: Profile) -> str:
    facts = profile.total.atomics
    text = f"{short(facts.requests)} by warps, {number(facts.rounds / facts.requests)} rounds each"
    for one in profile.launches:
        for name, (queued, wanted) in one.queues.items():
            most = f", {short(wanted)} of them in one sector that every block goes to" if wanted else ""
            text += f"; {short(queued)} operations queue in {name}{most}"
    return text


def _local(profile: Profile) -> str:
    local, used = profile.total.local, profile.resources
    found = "no accesses in the PTX"
    if local.requests:
        crossed, dram = size(_moved(profile, "local_l2")), size(_moved(profile, "local_dram"))
        found = f"{short(local.requests)} accesses, {size(local.bytes)}, of which {crossed} to L2 and {dram} to DRAM"
    if used is None:
        return found
    if not used.spill_stores + used.spill_loads:
        return f"{found}; no spills"
    spilled = f"{used.spill_stores} B spilled and {used.spill_loads} B reloaded in the code of a thread"
    return f"{found}; {spilled}, by the assembler: no line shows it"


def _resources(profile: Profile) -> str:
    one, used = profile.launches[0], profile.resources
    held = one.occupancy
    registers = f"{used.registers} registers, " if used else ""
    shared = size(one.shared + (used.static_shared if used else 0))
    blocks = f"{held.blocks_per_sm} block{'s' * (held.blocks_per_sm != 1)} of {_extents(one.block)} threads"
    return (
        f"{registers}{shared} shared, occupancy {held.ratio:.0%} ({held.limiter}): {blocks} on an SM of {profile.arch}"
    )


# --- the estimate -----------------------------------------------------------------------------------------------------

BAR = 24
FEW = 2
LEAST_TERM = 0.02
"""Of the longest: what takes less is not worth a line."""


def _estimates(profile: Profile) -> Iterator[str]:
    """Over all launches of the kernel; what limits is what limits those that take longest."""
    count = sum(one.times for one in profile.launches)
    of = f" for {count:,} launches" if count > 1 else ""
    longest = max(profile.launches, key=lambda one: one.seconds * one.times)
    said = f"{duration(profile.seconds)} on {profile.target}{of}, limited by {longest.limit}"
    yield line("estimate", f"{said}; from what was counted in the emulator at {profile.sizes}, not measured")
    terms: dict[str, float] = {}
    for one in profile.launches:
        for name, seconds in one.terms.items():
            terms[name] = terms.get(name, 0.0) + seconds * one.times
    yield from _terms(terms)


def _terms(terms: Mapping[str, float]) -> Iterator[str]:
    most, width = max(terms.values(), default=0.0), max(map(len, terms), default=0)
    for name, seconds in sorted(terms.items(), key=lambda pair: -pair[1]):
        if most and seconds >= LEAST_TERM * most:
            bar = "█" * max(1, round(BAR * seconds / most))
            yield line("", f"{name:<{width}}  {bar:<{BAR}}  {duration(seconds)}")


def provenance(profile: Profile) -> str:
    """Where the figures are from, with what they are not."""
    ran = list(dict.fromkeys(map(_ran, profile.launches)))
    if len(ran) > FEW:
        ran = [f"some blocks of {len(profile.launches)} different launches"]
    sizes = f"{profile.sizes}{'' if profile.declared else ' (the declared size takes too long here)'}"
    scaled = "" if profile.complete else ", scaled to all blocks"
    return (
        f"in the emulator, not measured: {', '.join(ran)} at {sizes}{scaled}; "
        f"PTX of {profile.compiler} for {profile.arch}"
    )


def _ran(one: ProfiledLaunch) -> str:
    """``9 of 262,144 blocks of 32x8 threads``."""
    ran = f"{one.blocks_run:,} of {one.blocks:,}" if one.blocks_run < one.blocks else f"all {one.blocks:,}"
    times = f" (launched {one.times:,} times)" if one.times > 1 else ""
    return f"{ran} block{'s' * (one.blocks != 1)} of {_extents(one.block)} threads{times}"


def _extents(size: tuple[int, int, int]) -> str:
    """``32x8`` of (32, 8, 1)."""
    used = max([1, *(axis + 1 for axis, extent in enumerate(size) if extent != 1)])
    return "x".join(map(str, size[:used]))
