"""What a vectorised kernel looks like: packs of elements loaded, worked on one by one in registers, and stored."""

import re

from attrs import evolve
from tree_sitter import Node

from agent.analysis.dependence import PURE
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, bare, callee, contains, descendants, enclosing, text
from agent.ideas.elements.front import depends
from agent.ideas.elements.pieces import Lines, at, given, lines_for, remaining, rewritten
from agent.ideas.elements.places import end_of
from agent.ideas.elements.reach import blocks_for
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import (
    Rewrite,
    fresh_counter,
    fresh_local,
    indent_of,
    indented,
    replace,
    replace_between,
    source_text,
)
from agent.ideas.vectors.held import Held, Near
from agent.ideas.vectors.moving import Moving, moving
from agent.ideas.vectors.site import Group, Site
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.workload.expression import number
from agent.workload.plan import Launch, Plan


def vectorised(view: View, sites: tuple[Site, ...], width: int, held: Held | None = None) -> Rewrite:
    """``width`` elements a thread."""
    moves = moving(view, width, held is not None)
    helpers = moves.helpers(any(group.stored for site in sites for group in site.groups))
    lines = lines_for(view)
    if sites[0].loop is None:
        (site,) = sites
        first = _first(view, site)
        written = _front(view, site, width, first, work(view, site, first, moves, lines, None), lines)
        children = view.facts.body.named_children
        edits = (replace_between(children[0], children[-1], written),)
        return Rewrite(edits, helpers, _plan(view, site, width))
    return Rewrite(tuple(_loop(view, site, moves, lines, held) for site in sites), helpers)


def _first(view: View, site: Site) -> str:
    return fresh_local(f"{site.variable.name}_first", view.document, view.kernel)


def _loop(view: View, site: Site, moves: Moving, lines: Lines, held: Held | None) -> Edit:
    assert site.loop is not None
    first = _first(view, site)
    inside = work(view, site, first, moves, lines, held)
    limit = source_text(view.document, site.loop.bound_node) if held is None else held.whole
    loop = lines.block(_header(view, site, moves.width, first, limit), inside)
    if held is not None:
        loop = held.around(view, site.loop, loop, lines)
    return replace(site.loop.node, indented(view.document, site.loop.node, "\n".join(loop)))


def _front(view: View, site: Site, width: int, first: str, inside: list[str], lines: Lines) -> str:
    assert site.place is not None
    replaced = {
        at(site.variable.declarator): first,
        at(site.place.init): f"{width} * ({source_text(view.document, site.place.init)})",
    }
    for piece in site.head:
        if piece.kind == "test":
            replaced |= {at(use): first for use in _uses(view, piece.node, site.variable)}
    text_lines = lines.body(site.head, replaced, "return", inside)
    indent = indent_of(view.document, view.facts.body.named_children[0])
    return ("\n" + indent).join(text_lines)


def _header(view: View, site: Site, width: int, first: str, limit: str) -> str:
    assert site.loop is not None
    start, by = strided(view, site.loop)
    kind = site.loop.variable.type
    return f"for ({kind} {first} = {width} * {start}; {first} < {limit}; {first} += {width} * {by})"


def strided(view: View, loop: Loop) -> tuple[str, str]:
    """(start, step) of a loop as factors."""
    init = loop.node.child_by_field_name("initializer")
    declared = init if init is None or init.type != "declaration" else init.child_by_field_name("declarator")
    begin = None if declared is None else declared.child_by_field_name("value") or declared.child_by_field_name("right")
    assert begin is not None
    step = bare(loop.update.child_by_field_name("right"))
    assert step is not None
    if text(loop.update.child_by_field_name("operator")) == "=":  # i = i + step
        left, right = step.child_by_field_name("left"), step.child_by_field_name("right")
        own = bare(left)
        mine = own is not None and own.type == "identifier" and view.facts.symbols.resolve(own) is loop.variable
        step = right if mine else left
        assert step is not None
    start, by = (source_text(view.document, one) for one in (begin, step))
    start, by = (part if re.fullmatch(r"[\w.]+", part) else f"({part})" for part in (start, by))
    return start, by


