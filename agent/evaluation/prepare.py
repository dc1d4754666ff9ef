"""Everything about the original that its candidates are judged by, found once."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from agent.evaluation import runs
from agent.evaluation.contracts.contract import Contract, find_contract, place
from agent.evaluation.contracts.probed import ShortExtent
from agent.evaluation.contracts.selftest import SelfTest, selftest
from agent.evaluation.deadline import ended
from agent.evaluation.declared import Sample, Unsampled, sample, sample_above
from agent.evaluation.draws import drawing
from agent.evaluation.estimates.counting import recipes
from agent.evaluation.estimates.estimate import Estimate, Headroom, estimate
from agent.evaluation.oracles import shadows
from agent.evaluation.oracles.promotion import Refused, promote_options, promote_slice
from agent.evaluation.oracles.refuting import doubt
from agent.evaluation.oracles.truth import Bench, Truth, outputs, truth
from agent.evaluation.ptx import Traits, traits
from agent.evaluation.runs import Case
from agent.evaluation.setting import Setting, checker
from agent.evaluation.sizes import Sizes, bound_at
from agent.evaluation.verdict import IN_PYTORCH, Baseline
from agent.execution.compiler import build, compile_slice
from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.execution.device import Answer, Fault
from agent.execution.timing import Timed
from agent.source.errors import SourceError
from agent.source.slicing import device_slice
from agent.workload.errors import WorkloadError
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.workload import MADE_UP, Workload

if TYPE_CHECKING:
    from agent.evaluation.glimpse import Glimpse

_SCREEN_FAMILIES = 4
"""A screen runs the first family, small integers (exact) and two that stress: the full verdict runs all."""

PROMOTED, SHADOW = "original promoted to float64", "the emulator's float64 shadow"
"""What stands for the truth, as verdicts and records say it."""

_LONG = 0.3
"""Seconds."""

_STRESS = ("large-mean", "spikes", "ties", "constant-rows")


@frozen
class Failure:
    """Why the original cannot be judged against. ``kind``: ``does not compile``, ``unavailable``, ``refused`` (an
    instruction that the emulator lacks), ``timeout``, ``crashed``, ``cancelled``, ``workload``, ``reference`` (the
    user's PyTorch function gives no answer)."""

    kind: str
    message: str
    fault: Fault | None = None


@define(eq=False)
class Cache:
    """What a screen may use again for the next candidate. Seeds are secret and drawn once for each original.
    ``emulated``: beside a card, what the emulator says of the first case."""

    truths: dict[Case, Truth] = field(factory=dict, repr=False)
    emulated: Truth | Answer | None = field(default=None, repr=False)
    baselines: tuple[Baseline | str, ...] | None = None
    builds: dict[tuple[str, str, bool], Build | CompileFailure] = field(factory=dict, repr=False)
    samples: dict[str, Sample | Unsampled] = field(factory=dict, repr=False)
    largest: dict[str, Case | None] = field(factory=dict, repr=False)
    hazards: dict[object, frozenset[tuple[str, bool, bool]] | None] = field(factory=dict, repr=False)
    declared: Case | None = None
    controls: dict[object, Timed] = field(factory=dict, repr=False)
    room: Headroom | None = None
    glimpses: "dict[Case, Glimpse | None]" = field(factory=dict, repr=False)


@frozen(eq=False)
class Prepared:
    """``bench`` runs the original. ``oracle`` says in words what stands for the truth. ``cases`` are those that every
    candidate of a screen runs."""

    original: Program
    workload: Workload
    setting: Setting
    bench: Bench = field(repr=False)
    contract: Contract
    selftest: SelfTest
    oracle: str
    cases: tuple[Case, ...]
    traits: Traits
    original_estimate: Estimate | str = field(repr=False)
    cache: Cache = field(factory=Cache, repr=False)

    @property
    def build(self) -> Build:
        return self.bench.build

    def sample(self) -> Sample | Unsampled:
        """The declared size on sampled blocks, or why there is none; found once for each depth."""
        depth = self.setting.depth
        if depth not in self.cache.samples:
            with drawing(self.setting.secret, f"sample, {depth}"):
                self.cache.samples[depth] = sample(evolve(self.bench, setting=self.setting), self.contract)
        return self.cache.samples[depth]

    def sample_above(self) -> Sample | Unsampled:
        """The same past the declared sizes."""
        key = f"above, {self.setting.depth}"
        if key not in self.cache.samples:
            with drawing(self.setting.secret, f"sample, {key}"):
                self.cache.samples[key] = sample_above(evolve(self.bench, setting=self.setting), self.contract)
        return self.cache.samples[key]


def prepare(
    original: Program, workload: Workload, setting: Setting, progress: Callable[[str], None] | None = None
) -> Prepared | Failure:
    """Compile the original, find its contract, build its oracle, test the checker, count its work.

    ``progress`` is told each stage before it starts. A broken original comes back as Prepared with ``contract.broken``.
    """
    tell = progress or (lambda stage: None)
    if workload.origin.kind == MADE_UP:
        return Failure("workload", "the launch was made up to count lines on: state the kernel's own in a directive")
    try:
        found = _prepare(original, workload, setting, tell)
    except (WorkloadError, SourceError, ShortExtent) as error:
        return Failure("workload", str(error))
    broken = isinstance(found, Prepared) and found.contract.broken
    if setting.cancelled() and not broken:  # what was cut short says nothing of the original
        return Failure("cancelled", ended(setting))
    return found


def _prepare(
    original: Program, workload: Workload, setting: Setting, tell: Callable[[str], None]
) -> Prepared | Failure:
    tell("compile")
    compared = outputs(bound_at(workload, original))
    built = build(original, setting.options, cancelled=setting.cancelled, lenient=True)
    if isinstance(built, CompileFailure):
        kind = "does not compile" if built.kind == "source" else built.kind
        return Failure(
            kind, f"the original does not compile: {built.message}" if kind == "does not compile" else built.message
        )
    setting = evolve(setting, options=evolve(setting.options, liberties=built.liberties))
    bench = Bench(original, workload, setting, built)
    tell("contract")
    with drawing(setting.secret, "contract"):
        contract = find_contract(bench, checker(setting))
    if isinstance(contract, Answer):
        return _failure(contract, setting)
    if contract.broken:
        return _broken(bench, contract)
    if not compared:
        raise WorkloadError("the workload has no output to compare: say `out` or `inout` for what the kernel writes")
    bench = evolve(bench, kinds=contract.kinds, deterministic=contract.deterministic, joined=contract.joined)
    tell("oracle")
    if setting.reference is not None and "numeric" in bench.kinds.values():
        with drawing(setting.secret, "reference"):
            plain, _, _ = _with_oracle(evolve(bench, setting=evolve(setting, reference=None)), contract)
            found = doubt(evolve(plain, setting=setting), contract.base, tuple(families(workload)))
        if found is not None and found.refuted:
            return _broken(bench, evolve(contract, broken=True, summary=found.words))
        if found is not None:
            return Failure("reference", found.words)
    with drawing(setting.secret, "oracle"):
        bench, oracle, first = _with_oracle(bench, contract)
    if isinstance(first, Answer):
        return _failure(first, setting)
    tell("self-test")
    with drawing(setting.secret, "self-test"):
        return _finish(bench, contract, oracle, first, tell)


def _finish(
    bench: Bench, contract: Contract, oracle: str, first: Truth, tell: Callable[[str], None]
) -> Prepared | Failure:
    names = families(bench.workload)
    chosen = [name for name in _screen_families(names) if name != first.case.family]
    known: list[Truth] = [first]
    for family in chosen:
        found = _at(bench, contract.base, family)
        if found is not None:
            known.append(found)
    rest = iter([name for name in names if name not in chosen and name != first.case.family])
    tested, known_after = selftest(
        bench, known, lambda: _next_truth(bench, contract, rest), [item.case.family for item in known]
    )
    if bench.setting.cancelled():
        return Failure("cancelled", "cancelled")
    tell("declared size")
    with drawing(bench.setting.secret, f"sample, {bench.setting.depth}"):
        sampled = sample(bench, contract)
    fault = sampled.fault if isinstance(sampled, Unsampled) else None
    tell("estimate")
    choices = recipes(bench, contract, slow=_slow(sampled))
    cache = Cache({item.case: item for item in known_after}, samples={bench.setting.depth: sampled})
    return Prepared(
        original=bench.original,
        workload=bench.workload,
        setting=bench.setting,
        bench=bench,
        contract=contract if fault is None else evolve(contract, broken=True, fault=fault, summary=_said(fault)),
        selftest=tested,
        oracle=oracle,
        cases=_cases(contract, [item.case for item in known_after]),
        traits=traits(bench.build.ptx),
        original_estimate=estimate(bench.original, bench.build, bench.workload, bench.setting, choices),
        cache=cache,
    )


def _screen_families(names: Sequence[str]) -> list[str]:
    wanted = [names[0], "small-integers", *(name for name in _STRESS if name in names)]
    return [name for name in dict.fromkeys(wanted) if name in names][:_SCREEN_FAMILIES]


def _at(bench: Bench, sizes: Sizes, family: str) -> Truth | None:
    found = truth(bench, runs.case(sizes, family, runs.draw_seed()))
    return found if isinstance(found, Truth) else None


def _next_truth(bench: Bench, contract: Contract, rest: Iterator[str]) -> Truth | None:
    for family in rest:
        if bench.setting.cancelled():
            return None
        found = _at(bench, contract.base, family)
        if found is not None:
            return found
    return None


def _cases(contract: Contract, base: list[Case]) -> tuple[Case, ...]:
    """All families at the base size, then the first family at every other size that the contract allows."""
    family = base[0].family
    others = [
        runs.case(sizes, family, runs.draw_seed())
        for name, sizes in contract.tried.items()
        if dict(sizes) != dict(contract.base)
    ]
    return (*base, *others)


def _with_oracle(bench: Bench, contract: Contract) -> tuple[Bench, str, Truth | Answer]:
    """The bench with a float64 twin that was seen to fit, in words what it is, and the first truth."""
    names = families(bench.workload)
    chosen = runs.case(contract.base, names[0], runs.draw_seed())
    if "numeric" not in bench.kinds.values():
        return bench, "not needed: outputs are compared exactly", truth(bench, chosen)
    if bench.setting.reference is not None:
        referring = evolve(bench, referred=True)
        return referring, f"{bench.workload.reference}{IN_PYTORCH}", truth(referring, chosen)
    wide = _oracle_build(bench)
    if isinstance(wide, str):
        return _with_shadow(bench, chosen, wide)
    with_twin = evolve(bench, oracle=wide)
    found = truth(with_twin, chosen)
    if isinstance(found, Answer):
        return with_twin, PROMOTED, found
    if not found.oracle:
        return _with_shadow(bench, chosen, "the original in float64 computes something else")
    against = shadows.shadowed(bench.setting, bench.build, found.before, seconds=shadows.CHECK_SECONDS)
    apart = shadows.disagreement(against, {item.name: item for item in found.expected}) if against is not None else ""
    if apart:
        return _with_shadow(bench, chosen, f"the original promoted to float64 says something else of {apart}")
    return with_twin, PROMOTED, found


def _with_shadow(bench: Bench, chosen: Case, why: str) -> tuple[Bench, str, Truth | Answer]:
    """The emulator's shadow as the oracle, where it fits."""
    shadowed = evolve(bench, shadow=True)
    found = truth(shadowed, chosen)
    if isinstance(found, Truth) and found.oracle:
        return shadowed, f"{SHADOW} ({why})", found
    return bench, f"none: {why}", found


def _oracle_build(bench: Bench) -> Build | str:
    names = tuple(dict.fromkeys(launch.kernel for launch in bench.original.plan.launches()))
    slice_ = device_slice(bench.original.document, names)
    promoted = promote_slice(slice_, bound_at(bench.workload, bench.original))
    if isinstance(promoted, Refused):
        return promoted.reason
    built = compile_slice(promoted, promote_options(bench.setting.options), cancelled=bench.setting.cancelled)
    return f"in float64 it does not compile ({built.message})" if isinstance(built, CompileFailure) else built


def _said(fault: Fault) -> str:
    return f"{fault.kind} in {fault.kernel} at the declared size: {place(fault)}"


def _slow(sampled: Sample | Unsampled) -> bool:
    """Whether one block at the declared size takes so long that counting several there is no part of a screen."""
    return isinstance(sampled, Sample) and (bool(sampled.note) or sampled.seconds > _LONG)


def _broken(bench: Bench, contract: Contract) -> Prepared:
    """Nothing more is asked of an original that breaks its own contract."""
    return Prepared(
        original=bench.original,
        workload=bench.workload,
        setting=bench.setting,
        bench=bench,
        contract=contract,
        selftest=SelfTest((), (), (), (), ()),
        oracle="none: the original is broken",
        cases=(),
        traits=traits(bench.build.ptx),
        original_estimate="the original is broken",
    )


def _failure(answer: Answer, setting: Setting) -> Failure:
    """Why the original did not run, in words."""
    fault = answer.faults[0] if answer.faults else None
    message = answer.message or (place(fault) if fault else answer.status)
    kind = answer.status if answer.status != "fault" else "refused"
    if kind == "timeout":
        message = (
            f"the original did not end in time even at small sizes ({message}): state smaller ones in a directive "
            "above the kernel (docs/workload.md)"
        )
    return Failure(kind, message, fault)


def unoptimised(options: Options) -> Options:
    return evolve(options, optimised=False)
