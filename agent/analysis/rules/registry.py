"""The rules' registry: a rule is one file in ``catalog/``, registered beside its definition."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache

from attrs import frozen

from agent.analysis.rules.finding import Cost, Hit, Severity
from agent.analysis.rules.view import View

Examine = Callable[[View], Iterator[Hit]]
_ID = re.compile(r"[A-Z]\d{1,2}")


@frozen(eq=False)
class Rule:
    """One rule. ``why`` is one sentence; ``silent_when`` says what it does not report. ``fires`` and ``silent`` are
    examples, whole ``.cu`` texts: its tests and its page. A line of a firing example on which a finding begins ends in
    a comment with the rule's id. ``fix`` names a catalogue idea. ``default``: whether it runs unless it is asked
    for."""

    id: str
    name: str
    title: str
    why: str
    cost: Cost
    severity: Severity
    silent_when: tuple[str, ...]
    fires: tuple[str, ...]
    silent: tuple[str, ...]
    examine: Examine
    fix: str | None = None
    default: bool = True


_rules: dict[str, Rule] = {}


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
        if not _ID.fullmatch(id):
            raise ValueError(f"'{id}' is no rule id: a letter and a number are expected")
        for other in _rules.values():
            if (other.id == id or other.name == name) and other.examine.__module__ != examine.__module__:
                raise ValueError(f"two rules are called {id} or {name}")
        _rules[id] = Rule(
            id, name, title, why, cost, severity, silent_when, fires, silent, examine, fix=fix, default=default
        )
        return examine

    return register


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
