"""Launches that give way to others: their statements are taken out and the plan's new steps are written there."""

import re
from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.ideas.rewriting import indent_of, remove, unused_name
from agent.search.host.problem import Inexpressible
from agent.search.host.sites import check_of, is_alone, names_in_scope, statement_of, unit_at
from agent.search.host.spelling import INT_MAX, Speller
from agent.search.host.writing import Names, allocation, statements
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.launch import LaunchSite
from agent.source.line_ends import line_end
from agent.source.nodes import LOOPS, ancestors, enclosing, node_text, walk
from agent.source.span import Span
from agent.workload.plan import Copy, Fill, Grid, Plan, Repeat, Scratch, Step, Swap
from agent.workload.workload import Workload

# What may stand in a loop that is replaced as a whole, beside its launches: nothing that anybody else would miss.
_HARMLESS = re.compile(
    r"(\w+\s*\(\s*)?cuda(GetLastError|PeekAtLastError|DeviceSynchronize|ThreadSynchronize|StreamSynchronize)\b.*"
    r"|(std\s*::\s*)?swap\s*\(.*|;",
    re.DOTALL,
)


@frozen
class Run:
    """Steps of the old plan that are replaced by steps of the new one. ``sites`` are those of the old steps' launches,
    in order; ``depth`` says how many loops of the plan stand around both."""

    old: tuple[Step, ...]
    new: tuple[Step, ...]
    sites: tuple[LaunchSite, ...]
    depth: int


def run_edits(run: Run, spell: Speller, old: Plan, plan: Plan, workload: Workload, document: Document) -> list[Edit]:
    """Edits of the host code. Raises Inexpressible where the launches do not stand together, share a statement or a
    loop with something else, or where a name is out of sight."""
    places = _places(run, document)
    if len({place.parent for place in places}) != 1:
        raise Inexpressible(f"the launches from line {run.sites[0].line} on do not stand in one block")
    last = places[-1]
    fresh = [one for one in plan.scratch if one not in old.scratch]
    names = Names(
        {one.name: unused_name(one.name, _identifiers(document, last)) for one in fresh},
        _stream(run.sites),
        b"swap" in document.text,
        check_of(document),
        *_shapes(run, last, document),
    )
    unit = unit_at(document, last)
    indent = indent_of(document, last)
    numbers, spell = _numbers(run, plan, old, spell, _identifiers(document, last) | set(names.scratch.values()))
    lines = statements(run.new, spell, names, plan, workload, indent, unit)
    if not fresh:
        before = [indent + line for line in numbers]
        return [*(remove(document, place) for place in places[:-1]), _in_place(document, last, lines, before, [])]
    around = _outermost_loop(last, document, [*numbers, *_sizes(fresh, spell)])
    if around is None:
        before, after = _memory(fresh, names, spell, indent)
        before = [*(indent + line for line in numbers), *before]
        return [*(remove(document, place) for place in places[:-1]), _in_place(document, last, lines, before, after)]
    outside = indent_of(document, around)
    before, after = _memory(fresh, names, spell, outside)
    before = [*(outside + line for line in numbers), *before]
    end = line_end(document.text)
    margin = indent_of(document, around).encode()
    head = end.join(line.encode() for line in before).lstrip() + end + margin
    tail = end + end.join(line.encode() for line in after)
    return [
        *(remove(document, place) for place in places[:-1]),
        Edit(Span(around.start_byte, around.start_byte), head),
        _in_place(document, last, lines, [], []),
        Edit(Span(around.end_byte, around.end_byte), tail),
    ]


Shapes = dict[tuple[str, Grid], str]


def _shapes(run: Run, place: Node, document: Document) -> tuple[Shapes, Shapes]:
    """The grids and blocks of the old launches as their sites tell them, where that can be told at ``place`` too."""
    seen = names_in_scope(document, place) | {"dim3"}
    launches = Plan(run.old).launches()
    grids: Shapes = {}
    blocks: Shapes = {}
    for launch, site in zip(launches, run.sites, strict=False):
        for known, shape, text in ((grids, launch.grid, site.grid), (blocks, launch.block, site.block)):
            plain = " ".join(text.split())
            if set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", plain)) <= seen:
                known.setdefault((launch.kernel, shape), plain)
    return grids, blocks


def _numbers(run: Run, plan: Plan, old: Plan, spell: Speller, taken: set[str]) -> tuple[list[str], Speller]:
    """Declarations of the plan's new locals that the new steps use, and how they are spelled from then on."""
    used = {name for step in run.new for name in _names(step)}
    used |= {name for one in plan.scratch if one not in old.scratch for name in one.extent.names}
    lines: list[str] = []
    for name, value in plan.locals:
        if name not in used or name not in spell.locals:
            continue
        written = unused_name(name, taken)
        kind = "const size_t" if spell.declared.get(name, 0) > INT_MAX else "const int"
        lines.append(f"{kind} {written} = {spell.text(value)};")
        spell = spell.also({name: written})
    return lines, spell


