"""Who launches a kernel, and who calls whom on the device."""

from collections.abc import Iterator

from attrs import frozen

from agent.source.index.facts import (
    CALL,
    DEVICE,
    HOST,
    KERNEL,
    LAUNCH,
    MACRO,
    OUTSIDE,
    SYMBOL,
    Definition,
    Found,
    Mention,
)
from agent.source.index.mentions import LAUNCHING
from agent.source.index.resolving import by_name_alone, launched_by_macro, macros, meant, meant_at, mentions_of, site_at
from agent.source.index.table import Table
from agent.source.span import Span


@frozen
class Call:
    """``other`` calls what was asked about, or is called by it; ``spans`` are in the caller's file. Not ``sure``: by
    the name alone, which other scopes have too."""

    other: Found
    spans: tuple[Span, ...]
    sure: bool = True


def callables_at(table: Table, key: str, offset: int) -> tuple[Found, ...]:
    """The kernels and device functions that the name at a place means, or the function of the host that is defined
    there and launches something."""
    site = site_at(table, key, offset)
    if isinstance(site, Definition) and site.kind == HOST:
        found = Found(key, site)
        return (found,) if callees(table, found) else ()
    return tuple(one for one in meant_at(table, key, offset) if one.definition.kind != SYMBOL)


def callers(table: Table, target: Found) -> tuple[Call, ...]:
    """Who launches a kernel, or calls a device function. Nobody is named for a function of the host."""
    if target.definition.kind == HOST:
        return ()
    found: dict[Found, list[_Place]] = {}
    for key, mention in mentions_of(table, (target,)):
        if mention.inside != OUTSIDE and _runs(table, key, mention, target.definition.kind):
            caller = Found(key, table.facts(key).definitions[mention.inside])
            sure = not by_name_alone(table, key, mention)
            for one, span in _users(table, caller, mention.span):
                found.setdefault(one, []).append((span, sure))
    return _together(found, target)


def callees(table: Table, caller: Found) -> tuple[Call, ...]:
    """What a function launches and, on the device, calls."""
    facts = table.facts(caller.key)
    if caller.definition not in facts.definitions:
        return ()
    place = facts.definitions.index(caller.definition)
    kinds = (KERNEL,) if caller.definition.kind == HOST else (KERNEL, DEVICE)
    found: dict[Found, list[_Place]] = {}
    for mention in facts.mentions:
        if mention.inside == place:
            sure = not by_name_alone(table, caller.key, mention)
            for one in _run_by(table, caller.key, mention):
                if one.definition.kind in kinds:
                    found.setdefault(one, []).append((mention.span, sure))
    return _together(found, caller)


_Place = tuple[Span, bool]


def _together(found: dict[Found, list[_Place]], asked: Found) -> tuple[Call, ...]:
    return tuple(
        Call(one, tuple(dict.fromkeys(span for span, _ in places)), any(sure for _, sure in places))
        for one, places in found.items()
        if one != asked
    )


def _run_by(table: Table, key: str, mention: Mention) -> Iterator[Found]:
    yield from (one for one in meant(table, key, mention) if _runs(table, key, mention, one.definition.kind))
    if mention.how == CALL:
        yield from launched_by_macro(table, key, mention)


def _runs(table: Table, key: str, mention: Mention, kind: str) -> bool:
    """Whether something of that kind runs where it is mentioned: a kernel is launched there, or given to what launches
    it."""
    if kind == DEVICE or mention.how == LAUNCH or LAUNCHING.match(mention.within):
        return True
    seen = table.graph.seen_from(key)
    return any(one.definition.launches and one.key in seen for one in table.defined(mention.within))


def _users(table: Table, caller: Found, span: Span) -> Iterator[tuple[Found, Span]]:
    """A launch in a macro is one by the functions that use the macro."""
    if caller.definition.kind != MACRO:
        yield caller, span
        return
    for key in table.mentioning(caller.definition.name):
        facts = table.facts(key)
        for mention in facts.mentions:
            if mention.name == caller.definition.name and mention.inside != OUTSIDE:
                user = facts.definitions[mention.inside]
                if user.kind != MACRO and caller in macros(table, key, mention.name):
                    yield Found(key, user), mention.span
