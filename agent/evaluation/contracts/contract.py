"""What the original promises, found by running it: in bounds, free of races, deterministic, and for which sizes.

Candidates are judged inside this contract. An original that breaks it at the sizes that the workload declares is
reported first: nothing can be compared with it.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from attrs import evolve, frozen

from agent.evaluation import runs
from agent.evaluation.comparators import Expected
from agent.evaluation.contracts.probed import hold, probed, refuse_short
from agent.evaluation.joined import Pair, joined
from agent.evaluation.oracles.truth import Bench, outputs
from agent.evaluation.runs import ALL_CHECKS, PRIORS, Case
from agent.evaluation.sizes import Rule, Sizes, bases, bound_at, ceilings, declared, describe, least, variants
from agent.evaluation.values import Mask, lane_mask
from agent.execution.device import NOWHERE, Answer, Device, Fault
from agent.workload.binding import Bound, BoundLaunch
from agent.workload.dtypes import is_float, is_raw
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.workload import Access, Workload

_UNINITIALISED = "uninitialised read"
"""No fault by itself in global or local memory: the value may be thrown away, and whether it matters shows over two
prior contents. Shared memory has no prior contents to vary, so there it always counts."""

LIMIT = "step limit"

ENDLESS = 20_000
"""Instructions a thread, on average, below which a run that did not end is only a large one: nothing is said of it."""

PROBE_SECONDS = 6.0

_HARMLESS = {
    "shared-memory race": "writes of equal values",
    "global-memory race": "writes of equal values",
    "race on a tested value": "values that are tested while others write them",
    "race of a test with an atomic": "values that are tested beside atomics",
    "race on a polled flag": "flags that are polled",
    "race behind a lock without a fence": "locks that are taken without a fence",
    "read-only load of a written value": "values that are loaded as read-only after they were written",
}
"""Races that correct programs have too, and how the contract says so."""

_SPLIT = ("barrier of a split warp", True)


@frozen
class Contract:
    """``summary`` is one line for users. ``broken``: the original breaks it where the workload runs it (``fault``).

    ``rules`` by size name; ``base`` are the small sizes that all is built on; ``tried`` the sizes that ran clean.
    ``kinds`` says how each output is compared. ``hazards`` are fault kinds that the original has too (same-value races,
    reads of values that are thrown away). ``unaligned``: it also runs on buffers that are aligned to one element only.
    ``joined``: outputs in any order whose elements of one index belong together.
    """

    summary: str
    broken: bool
    base: Mapping[str, int]
    rules: Mapping[str, Rule]
    kinds: Mapping[str, str]
    deterministic: bool
    hazards: frozenset[tuple[str, bool]]
    tried: Mapping[str, Mapping[str, int]]
    unaligned: bool
    fault: Fault | None = None
    joined: tuple[Pair, ...] = ()


@frozen
class _Probe:
    """One run of the original. ``answer`` None: the sizes do not even bind. ``full``: outputs written whole."""

    sizes: Mapping[str, int]
    answer: Answer | None
    full: frozenset[str] = frozenset()
    why: str = ""

    @property
    def faults(self) -> tuple[Fault, ...]:
        return serious(self.answer.faults) if self.answer else ()

    @property
    def clean(self) -> bool:
        return self.answer is not None and self.answer.status in ("ok", "fault") and not self.faults


def serious(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Those that no correct program has."""
    return tuple(fault for fault in faults if not fault.benign and not _harmless(fault))


def _harmless(fault: Fault) -> bool:
    return fault.kind == _UNINITIALISED and "shared memory" not in fault.message


def find_contract(bench: Bench, checker: Device) -> Contract | Answer:
    """Run the original at small sizes with every check on ``checker`` (a device that has them).

    An Answer comes back where nothing could be learnt: an instruction that the emulator lacks, a time-out, no device.
    Raises ShortExtent where it goes beyond an extent that was probed: that is no fault of the original's.
    """
    probe = _prober(bench, checker)
    ran: list[_Probe] = []
    for sizes in bases(bench.workload, bench.original):
        found = probe(sizes)
        ran.append(found)
        if found.clean or (found.answer is not None and not found.faults):
            break
    best = ran[-1]
    if not best.clean:
        return _give_up(bench, ran) if not _unfinished(best) else _endless(bench, checker, best, probe)
    rules = _rules(best, probe, declared(bench.workload), ceilings(bench.workload, bench.original))
    first_fault = next((item for item in ran if item.faults), None)
    if first_fault is not None and not all(
        rules[name].allows(value) for name, value in declared(bench.workload).items()
    ):
        return _broken(first_fault, bench.workload)
    return _settle(bench, checker, best, rules, probe)


