"""Kernels, device functions and device variables by a part of their name."""

from agent.source.index.facts import KERNEL, Found
from agent.source.index.resolving import NAMED, scope_of
from agent.source.index.table import Table


def named(table: Table, query: str, most: int) -> tuple[Found, ...]:
    """Those whose name has the letters of ``query`` in it, in their order: the very name first, then beginnings, then
    parts, then the rest; kernels before others, short names before long ones. Of ``scope::name`` the scope must be a
    part of theirs."""
    scope, _, wanted = query.lower().rpartition("::")
    ranked = ((_rank(wanted, name.lower()), len(name), name) for name in table.names)
    found: list[tuple[int, bool, int, Found]] = []
    for rank, length, name in sorted(one for one in ranked if one[0] < _UNLIKE):
        for one in table.defined(name):
            about = one.definition
            if about.whole and about.kind in NAMED and scope in scope_of(about).lower():
                found.append((rank, about.kind != KERNEL, length, one))
        if len(found) >= most:
            break
    return tuple(one for *_, one in sorted(found, key=lambda one: one[:3])[:most])


_UNLIKE = 4


def _rank(wanted: str, name: str) -> int:
    if wanted == name:
        return 0
    if wanted in name:
        return 1 if name.startswith(wanted) else 2
    letters = iter(name)
    return 3 if all(letter in letters for letter in wanted) else _UNLIKE
