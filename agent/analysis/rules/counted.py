"""What running a kernel says about a finding: for each rule that foretells something countable, how a count decides.

The counts come in as data, from whoever ran the kernel: a rule read the source, and the count is what happened. A
decider answers True (it is so), False (it is not), or None where these counts do not tell. Rules without a decider
speak of what no run on one input shows (a wrong size elsewhere, a habit, the host's code).
"""

import re
from collections.abc import Callable, Iterable

from attrs import frozen

CLEAN = 1.25
"""Up to so many times what would do, an access is as good as it gets."""
BAD = 2.0
WARP = 32
FEWEST_LANES = 8
"""With fewer lanes of a warp at work, their places tell nothing."""
REPEATED = 1.5
"""Times that a warp executes an instruction, on average, from which it is in a loop."""

POWER = 60
PRODUCT = 20
"""Instructions of a line that a power is surely among, or surely not."""

_ANYWHERE = re.compile(r"(?:ld|st|atom|red)(?!.*\.(?:global|shared|local|param|const))")
"""An access through an address that may point anywhere."""
_RACES = frozenset(("shared-memory race", "global-memory race", "race on a tested value", "race on a polled flag"))


@frozen
class Executed:
    """One instruction as it was executed, or all of one line together. ``kind`` and ``opcode`` are PTX's (``shared``,
    ``ld.global.f32``), empty for a whole line; ``warps`` counts executions by a warp, ``lanes`` their active lanes.
    ``requests``, ``sectors`` and ``ideal_sectors`` are of global memory, ``shared``, ``passes`` and ``ideal_passes`` of
    shared memory, ``local`` of local. ``width`` is in bytes for each lane (0: no access, or not known)."""

    kind: str = ""
    opcode: str = ""
    warps: int = 0
    lanes: int = 0
    requests: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    shared: int = 0
    passes: int = 0
    ideal_passes: int = 0
    local: int = 0
    atomics: int = 0
    divergent: int = 0
    width: int = 0


@frozen
class Counted:
    """``line`` is what was executed on the lines of the finding, ``kernel`` in all of the kernel; ``faults`` are the
    kinds seen on the finding's lines, ``problem`` what the compiler refused. ``threads`` are those of a block that the
    program launches and ``warps`` all that ran (0: not known); ``shared`` the dynamic bytes of that launch, ``dynamic``
    whether the compiled kernel has such memory at all, and ``promised`` how often warps load where all pointers are
    declared ``__restrict__`` (None: not known). ``raced`` says whether there are races without the barriers that the
    finding is about (None: not tried), ``declared`` what the toolkit's headers say of the function that it names
    (``declared``, ``deprecated``, ``gone`` or nothing)."""

    line: tuple[Executed, ...] = ()
    kernel: tuple[Executed, ...] = ()
    faults: frozenset[str] = frozenset()
    problem: str = ""
    threads: int = 0
    warps: int = 0
    shared: int | None = None
    promised: int | None = None
    dynamic: bool | None = None
    raced: bool | None = None
    declared: str = ""


Decide = Callable[[Counted], bool | None]


def decide(rule: str, counted: Counted) -> bool | None:
    """Whether a finding of ``rule`` is true by these counts; None where they do not tell."""
    decider = DECIDERS.get(rule)
    return None if decider is None else decider(counted)


def _worst(ratios: Iterable[float]) -> bool | None:
    worst = max(ratios, default=None)
    if worst is None or CLEAN < worst < BAD:
        return None
    return worst >= BAD


def _traffic(counted: Counted) -> bool | None:
    """Sectors per request, the worst access of the line: at least twice the ideal, or none worse than clean."""
    return _worst(
        one.sectors / one.ideal_sectors
        for one in counted.line
        if one.ideal_sectors and one.kind in ("", "load", "store") and many(one)
    )


def _conflicts(counted: Counted) -> bool | None:
    """Passes over shared memory, in the same way."""
    return _worst(one.passes / one.ideal_passes for one in counted.line if one.ideal_passes and many(one))


