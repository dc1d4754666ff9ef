"""From what was found of each kernel to a ranking, and to what is in the way of the others, by cause."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from agent.evaluation.estimates.estimate import ARITHMETIC_FLOOR
from agent.evaluation.estimates.traffic import MODEL_ERROR
from cuda_lsp.scanning.values import Cause, Cost, Scanned
from cuda_lsp.terminal.hints.walk import Problem

NOT_MEASURED = (
    "Every time is estimated from counts of a short run in the emulator, at the sizes that the workload states; "
    "nothing was measured. Shares are of the sum over all kernels that could be estimated, each with its plan run "
    "once: how often a program calls them is not known."
)
SMALLER = "counted at smaller sizes than the workload's, which take too long here: at those it takes longer"
WHOLE = "whole-number work is in no floor: where it is the work itself, and no addresses, there is less to gain"
TENSOR = "what tensor cores compute is in no floor: there may be less to gain"
_WHOLE_LIMITS = ("integer throughput", "instruction issue")
RANKED = "Ranked by what reaching the floor would save: share x (1 - 1 / headroom)."
NEAR = 1 + MODEL_ERROR
"""Headroom that is within the model's own error of the floor."""


@frozen
class Ranked:
    """``rank`` counts from 1. ``headroom`` is the estimated time over its floor; ``share`` is the kernel's of all
    estimated time, and ``gain`` the part of all estimated time that reaching the floor would save. ``notes`` are
    SMALLER, WHOLE and TENSOR, where they hold."""

    rank: int
    headroom: float
    share: float
    gain: float
    scanned: Scanned
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost:
        assert self.scanned.cost is not None, "what has no estimate has no rank"
        return self.scanned.cost


@frozen
class Group:
    """Kernels without an estimate for one reason: ``words`` are what their messages have in common."""

    cause: Cause
    words: str
    kernels: tuple[Scanned, ...]


@frozen
class Report:
    """All of a scan. ``seconds`` sums the estimated times. ``stopped`` says what ended it early. ``problems`` could not
    be read, ``left`` counts what was passed over, by reason; ``rules`` how many findings each rule has."""

    target: str
    paths: tuple[str, ...]
    files: int
    kernels: int
    kept: int
    seconds: float
    ranked: tuple[Ranked, ...]
    groups: tuple[Group, ...]
    problems: tuple[Problem, ...]
    left: Mapping[str, int]
    rules: Mapping[str, int]
    stopped: str
    statement: str


def report(
    target: str,
    paths: Sequence[str],
    files: int,
    found: Sequence[Scanned],
    problems: Sequence[Problem],
    left: Mapping[str, int],
    stopped: str,
) -> Report:
    total = sum(one.cost.seconds for one in found if one.cost)
    rules = Counter(hint.rule for one in found for hint in one.hints)
    return Report(
        target=target,
        paths=tuple(paths),
        files=files,
        kernels=len(found),
        kept=sum(one.kept for one in found),
        seconds=total,
        ranked=tuple(_ranked(found, total)),
        groups=tuple(_groups(found)),
        problems=tuple(problems),
        left=dict(sorted(left.items())),
        rules=dict(sorted(rules.items(), key=lambda pair: (-pair[1], pair[0]))),
        stopped=stopped,
        statement=f"{NOT_MEASURED} {RANKED}",
    )


def _ranked(found: Iterable[Scanned], total: float) -> Iterable[Ranked]:
    pairs = [(one, one.cost) for one in found if one.cost]
    pairs.sort(key=lambda pair: (-pair[1].saved, -pair[1].seconds, pair[0].path, pair[0].line))
    for rank, (one, cost) in enumerate(pairs, 1):
        yield Ranked(rank, cost.headroom, cost.seconds / total, cost.saved / total, one, tuple(_notes(cost)))


def _notes(cost: Cost) -> Iterator[str]:
    if cost.sizes:
        yield SMALLER
    if cost.limit in _WHOLE_LIMITS and cost.floor != ARITHMETIC_FLOOR and cost.headroom >= NEAR:
        yield WHOLE
    if cost.tensor:
        yield TENSOR


def _groups(found: Iterable[Scanned]) -> Iterable[Group]:
    by_words: dict[tuple[Cause, str], list[Scanned]] = {}
    for one in found:
        if one.cause is not None:
            by_words.setdefault((one.cause, general(one.message)), []).append(one)
    order = list(Cause)
    for (cause, words), kernels in sorted(
        by_words.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1])
    ):
        messages = {one.message for one in kernels}
        said = messages.pop() if len(messages) == 1 else words
        yield Group(cause, said, tuple(sorted(kernels, key=lambda one: (one.path, one.line))))


_ASKED = re.compile(r"no workload for `[^`]*`; not known: ")
_QUESTION = re.compile(r"[^:;`]*(?:`[^`]*`[^:;`]*)*: ")
_RANGE = "range of values"
"""A question without which its reason says nothing."""
_OWN = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'")
_PLACE = re.compile(r"\s*\(?\b(?:at |in )?lines? [\d, ]+\d\b\)?|\s*\(line \d+\)|^[^\s:]+\(\d+\): |\s*\(and \d+ more\)")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.]*")
_LONGEST = 120


def general(message: str) -> str:
    """A message without names, lines and numbers of its own: what it has in common with others of its kind. Of several
    open questions about a workload, the reason of the first."""
    asked = _ASKED.match(message)
    if asked:
        first = message[asked.end() :].split("; ")[0]
        question = _QUESTION.match(first)
        message = first[question.end() :] if question and not first.startswith(_RANGE) else first
    words = _NUMBER.sub("N", _PLACE.sub("", _OWN.sub("`…`", message)))
    plain = " ".join(words.split()).strip(" :;,")
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1].rstrip() + "…"
