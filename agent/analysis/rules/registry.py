"""The rules' registry: a rule is one file in ``catalog/``, registered beside its definition."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache

from attrs import frozen

from agent.analysis.host import HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity
from agent.analysis.rules.view import View

Examine = Callable[[View], Iterator[Hit]]
ExamineHost = Callable[[HostFunction], Iterator[Hit]]
_ID = re.compile(r"[A-Z]\d{1,2}")


@frozen(eq=False)
class Rule:
    """One rule. ``why`` is one sentence; ``silent_when`` says what it does not report. ``fires`` and ``silent`` are
    examples, whole ``.cu`` texts: its tests and its page. A line of a firing example on which a finding begins ends in
    a comment with the rule's id. ``fix`` names a catalogue idea. ``default``: whether it runs unless it is asked
    for. ``examine`` looks at a kernel and its launches, ``examine_host`` at a function that launches kernels: a rule
    has one of them."""

    id: str
    name: str
    title: str
    why: str
    cost: Cost
    severity: Severity
    silent_when: tuple[str, ...]
    fires: tuple[str, ...]
    silent: tuple[str, ...]
    examine: Examine | None
    fix: str | None = None
    default: bool = True
    examine_host: ExamineHost | None = None


_rules: dict[str, Rule] = {}
_modules: dict[str, str] = {}


def rule(
    *,
    id: str,
    name: str,
    title: str,
    why: str,
    cost: Cost,
    severity: Severity,
    silent_when: tuple[str, ...],
    fires: tuple[str, ...],
    silent: tuple[str, ...],
    fix: str | None = None,
    default: bool = True,
) -> Callable[[Examine], Examine]:
    """Register the decorated function as a rule. Raises ValueError for an id or a name that is taken or malformed."""

    def register(examine: Examine) -> Examine:
        made = Rule(id, name, title, why, cost, severity, silent_when, fires, silent, examine, fix, default)
        _register(made, examine.__module__)
        return examine

    return register


def host_rule(
    *,
    id: str,
    name: str,
    title: str,
    why: str,
    cost: Cost,
    severity: Severity,
    silent_when: tuple[str, ...],
    fires: tuple[str, ...],
    silent: tuple[str, ...],
    default: bool = True,
) -> Callable[[ExamineHost], ExamineHost]:
    """The same for a rule that looks at the host functions that launch kernels."""

    def register(examine: ExamineHost) -> ExamineHost:
        made = Rule(id, name, title, why, cost, severity, silent_when, fires, silent, None, None, default, examine)
        _register(made, examine.__module__)
        return examine

    return register


def _register(made: Rule, module: str) -> None:
    if not _ID.fullmatch(made.id):
        raise ValueError(f"'{made.id}' is no rule id: a letter and a number are expected")
    for other in _rules.values():
        if (other.id == made.id or other.name == made.name) and _modules[other.id] != module:
            raise ValueError(f"two rules are called {made.id} or {made.name}")
    _rules[made.id], _modules[made.id] = made, module


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, by id. Importing a module of ``catalog/`` is what registers it."""
    from agent.analysis.rules import catalog

    for module in pkgutil.iter_modules(catalog.__path__):
        importlib.import_module(f"{catalog.__name__}.{module.name}")
    return tuple(sorted(_rules.values(), key=lambda one: (one.id[0], int(one.id[1:]))))


@cache
def by_id() -> dict[str, Rule]:
    return {one.id: one for one in rules()}
