"""What a profile says of a whole kernel: totals, caches, resources, the estimate, and where all of it is from."""

from collections.abc import Callable, Iterator, Mapping

from agent.evaluation.lines.facts import SECTOR_BYTES, WARP, Facts
from agent.evaluation.lines.profile import Profile, ProfiledLaunch, longest, terms
from cuda_lsp.terminal.profile_cells import number, share, short
from cuda_lsp.terminal.render import duration, line, size


def totals(profile: Profile) -> Iterator[str]:
    """What was counted in all, and what the kernel holds of a multiprocessor."""
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
    """Bytes at each level as the model of agent/evaluation/estimates/caches.py has them."""
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


def _sectors(facts: Facts) -> int:
    return facts.sectors + facts.local.sectors


MEASURES: Mapping[str, tuple[str, Callable[[Facts], int]]] = {
    "DRAM bandwidth": ("sectors", _sectors),
    "L2 bandwidth": ("sectors", _sectors),
    "L1 throughput": ("sectors", _sectors),
    "shared memory": ("passes", lambda facts: facts.shared.passes),
    "instruction issue": ("instructions", lambda facts: facts.instructions),
    "integer throughput": ("whole-number instructions", lambda facts: facts.mix.get("int", 0)),
    "fp32 throughput": ("fp32 instructions", lambda facts: facts.mix.get("fp32", 0)),
    "fp64 throughput": ("fp64 instructions", lambda facts: facts.mix.get("fp64", 0)),
    "tensor cores": ("tensor instructions", lambda facts: facts.mix.get("tensor", 0)),
    "special functions": ("special instructions", lambda facts: facts.mix.get("special", 0)),
    "warp shuffles": ("shuffles", lambda facts: facts.mix.get("shuffle", 0)),
    "barriers": ("barriers", lambda facts: facts.barriers),
    "atomics in one place": ("rounds of atomics", lambda facts: facts.atomics.rounds),
}
"""What of a line's counts makes a resource busy, by the names of the estimate's terms."""


def _most_of(profile: Profile, limit: str) -> str:
    """The line that most of the limiting resource goes to, where there is one."""
    what, measure = MEASURES.get(limit, ("", lambda facts: 0))
    most = max(profile.lines, key=lambda one: measure(one.facts), default=None)
    if most is None or not measure(most.facts):
        return ""
    return f" ({measure(most.facts) / measure(profile.total):.0%} of the {what} at line {most.number})"


def estimates(profile: Profile) -> Iterator[str]:
    """Over all launches of the kernel; what limits is what limits those that take longest."""
    count = sum(one.times for one in profile.launches)
    of = f" for {count:,} launches" if count > 1 else ""
    limit = longest(profile.launches).limit
    limit += _most_of(profile, limit)
    said = f"{duration(profile.seconds)} on {profile.target}{of}, limited by {limit}"
    yield line("estimate", f"{said}; from what was counted in the emulator at {profile.sizes}, not measured")
    yield from _terms(terms(profile.launches))


def _terms(found: Mapping[str, float]) -> Iterator[str]:
    most, width = max(found.values(), default=0.0), max(map(len, found), default=0)
    for name, seconds in sorted(found.items(), key=lambda pair: -pair[1]):
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