def _names(step: Step) -> frozenset[str]:
    if isinstance(step, Repeat):
        heads = [one for one in (step.count, step.start, step.update, step.condition) if one is not None]
        return frozenset().union(*(one.names for one in heads), *map(_names, step.body))
    if isinstance(step, Swap | Fill | Copy):
        return frozenset()
    parts = (*step.grid, *step.block, step.shared, *step.arguments)
    return frozenset().union(*(one.names for one in parts))


def _memory(fresh: Sequence[Scratch], names: Names, spell: Speller, indent: str) -> tuple[list[str], list[str]]:
    before = [line for one in fresh for line in allocation(one, names, spell, indent)]
    return before, [indent + names.checked(f"cudaFree({names.scratch[one.name]})") for one in fresh]


def _in_place(document: Document, place: Node, lines: list[str], before: list[str], after: list[str]) -> Edit:
    """The new lines for a statement; in braces where the statement is the whole body of something."""
    every = [*before, *lines, *after]
    in_block = place.parent is not None and place.parent.type in ("compound_statement", "case_statement")
    if in_block and not every:
        return remove(document, place)
    if len(every) > 1 and not in_block:
        indent, unit = indent_of(document, place), unit_at(document, place)
        every = [indent + "{", *(unit + line for line in every), indent + "}"]
    text = "\n".join(every).lstrip()
    return Edit(Span(place.start_byte, place.end_byte), text.encode().replace(b"\n", line_end(document.text)))


def _places(run: Run, document: Document) -> list[Node]:
    """The statements that the run's old steps are: one for each launch, a whole loop for a repeat."""
    places: list[Node] = []
    sites = list(run.sites)
    for step in run.old:
        if isinstance(step, Repeat):
            inside = [sites.pop(0) for _ in range(_count(step))]
            places.append(_loop(inside, document, run.depth))
        elif isinstance(step, Swap | Fill | Copy):
            raise Inexpressible("the rewrite leaves out a copy, a clearing or an exchange that the host code does")
        else:
            site = sites.pop(0)
            if not is_alone(document, site):
                raise Inexpressible(f"the launch at line {site.line} is part of a larger statement")
            places.append(statement_of(document, site))
    return places


def _count(step: Repeat) -> int:
    return sum(
        _count(part) if isinstance(part, Repeat) else int(not isinstance(part, Swap | Fill | Copy))
        for part in step.body
    )


def _loop(sites: Sequence[LaunchSite], document: Document, depth: int) -> Node:
    """The loop around launches that are all of what it does."""
    first = statement_of(document, sites[0])
    loops = [above for above in ancestors(first) if above.type in LOOPS]
    if len(loops) <= depth:
        raise Inexpressible(f"the launch at line {sites[0].line} stands in no loop of its own")
    loop = loops[-1 - depth]
    own = [statement_of(document, site) for site in sites]
    for node in walk(loop):
        if node.type in ("expression_statement", "declaration", "return_statement", "break_statement"):
            harmless = _HARMLESS.fullmatch(node_text(document, node).strip()) is not None
            header = node.parent == loop
            if not (harmless or header or any(node == one for one in own)):
                line = document.line(node.start_byte)
                raise Inexpressible(f"the loop around the launch at line {sites[0].line} does more (line {line})")
    return loop


def _sizes(fresh: Sequence[Scratch], spell: Speller) -> list[str]:
    return [spell.bytes(one.extent, one.dtype) for one in fresh]


def _outermost_loop(place: Node, document: Document, texts: Sequence[str]) -> Node | None:
    """The outermost loop around a place, if what stands in ``texts`` can be said before it already."""
    loops = [above for above in ancestors(place) if above.type in LOOPS]
    if not loops:
        return None
    outer = loops[-1]
    seen = names_in_scope(document, outer)
    used = set(re.findall(r"[A-Za-z_]\w*", " ".join(texts))) - {"sizeof", "size_t"}
    block = outer.parent is not None and outer.parent.type == "compound_statement"
    return outer if block and all(one in seen or not _is_local(one, document, place) for one in used) else None


def _is_local(name: str, document: Document, place: Node) -> bool:
    return name in names_in_scope(document, place)


def _identifiers(document: Document, place: Node) -> set[str]:
    """Every word of the function around a place, and every macro: names that a new local must not have."""
    function = enclosing(place, "function_definition")
    text = node_text(document, function) if function is not None else ""
    return {*re.findall(r"[A-Za-z_]\w*", text), *(macro.name for macro in document.macros)}


def _stream(sites: Sequence[LaunchSite]) -> str | None:
    streams = {site.stream for site in sites}
    if len(streams) > 1:
        raise Inexpressible(f"the launches from line {sites[0].line} on use different streams")
    return next(iter(streams))