def work(view: View, site: Site, first: str, moves: Moving, lines: Lines, held: Held | None) -> list[str]:
    """Loads, the work on each element, stores."""
    document, kernel, width = view.document, view.kernel, moves.width
    counter = fresh_counter(document, kernel)
    count = f"{width}" if site.limit is None else f"{_summand(view, site.limit)} - {first}"
    packs: dict[Symbol, list[str]] = {}
    replaced: dict[tuple[int, int], str] = {}
    loads: list[str] = []
    stores: list[str] = []
    nears: list[Near] = []
    for group in site.groups:
        taken = [name for found in packs.values() for name in found]
        name = fresh_local(f"{group.root.name}_pack", document, kernel, first, counter, *taken)
        packs.setdefault(group.root, []).append(name)
        address = f"&{moved(view, site, group, first)}"
        near = None
        if held is not None and at(group.accesses[0].node) in held.reads:
            near = held.near(name, first, counter, moves)
            name = near.name
        replaced |= {at(access.node): f"{name}.v[{counter}]" for access in group.accesses}
        if near is not None:
            loads += near.loaded(site, address, lines, group.stored)
            nears.append(near)
            stores += near.put_back(site)
        elif group.loaded:
            constant = "" if group.stored else "const "
            loads.append(f"{constant}auto {name} = {moves.load(address, count)};")
        else:
            loads.append(f"{moves.pack}<{group.accesses[0].element}, {width}> {name};")
        if group.stored:
            stores.append(moves.store(address, name, count))
    making: list[str] = []
    for near in nears:
        front, within = near.made(view, site, replaced, lines)
        loads, making = [*loads, *front], [*making, *within]
    done = remaining(view, site.work, [access.node for group in site.groups for access in group.accesses])
    inside = [*making, *lines.body(done, replaced, "continue")]
    gone = [access.node for group in site.groups for access in group.accesses]
    uses = [
        use
        for piece in done
        for use in _uses(view, piece.node, site.variable)
        if not any(contains(g, use) for g in gone)
    ]
    guarded = site.limit is not None and not moves.whole and not _harmless(view, site)
    if uses or guarded:
        own = f"const {site.variable.type} {site.variable.name} = {first} + {counter};"
        inside = [own, *inside]
    if guarded:
        assert site.limit is not None
        leave = f"if ({site.variable.name} >= {source_text(document, site.limit)}) break;"
        inside = [inside[0], leave, *inside[1:]]
    loop = lines.block(f"for (int {counter} = 0; {counter} < {width}; ++{counter})", inside)
    return [*loads, "#pragma unroll", *loop, *stores]


def _summand(view: View, node: Node) -> str:
    """A bound as the first part of a difference."""
    shifts = node.type == "binary_expression" and text(node.child_by_field_name("operator")) not in (
        "+",
        "-",
        "*",
        "/",
        "%",
    )
    written = source_text(view.document, node)
    return f"({written})" if shifts or node.type == "conditional_expression" else written


def _uses(view: View, node: Node, symbol: Symbol) -> list[Node]:
    return [one for one in descendants(node, "identifier") if view.facts.symbols.resolve(one) is symbol]


def _harmless(view: View, site: Site) -> bool:
    """Whether the work on an element that does not exist (zeros) does no more than arithmetic."""
    gone = {at(access.node) for group in site.groups for access in group.accesses}
    for piece in site.work:
        if piece.kind == "comment":
            continue
        if site.loop is not None and any(symbol.writes for symbol in given(view, piece.node) if not _own(site, symbol)):
            return False
        others = [a for a in view.facts.accesses_in(piece.node) if at(a.node) not in gone and a.space != "constant"]
        calls = [callee(call) for call in descendants(piece.node, "call_expression")]
        loops = any(True for _ in descendants(piece.node, *LOOPS))
        if others or loops or any(name not in PURE and name not in _plain_functions(view) for name in calls):
            return False
    return True


def _own(site: Site, symbol: Symbol) -> bool:
    """Whether a name is declared for each element anew."""
    return symbol.is_memory or any(contains(piece.node, symbol.declarator) for piece in site.work)


def _plain_functions(view: View) -> frozenset[str]:
    """The functions of the file that touch no memory and have no loop."""
    found = set()
    for node in descendants(view.document.tree.root_node, "function_definition"):
        declarator = node.child_by_field_name("declarator")
        busy = any(True for _ in descendants(node, *LOOPS, "subscript_expression", "pointer_expression"))
        if declarator is not None and not busy and enclosing(node, "class_specifier", "struct_specifier") is None:
            found.add(text(declarator.child_by_field_name("declarator")).split("::")[-1])
    return frozenset(found) - {view.kernel.name}


def moved(view: View, site: Site, group: Group, first: str) -> str:
    """The group's element as an expression of the thread's first element."""
    return _inlined(view, site, group.accesses[0].node, first)


def _inlined(view: View, site: Site, node: Node, first: str, depth: int = 0) -> str:
    """A node's text with the element's number replaced, and names that depend on it by what they stand for."""
    replaced: dict[tuple[int, int], str] = {}
    for use in descendants(node, "identifier"):
        symbol = view.facts.symbols.resolve(use)
        if symbol is site.variable:
            replaced[at(use)] = first
        elif symbol is not None and symbol.init is not None and depth < 20 and not symbol.is_memory:
            declared_in_work = any(contains(piece.node, symbol.declarator) for piece in site.work)
            if declared_in_work or site.variable in depends(view, symbol.init):
                inner = _inlined(view, site, symbol.init, first, depth + 1)
                alone = symbol.init.type in ("identifier", "number_literal", "parenthesized_expression")
                whole = use.parent is not None and use.parent.type == "subscript_argument_list"
                replaced[at(use)] = inner if alone or whole else f"({inner})"
    return rewritten(view, node, replaced)


def _plan(view: View, site: Site, width: int) -> Plan:
    def changed(launch: Launch) -> Launch:
        extent = view.block[0]
        assert extent is not None
        if site.limit is None:
            return evolve(launch, block=(number(extent // width), *launch.block[1:]))
        blocks = blocks_for(end_of(view, launch, site.limit), extent * width)
        return evolve(launch, grid=(blocks, *launch.grid[1:]))

    return each_launch(view.request.plan, view.kernel, changed)