def _settle(
    bench: Bench, checker: Device, best: _Probe, rules: Mapping[str, Rule], probe: "Callable[[Sizes], _Probe]"
) -> Contract | Answer:
    """With a clean base and the rules of each size: the further sizes, both priors, a second order of blocks."""
    tried: dict[str, Mapping[str, int]] = {}
    ran = [best]
    for name, sizes in variants(best.sizes, rules).items():
        found = best if sizes == best.sizes else probe(sizes)
        if bench.setting.cancelled():
            return _cancelled()
        if found.clean and found.full >= best.full:
            tried[name] = sizes
            ran.append(found)
        elif name == "smallest":
            rules = _raise_minimum(best, rules, probe, tried)
    bound = bound_at(bench.workload, bench.original, best.sizes)
    first, other = (_plain(bench, checker, bound, prior) for prior in PRIORS)
    again = _plain(bench, checker, bound, PRIORS[0], turned=True)
    if first.status != "ok" or other.status != "ok":
        return first if first.status != "ok" else other
    depends = _depends_on_prior(bound, first, other)
    kinds, deterministic = _kinds(bench, bound, first, again)
    faults = tuple(fault for one in ran if one.answer for fault in one.answer.faults)
    hazards = frozenset((fault.kind, fault.benign) for fault in faults)
    contract = Contract(
        "", False, best.sizes, rules, kinds, deterministic, hazards, tried, _unaligned(bench, checker, best.sizes)
    )
    contract = evolve(contract, joined=joined(_free(bound, first, kinds), first, again))
    if depends:
        fault = next(filter(_harmless, faults), None)
        where = f": {place(fault)}" if fault else ""
        return evolve(
            contract, broken=True, fault=fault, summary=f"{depends} depends on what was in memory before{where}"
        )
    return evolve(contract, summary=_summary(contract, probed(bench.workload)))


def _prober(bench: Bench, checker: Device) -> Callable[[Sizes], _Probe]:
    family = families(bench.workload)[0]

    def probe(sizes: Sizes) -> _Probe:
        try:
            bound = bound_at(bench.workload, bench.original, sizes)
        except WorkloadError as error:
            return _Probe(dict(sizes), None, why=str(error))
        before = runs.contents(bound, runs.case(sizes, family, runs.draw_seed()))
        answer = runs.run(bench.setting, bench.build, before, checks=ALL_CHECKS, device=checker, seconds=PROBE_SECONDS)
        hold(bench.workload, answer, sizes)
        _only_outputs(bound, answer)
        return _Probe(dict(sizes), answer, _full(bound, answer))

    return probe


def _only_outputs(bound: Bound, answer: Answer) -> None:
    """Raises WorkloadError where the original writes what its workload takes for an input: nobody would compare it."""
    for buffer in bound.buffers:
        marks = (answer.written or {}).get(buffer.name)
        if buffer.access is Access.IN and not buffer.scratch and marks is not None and marks.any():
            raise WorkloadError(
                f"the original writes {buffer.name}, which its workload has as `in`: state it as `out` or `inout` in a "
                "directive above the kernel, or what is written there would not be compared"
            )


def _full(bound: Bound, answer: Answer) -> frozenset[str]:
    if answer.written is None:
        return frozenset()
    return frozenset(
        buffer.name
        for buffer in outputs(bound)
        if buffer.access is Access.OUT and buffer.name in answer.written and answer.written[buffer.name].all()
    )


def _unfinished(found: _Probe) -> bool:
    return found.answer is not None and found.answer.status == "timeout"


