"""The catalogue's registry: an idea is one file in ``catalog/``, registered beside its definition."""

import importlib
import pkgutil
from collections.abc import Callable

from attrs import frozen

from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.rewriting import Rewrite
from agent.ideas.view import View


@frozen(eq=False)
class Variant:
    """One implementation of an idea. ``write`` makes the rewrite, and is called only when it is wanted: with one
    keyword argument for each tunable."""

    name: str
    rationale: str
    scope: Scope
    write: Callable[..., Rewrite]
    tunables: tuple[Tunable, ...] = ()


@frozen(eq=False)
class Match:
    """The idea applies here: in words about this kernel (``why``), at this 1-based line, in these variants."""

    line: int
    title: str
    why: str
    expects: tuple[Expectation, ...]
    variants: tuple[Variant, ...]


@frozen
class Refusal:
    """The idea does not apply here, and the reason in words."""

    reason: str


Examine = Callable[[View], Match | Refusal]


@frozen(eq=False)
class Entry:
    """A catalogue idea in general words; ``examine`` says whether it applies to a kernel.

    ``needs`` are the preconditions that are proved, ``effect`` what should move, ``risk`` what could break.
    ``example`` is a whole ``.cu`` text with a directive, from which the documentation makes its before and after.
    ``enables`` names ideas that may apply afterwards, ``conflicts`` ideas that no longer do."""

    name: str
    title: str
    rationale: str
    needs: tuple[str, ...]
    effect: str
    risk: str
    example: str
    examine: Examine
    enables: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


_entries: dict[str, Entry] = {}


def catalogued(
    *,
    name: str,
    title: str,
    rationale: str,
    needs: tuple[str, ...],
    effect: str,
    risk: str,
    example: str,
    enables: tuple[str, ...] = (),
    conflicts: tuple[str, ...] = (),
) -> Callable[[Examine], Examine]:
    """Register the decorated function as a catalogue idea."""

    def register(examine: Examine) -> Examine:
        if name in _entries and _entries[name].examine.__module__ != examine.__module__:
            raise ValueError(f"two ideas are called {name}")
        _entries[name] = Entry(name, title, rationale, needs, effect, risk, example, examine, enables, conflicts)
        return examine

    return register


def entries() -> tuple[Entry, ...]:
    """Every idea of the catalogue, by name. Importing a module of ``catalog/`` is what registers it."""
    from agent.ideas import catalog

    for module in pkgutil.iter_modules(catalog.__path__):
        importlib.import_module(f"{catalog.__name__}.{module.name}")
    return tuple(_entries[name] for name in sorted(_entries))