def many(one: Executed) -> bool:
    """Whether so many lanes were at work that their places tell something."""
    return one.lanes >= FEWEST_LANES * one.warps


def _local(counted: Counted) -> bool | None:
    """Accesses to local memory on the line; contradicted where the whole kernel has none."""
    if any(one.local or ".local" in one.opcode for one in counted.line):
        return True
    return False if counted.kernel and not _local_anywhere(counted) else None


def _local_anywhere(counted: Counted) -> bool | None:
    return True if any(one.local or ".local" in one.opcode for one in counted.kernel) else None


def _double(counted: Counted) -> bool | None:
    """Arithmetic in double on the line; contradicted where the whole kernel has none."""
    if any(".f64" in one.opcode for one in counted.line):
        return True
    known = [one.opcode for one in counted.kernel if one.opcode]
    return False if known and not any(".f64" in one for one in known) else None


def _division(counted: Counted) -> bool | None:
    """A division or remainder of whole numbers by what is no constant: for those PTX has no such instruction left."""
    known = [one.opcode for one in counted.line if one.opcode]
    whole = [one for one in known if one.startswith(("div.", "rem.")) and one.split(".")[-1][0] in "su"]
    return bool(whole) if known else None


def _root_and_division(counted: Counted) -> bool | None:
    known = {one.opcode.split(".")[0] for one in counted.line if one.opcode}
    if "rsqrt" in known and "sqrt" not in known:
        return False
    if "sqrt" in known and known & {"div", "rcp"}:
        return True
    every = {one.opcode.split(".")[0] for one in counted.kernel if one.opcode}
    return False if every and not every & {"sqrt", "rsqrt", "div", "rcp"} else None


def _power(counted: Counted) -> bool | None:
    """A power is a hundred instructions on its line, and a product that the compiler made of it a few."""
    written = sum(1 for one in counted.line if one.opcode)
    return written >= POWER if written >= POWER or 0 < written <= PRODUCT else None


def _parted(counted: Counted) -> bool | None:
    return True if any(one.divergent for one in counted.line) else None


def _few_lanes(counted: Counted) -> bool | None:
    """Accesses to shared memory with half of the lanes or fewer."""
    there = [one for one in counted.line if one.shared and one.warps]
    return True if any(one.lanes <= WARP / 2 * one.warps for one in there) else None


def _alone(counted: Counted) -> bool | None:
    """Executed by one lane, again and again."""
    there = [one for one in counted.line if one.warps]
    if not there:
        return None
    return True if all(one.lanes == one.warps for one in there) and max(one.warps for one in there) > 2 else None


def _partial(counted: Counted) -> bool | None:
    return counted.threads % WARP != 0 if counted.threads else None


def _one_warp(counted: Counted) -> bool | None:
    return counted.threads <= WARP if counted.threads else None


def _again(*kinds: str) -> Decide:
    """Some instruction of these kinds on the line is executed several times by a warp, or all together are not. What
    is left over of an unrolled loop is executed once, and says nothing."""

    def decider(counted: Counted) -> bool | None:
        times = [one.warps / counted.warps for one in counted.line if one.kind in kinds] if counted.warps else []
        if not any(times) or max(times) < REPEATED <= sum(times):
            return None
        return max(times) >= REPEATED

    return decider


def _one_place(counted: Counted) -> bool | None:
    """Atomics of more lanes than a sector holds elements, and one sector: some meet at an address."""
    there = [one for one in counted.line if one.atomics and one.requests]
    if not there:
        return None
    return True if any(one.lanes > 8 * one.warps and one.sectors <= one.requests for one in there) else None


def _tree(counted: Counted) -> bool | None:
    """Barriers in rounds: several for each warp."""
    barriers = sum(one.warps for one in counted.kernel if one.kind == "barrier")
    return True if counted.warps and barriers >= 4 * counted.warps else None