def _endless(bench: Bench, checker: Device, found: _Probe, probe: Callable[[Sizes], _Probe]) -> Contract | Answer:
    """Too long at a small size: heavy, or without an end? At the smallest sizes even the heavy ones end. The line is
    that where half as many steps stop."""
    assert found.answer is not None
    if not _unfinished(probe(least(bench.workload, bench.original, found.sizes))):
        return found.answer
    if _heavy(bench, found):
        return found.answer
    # A busy machine may be slower than it just was: a smaller part is then reached in time.
    for part in (2, 8, 32):
        cap = max(1, found.answer.thread_instructions // part)
        again = _prober(evolve(bench, setting=evolve(bench.setting, step_cap=cap)), checker)(found.sizes)
        if again.faults:
            return _broken(again, bench.workload)
    return found.answer


def _heavy(bench: Bench, found: _Probe) -> bool:
    """Whether a run that was stopped had so many threads that each can have done little yet."""
    assert found.answer is not None
    steps = bound_at(bench.workload, bench.original, found.sizes).steps
    threads = sum(math.prod(step.grid) * math.prod(step.block) for step in steps if isinstance(step, BoundLaunch))
    return found.answer.thread_instructions < ENDLESS * threads


def _give_up(bench: Bench, ran: list[_Probe]) -> Contract | Answer:
    """No size ran clean: the fault at the first one that ran, or why none ran at all."""
    faulty = next((item for item in ran if item.faults), None)
    if faulty is not None:
        assert faulty.answer is not None
        if faulty.faults[0].kind == LIMIT and _heavy(bench, faulty):
            return evolve(faulty.answer, status="timeout", message=f"more than {bench.setting.step_cap} instructions")
        return _broken(faulty, bench.workload)
    stuck = next((item.answer for item in ran if item.answer is not None), None)
    if stuck is not None:
        return stuck
    raise WorkloadError(ran[0].why)


def _broken(found: _Probe, workload: Workload) -> Contract:
    fault = found.faults[0]
    refuse_short(workload, fault, found.sizes)
    rules = {name: Rule(name) for name in found.sizes}
    summary = f"{at(fault)} ({describe(found.sizes)})"
    return Contract(summary, True, found.sizes, rules, {}, False, frozenset(), {}, False, fault)


def at(fault: Fault) -> str:
    """``shared-memory race in softmax: line 31, block (0,0,0), threads (0,0,0) and (32,0,0): s[1] ...``."""
    return f"{fault.kind}{f' in {fault.kernel}' if fault.kernel else ''}: {place(fault)}"


def place(fault: Fault) -> str:
    """``line 31, block (0,0,0), threads (0,0,0) and (32,0,0): s[1] ...``; the message alone where no place is known."""
    where = fault.where
    if where == NOWHERE and fault.message:
        return fault.message
    line = f"line {where.line}, " if where.line else ""
    threads = f"thread {_three(where.thread)}"
    if fault.other is not None:
        threads = f"threads {_three(where.thread)} and {_three(fault.other.thread)}"
        if fault.other.block != where.block:
            threads += f" of block {_three(fault.other.block)}"
    message = f": {fault.message}" if fault.message else ""
    return f"{line}block {_three(where.block)}, {threads}{message}"


def _three(value: tuple[int, int, int]) -> str:
    return f"({value[0]},{value[1]},{value[2]})"


def _rules(best: _Probe, probe: Callable[[Sizes], _Probe], top: Sizes, most: Sizes) -> dict[str, Rule]:
    """For each size the smallest step, among powers of two, by which it may grow with the others fixed; ``most`` is
    what types allow."""
    return {
        name: Rule(name, _multiple(name, best, probe, top, most.get(name)), maximum=most.get(name))
        for name in best.sizes
    }


def _multiple(name: str, best: _Probe, probe: Callable[[Sizes], _Probe], top: Sizes, most: int | None) -> int:
    value = best.sizes[name]
    for step in _steps(value):
        if most is not None and value + step > most:
            return step  # nobody can pass the next one
        found = probe({**best.sizes, name: value + step})
        if found.clean and (found.full >= best.full or top[name] % _next(step, value)):
            return step
    return value


def _steps(value: int) -> Iterator[int]:
    step = 1
    while step < value:
        if value % step == 0:
            yield step
        step *= 2


def _next(step: int, value: int) -> int:
    """The next coarser step: if the declared value is no multiple of that, partly written outputs are how it runs."""
    return 2 * step if 2 * step < value else value


def _raise_minimum(
    best: _Probe, rules: Mapping[str, Rule], probe: Callable[[Sizes], _Probe], tried: dict[str, Mapping[str, int]]
) -> dict[str, Rule]:
    """The smallest sizes (all at once, doubling) that still run clean become the minimum."""
    step = 2
    while step < max(best.sizes.values(), default=1):
        sizes = {name: min(best.sizes[name], rules[name].fit(step)) for name in best.sizes}
        found = probe(sizes)
        if found.clean and found.full >= best.full:
            tried["smallest"] = sizes
            return {name: evolve(rules[name], minimum=value) for name, value in sizes.items()}
        step *= 2
    return {name: evolve(rules[name], minimum=value) for name, value in best.sizes.items()}


def _plain(bench: Bench, checker: Device, bound: Bound, prior: int, turned: bool = False) -> Answer:
    chosen = Case(tuple(bound.sizes.items()), families(bench.workload)[0], 1)
    before = runs.contents(bound, chosen)
    run = runs.run_reordered if turned else runs.run
    answer = run(bench.setting, bench.build, before, prior=prior, device=checker, seconds=PROBE_SECONDS)
    hold(bench.workload, answer, bound.sizes)
    return answer


def _depends_on_prior(bound: Bound, one: Answer, other: Answer) -> str:
    """The first output whose written bytes differ over two prior contents."""
    for buffer in outputs(bound):
        a, b = one.outputs[buffer.name], other.outputs[buffer.name]
        written: Mask = runs_written(buffer.name, one, other)
        if buffer.access is Access.OUT and bool((written & (a != b)).any()):
            return buffer.name
    return ""


def runs_written(name: str, one: Answer, other: Answer) -> Mask:
    if one.written is not None:
        return np.asarray(one.written[name])
    return np.asarray((one.outputs[name] != PRIORS[0]) | (other.outputs[name] != PRIORS[1]))


def _kinds(bench: Bench, bound: Bound, first: Answer, again: Answer) -> tuple[dict[str, str], bool]:
    """How each output is compared: as the workload says, else by type and by what a second run did to it."""
    chosen = {name: comparator.kind for name, comparator in bench.workload.comparators if comparator.kind != "auto"}
    kinds: dict[str, str] = {}
    deterministic = True
    for buffer in outputs(bound):
        same = again.status != "ok" or np.array_equal(first.outputs[buffer.name], again.outputs[buffer.name])
        deterministic &= same
        proposed = "numeric" if is_float(buffer.dtype) and not is_raw(buffer.dtype) else "exact" if same else "multiset"
        kinds[buffer.name] = chosen.get(buffer.name, proposed)
    return kinds, deterministic


def _free(bound: Bound, first: Answer, kinds: Mapping[str, str]) -> list[Expected]:
    """The outputs in any order, as the first run left them."""
    return [
        Expected(
            buffer.name,
            buffer.dtype,
            first.outputs[buffer.name],
            lane_mask(runs_written(buffer.name, first, first), buffer.dtype),
            kinds[buffer.name],
        )
        for buffer in outputs(bound)
        if kinds[buffer.name] == "multiset"
    ]


def _unaligned(bench: Bench, checker: Device, sizes: Sizes) -> bool:
    """Whether the original also runs on buffers that start one element past a 256-byte boundary."""
    bound = bound_at(bench.workload, bench.original, sizes)
    chosen = evolve(runs.case(sizes, families(bench.workload)[0], 1), shift=element(bound))
    answer = runs.run(bench.setting, bench.build, runs.contents(bound, chosen), device=checker, seconds=PROBE_SECONDS)
    return answer.status == "ok"


def element(bound: Bound) -> int:
    """The widest element of any buffer, in bytes: what a pointer of its type is aligned to at least."""
    return max((buffer.nbytes // max(1, buffer.count) for buffer in bound.buffers if not buffer.symbol), default=1) or 1


def _cancelled() -> Answer:
    return Answer("cancelled", {}, None, (), (), "cancelled", 0.0)


def _bounds(names: tuple[str, ...]) -> str:
    if not names:
        return "in bounds"
    extents = "the extent of" if len(names) == 1 else "the extents of"
    verb = "was" if len(names) == 1 else "were"
    return f"bounds not known ({extents} {', '.join(f'`{name}`' for name in names)} {verb} probed)"


def _summary(contract: Contract, probed: tuple[str, ...] = ()) -> str:
    harmless = [words for kind, words in _HARMLESS.items() if (kind, True) in contract.hazards]
    parts = [
        _bounds(probed),
        f"free of races but for {' and '.join(dict.fromkeys(harmless))}" if harmless else "free of races",
        "deterministic" if contract.deterministic else "not deterministic (the order of blocks shows)",
        *(["threads leave before barriers that their warps come to"] if _SPLIT in contract.hazards else []),
    ]
    sizes = ", ".join(_rule(rule) for rule in contract.rules.values())
    return ", ".join(parts) + (f"; any {sizes}" if sizes else "; this size only")


_NARROW = 1 << 30
"""A largest size from here on is no limit that anybody would want to be told of."""


def _rule(rule: Rule) -> str:
    narrow = rule.maximum is not None and rule.maximum < _NARROW
    most = f" and <= {rule.maximum}, which is all that its type holds" if narrow else ""
    if rule.multiple == 1:
        return f"{rule.name} >= {rule.minimum}{most}"
    least = f" >= {rule.minimum}" if rule.minimum > rule.multiple else ""
    return f"{rule.name} a multiple of {rule.multiple}{least}{most}"
