"""What a name means, and where something is meant.

Nothing is resolved as a compiler does it: a name means what is defined under it in the files that its file sees, and
what is declared there is looked for further. What is surely a kernel (it is launched) or a device variable (it is
copied to) is looked for further too, nearest first. Of several scopes that one counts in which C++ would find the name
first: the innermost around it, then those that using-directives and using-declarations name. Where none of them has it
(it may come with an argument's type, or through a macro), all are meant, by the name alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from agent.source.index.facts import DEVICE, KERNEL, LAUNCH, MACRO, OUTSIDE, SYMBOL, Definition, Found, Mention
from agent.source.index.graph import nearest
from agent.source.index.table import Table

NAMED = frozenset({KERNEL, DEVICE, SYMBOL})
"""The kinds that are answered with."""


def site_at(table: Table, key: str, offset: int) -> Definition | Mention | None:
    """The name that a cursor is on or right behind."""
    facts = table.facts(key)
    sites: list[Definition | Mention] = [*facts.mentions, *facts.definitions]
    return next((one for one in sites if one.span.start <= offset <= one.span.end), None)


def meant_at(table: Table, key: str, offset: int) -> tuple[Found, ...]:
    """What the name at a place means: all candidates; none where it is no kernel, device function or device variable.
    A macro that launches a kernel of its own means that kernel."""
    site = site_at(table, key, offset)
    if isinstance(site, Mention):
        return meant(table, key, site) or tuple(launched_by_macro(table, key, site))
    if site is None or site.kind not in NAMED:
        return ()
    return (Found(key, site),) if site.whole else meant_by_declaration(table, key, site)


def meant(table: Table, key: str, mention: Mention) -> tuple[Found, ...]:
    """What a mention means: the definitions where there are any, else the declarations."""
    scope = _around(table, key, mention)
    return _resolved(table, key, mention.name, mention.qualifier, mention.kinds, mention.sure, scope)


def by_name_alone(table: Table, key: str, mention: Mention) -> bool:
    """Whether what a mention means stands in scopes of which none is known to be looked into."""
    found = meant(table, key, mention)
    if len({scope_of(one.definition) for one in found}) < 2:
        return False
    return _in_scope(table, key, found, mention.qualifier, _around(table, key, mention)) is None


def _around(table: Table, key: str, mention: Mention) -> str:
    """The scope that a mention stands in, as far as the definition around it tells."""
    return scope_of(table.facts(key).definitions[mention.inside]) if mention.inside != OUTSIDE else ""


def meant_by_declaration(table: Table, key: str, declared: Definition) -> tuple[Found, ...]:
    """The definitions of what is declared; the declaration where there are none."""
    scope = scope_of(declared).removesuffix("::")
    return _resolved(table, key, declared.name, scope, (declared.kind,), True, "") or (Found(key, declared),)


def mentions_of(table: Table, targets: Iterable[Found]) -> Iterator[tuple[str, Mention]]:
    """Every place where one of the targets is meant, by file."""
    wanted = frozenset(targets)
    for name in sorted({one.definition.name for one in wanted}):
        for key in table.mentioning(name):
            if not any(_may_mean(table, key, one) for one in wanted if one.definition.name == name):
                continue
            for mention in table.facts(key).mentions:
                if mention.name == name and not wanted.isdisjoint(meant(table, key, mention)):
                    yield key, mention


def _may_mean(table: Table, key: str, target: Found) -> bool:
    """Whether any mention of its name in a file could mean a target. Told without the file's facts: to open those takes
    long for a name that stands in a thousand files."""
    one = target.definition
    return target in _resolved(table, key, one.name, "", (one.kind,), table.is_sure(one.name, key))


def declarations_of(table: Table, targets: Iterable[Found]) -> Iterator[Found]:
    """The targets and their prototypes, by file."""
    wanted = frozenset(targets)
    for name in sorted({one.definition.name for one in wanted}):
        for found in table.defined(name):
            one = found.definition
            declared = one.kind in NAMED and not one.whole
            if found in wanted or (declared and not wanted.isdisjoint(meant_by_declaration(table, found.key, one))):
                yield found


def launched_by_macro(table: Table, key: str, mention: Mention) -> Iterator[Found]:
    """The kernels of its own that a macro launches, where a mention is one of such a macro."""
    for macro in macros(table, key, mention.name) if mention.how != LAUNCH else ():
        facts = table.facts(macro.key)
        place = facts.definitions.index(macro.definition)
        for one in facts.mentions:
            if one.inside == place:
                # a macro's words mean what they mean where it is used
                yield from meant(table, key, one) or meant(table, macro.key, one)


def macros(table: Table, key: str, name: str) -> tuple[Found, ...]:
    """The launching macros of a name that a file sees."""
    seen = table.graph.seen_from(key)
    return tuple(one for one in table.defined(name) if one.definition.kind == MACRO and one.key in seen)


def _resolved(
    table: Table,
    key: str,
    name: str,
    qualifier: str,
    kinds: tuple[str, ...],
    sure: bool,
    scope: str | None = None,
) -> tuple[Found, ...]:
    """``scope`` is what the name stands in (``a::b::``); where that is None, it may be any."""

    def answer() -> tuple[Found, ...]:
        there = [one for one in table.defined(name) if one.definition.kind in kinds]
        return _found(table, key, there, lambda found: _chosen(table, key, found, qualifier, scope), sure)

    return table.once((key, name, qualifier, kinds, sure, scope), answer) if table.defined(name) else ()


Choice = Callable[[Sequence[Found]], Sequence[Found]]


def _found(table: Table, key: str, there: Sequence[Found], chosen: Choice, sure: bool) -> tuple[Found, ...]:
    seen = chosen(_in(there, table.graph.seen_from(key)) or _in(there, table.graph.seen_around(key)))
    kept = _whole(seen) or chosen(_defined_elsewhere(table, seen, _whole(there), key))
    if not seen and sure:
        kept = chosen(_nearest(_whole(there) or there, key))
    return tuple(kept or seen)


def _chosen(table: Table, key: str, found: Sequence[Found], qualifier: str, scope: str | None) -> Sequence[Found]:
    if scope is not None and len({scope_of(one.definition) for one in found}) > 1:
        inner = _in_scope(table, key, found, qualifier, scope)
        if inner is not None:
            return inner
    return _qualified(found, qualifier)


def _in_scope(table: Table, key: str, found: Sequence[Found], qualifier: str, scope: str) -> Sequence[Found] | None:
    """Those that C++ finds first from within a scope; None where it looks into none of theirs, as far as is known."""
    behind = f"{re.sub('<.*?>', '', qualifier)}::" if qualifier else ""
    for level in _levels(scope):
        here = [one for one in found if scope_of(one.definition) == level + behind]
        if here:
            return here
    used = table.used_in(key)
    named = [one for one in found if _used(one.definition, behind, scope, used)]
    return named or None


def _levels(scope: str) -> Iterator[str]:
    """``a::b::``, ``a::`` and the global one."""
    parts = scope.split("::")[:-1]
    for count in range(len(parts), -1, -1):
        yield "".join(f"{part}::" for part in parts[:count])


def _used(definition: Definition, behind: str, scope: str, used: frozenset[str]) -> bool:
    """Whether a using-directive, or a using-declaration, brings it; each may be relative to a scope around it."""
    whole = scope_of(definition)
    names = (name for level in _levels(scope) for one in used for name in (level + one,))
    return any(name + behind == whole if name.endswith("::") else name == whole + definition.name for name in names)


def _in(found: Iterable[Found], files: frozenset[str]) -> list[Found]:
    return [one for one in found if one.key in files]


def _whole(found: Iterable[Found]) -> list[Found]:
    return [one for one in found if one.definition.whole]


def _defined_elsewhere(table: Table, declared: Sequence[Found], whole: Sequence[Found], key: str) -> list[Found]:
    """The definitions of what is only declared where it is used: of that scope where there are such; in files that see
    a declaration, else the nearest."""
    files, kinds = {one.key for one in declared}, {one.definition.kind for one in declared}
    scopes = {scope_of(one.definition) for one in declared}
    alike = [one for one in whole if one.definition.kind in kinds]
    alike = [one for one in alike if scope_of(one.definition) in scopes] or alike
    return [one for one in alike if files & table.graph.seen_from(one.key)] or _nearest(alike, key)


def _nearest(found: Sequence[Found], key: str) -> list[Found]:
    near = set(nearest((one.key for one in found), key))
    return [one for one in found if one.key in near]


def _qualified(found: Sequence[Found], qualifier: str) -> Sequence[Found]:
    """Those whose scope ends as it is written, where there are such."""
    if not qualifier:
        return found
    ending = f"::{re.sub('<.*?>', '', qualifier)}::"
    return [one for one in found if f"::{scope_of(one.definition)}".endswith(ending)] or found


def scope_of(definition: Definition) -> str:
    """``a::b::`` of ``a::b::f<int>``."""
    plain = re.sub("<.*", "", definition.qualified)
    return plain[: plain.rfind("::") + 2] if "::" in plain else ""