def _narrow(counted: Counted) -> bool | None:
    scalar = [one for one in counted.line if one.kind == "load" and ".v" not in one.opcode]
    return True if len(scalar) >= 4 else None


def _reloaded(counted: Counted) -> bool | None:
    """Fewer loads where the compiler knows that nothing overlaps."""
    loads = sum(one.warps for one in counted.kernel if one.kind == "load")
    return True if counted.promised is not None and counted.promised < loads else None


def _too_large(counted: Counted) -> bool | None:
    return counted.threads > 1024 if counted.threads else None


def _much_shared(counted: Counted) -> bool | None:
    return counted.shared > 48 * 1024 if counted.shared is not None else None


def _unused_shared(counted: Counted) -> bool | None:
    """Dynamic shared memory that the compiled kernel does not have."""
    return None if counted.dynamic is None else not counted.dynamic


def _one_way(counted: Counted) -> bool | None:
    """Shared memory that the whole kernel only stores to, or only loads from; contradicted by nothing, as an array may
    be one of several."""
    known = [one.opcode for one in counted.kernel if one.opcode]
    if not known or any(_ANYWHERE.match(one) for one in known):
        return None
    shared = [one for one in known if ".shared" in one and not one.startswith(("ld.param", "cvta", "mov"))]
    loads = [one for one in shared if one.startswith("ld")]
    stores = [one for one in shared if one.startswith("st")]
    return True if len(loads) == len(shared) or len(stores) == len(shared) else None


def _idle(counted: Counted) -> bool | None:
    """Barriers without which nothing races, where the kernel was run without them."""
    return None if counted.raced is None else not counted.raced


def _removed(counted: Counted) -> bool | None:
    """What the toolkit's headers declare no longer, or only to be left alone."""
    return counted.declared != "declared" if counted.declared else None


def _refused(words: str) -> Decide:
    pattern = re.compile(words)
    return lambda counted: True if pattern.search(counted.problem) else None


def _fault(*kinds: str) -> Decide:
    """A fault on the finding's lines proves it; a run without one proves nothing."""
    wanted = frozenset(kinds)
    return lambda counted: True if counted.faults & wanted else None


_STOPPED = _fault("divergent barrier", "barrier of a split warp", "deadlock")
_RACED = _fault(*_RACES)
_OUTSIDE = _fault("out-of-bounds read", "out-of-bounds write")

DECIDERS: dict[str, Decide] = {
    **dict.fromkeys(("M1", "M2", "M3", "M4"), _traffic),
    **dict.fromkeys(("S1", "S2"), _conflicts),
    "R1": _local,
    "R2": _local_anywhere,
    **dict.fromkeys(("A1", "A3"), _double),
    "A4": _power,
    "A5": _root_and_division,
    "A6": _division,
    "D1": _parted,
    "D2": _few_lanes,
    "D3": _alone,
    "L1": _partial,
    "L2": _too_large,
    "L4": _OUTSIDE,
    "L14": _removed,
    **dict.fromkeys(("M6", "M7"), _reloaded),
    "M8": _narrow,
    "M10": _again("store"),
    "M12": _fault("misaligned access"),
    "S3": _one_way,
    "S4": _refused(r"uses too much shared data"),
    "S5": _OUTSIDE,
    "S6": _unused_shared,
    "S7": _much_shared,
    "S8": _idle,
    "T1": _one_place,
    "T2": _again("atomic"),
    "W1": _refused(r'identifier "__(shfl|any|all|ballot)\w*" is undefined'),
    **dict.fromkeys(("W2", "W3"), _fault("invalid shuffle mask", "incomplete warp")),
    "W6": _tree,
    **dict.fromkeys(("Y1", "Y2"), _STOPPED),
    **dict.fromkeys(("Y3", "Y4", "Y7", "Y8", "Y11"), _RACED),
    "Y5": _idle,
    "Y6": _one_warp,
}
"""Only of these a count can say that they are wrong, and it takes them back while somebody types."""
