"""What one run of a candidate came to, in a form that outlives it: digests, grades and errors of each output."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import field, frozen

from agent.evaluation.comparators import Comparison
from agent.evaluation.comparators.base import SAME, worst
from agent.evaluation.oracles.truth import Truth
from agent.evaluation.runs import Case, Contents
from agent.evaluation.sizes import describe
from agent.execution.device import Answer, Bytes, Recipe

HASHED = 64 << 20
"""Bytes of an output above which it is not hashed: a verdict must not take much longer for its record."""


@frozen
class Seen:
    """One output: how it was compared (``kind``), the ``grade`` (``same``, ``less``, ``wrong``, or ``silent`` where
    float64 contradicts the original), the SHA-256 of the original's and the candidate's bytes (empty where it was not
    fetched or is larger than 64 MB), and errors against float64 (against the original where there is no oracle),
    relative to the output's scale: ``candidate max``, ``original max``, ``allowed max`` and the same for ``rms``."""

    output: str
    kind: str
    grade: str
    original: str = ""
    candidate: str = ""
    errors: Mapping[str, float] = field(factory=dict)


@frozen
class Ran:
    """One run at ``sizes`` with inputs of ``family`` (``planted`` and ``alike`` as in
    :class:`agent.evaluation.runs.Case`); ``inputs`` is the SHA-256 of what the buffers held before it."""

    sizes: str
    family: str
    inputs: str
    outputs: tuple[Seen, ...]
    planted: tuple[float, ...] = ()
    alike: bool = False


def ran(chosen: Case, known: Truth, found: Sequence[Comparison], answer: Answer) -> Ran:
    """``answer`` is the candidate's over the first prior contents, ``found`` what the comparators said of it."""
    seen = []
    for item in known.expected:
        mine = [one for one in found if one.output == item.name]
        judged = worst(mine) if mine else None
        grade = judged.grade if judged is not None else "silent" if item.silent else SAME
        data = answer.outputs.get(item.name)
        digest = _digest(data) if data is not None else ""
        errors = _errors(judged) if judged is not None else {}
        seen.append(Seen(item.name, item.kind, grade, _digest(item.original), digest, errors))
    return Ran(describe(dict(chosen.sizes)), chosen.family, inputs(chosen, known.before), tuple(seen), chosen.planted,
               chosen.alike)  # fmt: skip


def inputs(chosen: Case, before: Contents) -> str:
    """A digest of the contents; of those that are made on demand, of what they are made from."""
    digest = hashlib.sha256()
    for name in sorted(before.given):
        data = before.given[name]
        digest.update(f"{name}\0".encode())
        if isinstance(data, np.ndarray):
            digest.update(np.ascontiguousarray(data).data)
        elif isinstance(data, Recipe):
            digest.update(f"{chosen.family}\0{chosen.seed}\0{data.nbytes}\0".encode())
    return digest.hexdigest()


def _digest(data: Bytes) -> str:
    flat = np.ascontiguousarray(data)
    return hashlib.sha256(flat.data).hexdigest() if flat.nbytes <= HASHED else ""


def _errors(judged: Comparison) -> dict[str, float]:
    found = judged.errors
    if found is None:
        return {}
    return {
        "candidate max": found.candidate,
        "original max": found.original,
        "allowed max": found.limit,
        "candidate rms": found.candidate_rms,
        "original rms": found.original_rms,
        "allowed rms": found.limit_rms,
    }
