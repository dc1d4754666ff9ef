"""Whether a row and what goes with it start aligned: a test in front of the first pass over it."""

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.syntax import bare, contains, descendants, text
from agent.ideas.vectors.site import BYTES, Group, Site
from agent.ideas.vectors.write import moved
from agent.ideas.view import View

SHORT = 60
"""Characters of addresses that stand in one line."""


def aligned(view: View, sites: Sequence[Site], width: int, others: Sequence[str] = ()) -> str | None:
    """The test that packs of ``width`` elements of every array in ``sites`` (the passes in order), and what ``others``
    point at, are aligned; None: some address cannot be told before the first pass."""
    found: dict[int, list[str]] = {BYTES: list(others)} if others else {}
    for site in sites:
        for group in site.groups:
            assert site.loop is not None and sites[0].loop is not None
            if not _told(view, group, site, sites[0].loop.node):
                return None
            spelled, step = _start(view, site, group), min(BYTES, width * group.bytes)
            if spelled not in found.setdefault(step, []):
                found[step].append(spelled)
    tests = []
    for step, starts in found.items():
        places = (" |\n    " if sum(map(len, starts)) > SHORT else " | ").join(f"(size_t){one}" for one in starts)
        tests.append(f"({places}) % {step} == 0" if len(starts) > 1 else f"{places} % {step} == 0")
    return " && ".join(tests)


def _start(view: View, site: Site, group: Group) -> str:
    """Where element 0 lies."""
    node = group.accesses[0].node
    pointer, index = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    inner = bare(index.named_children[0]) if index is not None and len(index.named_children) == 1 else None
    own = inner is not None and inner.type == "identifier" and view.facts.symbols.resolve(inner) is site.variable
    if own and pointer is not None and pointer.type == "identifier":
        return text(pointer)
    return f"&{moved(view, site, group, '0')}"


def _told(view: View, group: Group, site: Site, first: Node) -> bool:
    """Whether the address means the same in front of the first pass as in its own."""
    node = group.accesses[0].node
    inside = [one for one in view.facts.accesses_in(node) if one.node != node]
    assert site.loop is not None
    return not inside and all(_steady(view, one, site.loop, first) for one in _names(view, node, site.loop))


def _names(view: View, node: Node, loop: Loop, depth: int = 0) -> Iterator[Node]:
    """The names that an address is made of, those behind the loop's own locals instead of these."""
    for name in descendants(node, "identifier"):
        symbol = view.facts.symbols.resolve(name)
        if symbol is loop.variable:
            continue
        local = symbol is not None and contains(loop.node, symbol.declarator)
        if local and symbol is not None and symbol.init is not None and depth < 20:
            yield from _names(view, symbol.init, loop, depth + 1)
        else:
            yield name


def _steady(view: View, name: Node, loop: Loop, first: Node) -> bool:
    symbol = view.facts.symbols.resolve(name)
    if symbol is None:
        return True
    known = symbol.space == "parameter" or symbol.declarator.end_byte <= first.start_byte
    return known and not any(first.start_byte <= write.start_byte < loop.node.end_byte for write in symbol.writes)
