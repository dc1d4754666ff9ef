"""The checker is tested before any candidate is: wrong answers made from the original's must not pass."""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from agent.evaluation import runs
from agent.evaluation.contracts.mutants import BLIND, EQUAL, KILLED, SURVIVED, fate, mutants
from agent.evaluation.oracles.truth import Bench, Truth, inputs, outputs
from agent.execution.device import Answer
from agent.workload.generators import recipe


@frozen
class SelfTest:
    """Names are ``output: mutant``. ``survived`` is what this workload cannot tell; ``silent`` are the inputs that
    influence no output."""

    killed: tuple[str, ...]
    not_applicable: tuple[str, ...]
    survived: tuple[str, ...]
    silent: tuple[str, ...]
    families: tuple[str, ...]


def selftest(
    bench: Bench, known: Sequence[Truth], more: Callable[[], Truth | None], families: Sequence[str]
) -> tuple[SelfTest, tuple[Truth, ...]]:
    """Feed each mutant to the comparators over all ``known`` truths; where one survives, ask for ``more`` (further
    input families) until it dies or there are none. The truths that were needed come back, for the candidates too."""
    held = list(known)
    fates = _fates(held)
    used = list(families)
    while SURVIVED in fates.values() and (extra := more()) is not None:
        held.append(extra)
        used.append(extra.case.family)
        fates = _fates(held)
    found = SelfTest(
        killed=_named(fates, KILLED),
        not_applicable=_named(fates, EQUAL) + _named(fates, BLIND),
        survived=_named(fates, SURVIVED),
        silent=_silent(bench, held[0]) if held else (),
        families=tuple(dict.fromkeys(used)),
    )
    return found, tuple(held)


def _fates(known: Sequence[Truth]) -> dict[str, str]:
    """A mutant is a kernel: caught when one run catches it. ``survived`` beats ``equal``, ``killed`` beats both."""
    rank = {EQUAL: 0, BLIND: 1, SURVIVED: 2, KILLED: 3}
    fates: dict[str, str] = {}
    for truth in known:
        for expected in (item for item in truth.expected if not item.silent):
            for changed in mutants(expected):
                name = f"{expected.name}: {changed.name}"
                new = fate(expected, changed)
                if rank[new] > rank.get(fates.get(name, ""), -1):
                    fates[name] = new
    return fates


def _named(fates: dict[str, str], wanted: str) -> tuple[str, ...]:
    return tuple(name for name, found in fates.items() if found == wanted)


def _silent(bench: Bench, known: Truth) -> tuple[str, ...]:
    """Inputs whose contents change no output: each is drawn anew, the others stay. Of a buffer that is an output too
    what a run leaves alone does not count, and the only output is none of them."""
    found: list[str] = []
    written = outputs(known.before.bound)
    for buffer in inputs(known.before.bound):
        drawn = recipe(buffer, known.case.family, known.case.seed ^ 0x5EED)(0, buffer.nbytes)
        held = known.before.given[buffer.name]
        if [buffer.name] == [out.name for out in written]:
            continue
        if isinstance(held, np.ndarray) and np.array_equal(held, drawn):
            continue  # it can hold nothing else (captured contents, zeros): that tells nothing
        changed = runs.Contents(known.before.bound, {**known.before.given, buffer.name: drawn}, known.case.shift)
        answer = runs.run(bench.setting, bench.build, changed)
        if answer.status != "ok":
            continue
        apart = {out.name: answer.outputs[out.name] != known.answer.outputs[out.name] for out in written}
        if buffer.name in apart:
            apart[buffer.name] &= _changed(answer, buffer.name, drawn) | _changed(known.answer, buffer.name, held)
        if not any(one.any() for one in apart.values()):
            found.append(buffer.name)
    return tuple(found)


def _changed(answer: Answer, name: str, before: object) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """The bytes of a buffer that a run made something else of; all where it is not known what it held."""
    after = answer.outputs[name]
    if not isinstance(before, np.ndarray) or before.nbytes != after.nbytes:
        return np.ones(len(after), bool)
    return np.asarray(after != before.view(np.uint8).reshape(-1))
