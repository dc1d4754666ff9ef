"""Writing it: the block's threads share the turns of the loop between them, and each turn looks its values up."""

import re

from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.syntax import callee, descendants
from agent.ideas.blocktable.site import DEAR, Entry, Table, held, start_of
from agent.ideas.elements.pieces import at, rewritten
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, indent_unit, replace, source_text, with_unit
from agent.ideas.rowpass.writing import insert_before_loop
from agent.ideas.view import AXES, View
from agent.source.edits import Edit

ALONE = ("parenthesized_expression", "argument_list", "init_declarator")


def tabled(view: View, found: tuple[Table, ...]) -> Rewrite:
    """The rewrite: tables that are made at one place share a barrier."""
    edits: list[Edit] = []
    made: dict[Node, list[str]] = {}
    taken: list[str] = []
    for table in found:
        names = [_named(view, entry, bool(table.loops), taken) for entry in table.entries]
        made.setdefault(table.before, []).extend(_made(view, table, names, taken))
        for entry, name in zip(table.entries, names, strict=True):
            edits += [replace(place, _looked_up(view, table, name, place)) for place in entry.places]
    for before, lines in made.items():
        written = with_unit("\n".join([*lines, "__syncthreads();"]), indent_unit(view.document, view.kernel))
        edits.append(insert_before_loop(view.document, before, written))
    return Rewrite(tuple(edits))


def _named(view: View, entry: Entry, loops: bool, taken: list[str]) -> str:
    calls = [entry.places[0], *descendants(entry.places[0], "call_expression")]
    function = next(callee(one) for one in calls if one.type == "call_expression" and callee(one) in DEAR)
    wanted = styled(f"{function}_{'table' if loops else 'of_block'}", view)
    taken.append(fresh_local(wanted, view.document, view.kernel, *taken))
    return taken[-1]


def _made(view: View, table: Table, names: list[str], taken: list[str]) -> list[str]:
    """The arrays, and the loop that fills them; single values are worked out by one thread."""
    thread, threads = _thread(view)
    if not table.loops:
        return [
            "// The same for all threads, worked out once for the whole block.",
            *(f"__shared__ {entry.type} {name};" for name, entry in zip(names, table.entries, strict=True)),
            f"if ({thread} == 0) {{",
            *(
                f"    {name} = {_inlined(view, entry.places[0])};"
                for name, entry in zip(names, table.entries, strict=True)
            ),
            "}",
        ]
    turn = fresh_local(styled("turn", view), view.document, view.kernel, *taken)
    counters = " and ".join(loop.variable.name for loop in table.loops)
    spelled = [
        f"{name}[{turn}] = {_inlined(view, entry.places[0])};" for name, entry in zip(names, table.entries, strict=True)
    ]
    turns = " * ".join(_factor(_count(view, loop)) for loop in table.loops) if len(table.loops) > 1 else None
    turns = turns or _count(view, table.loops[0])
    enough = "" if table.fixed else f" && {turn} < {table.capacity}"
    return [
        f"// What hangs on {counters} alone, worked out once for the whole block.",
        *(
            f"__shared__ {entry.type} {name}[{table.capacity}];"
            for name, entry in zip(names, table.entries, strict=True)
        ),
        f"for (int {turn} = {thread}; {turn} < {turns}{enough}; {turn} += {threads}) {{",
        *(f"    {line}" for line in _counters(view, table, turn)),
        *(f"    {line}" for line in spelled),
        "}",
    ]


def _thread(view: View) -> tuple[str, str]:
    """(the thread's number in its block, how many there are)."""
    used = [axis for axis, extent in zip(AXES, view.block, strict=True) if extent != 1] or ["x"]
    number = f"threadIdx.{used[-1]}"
    for axis in reversed(used[:-1]):
        inner = f"({number})" if "+" in number else number
        number = f"threadIdx.{axis} + blockDim.{axis} * {inner}"
    return number, " * ".join(f"blockDim.{axis}" for axis in used)


def _counters(view: View, table: Table, turn: str) -> list[str]:
    """The loops' own counters in a turn."""
    if len(table.loops) == 1:
        return [_counter(view, table.loops[0], turn)]
    inner = _factor(_count(view, table.loops[1]))
    return [
        _counter(view, table.loops[0], f"{turn} / {inner}"),
        _counter(view, table.loops[1], f"{turn} % {inner}"),
    ]


def _counter(view: View, loop: Loop, turn: str) -> str:
    start = _start(view, loop)
    return f"const {loop.variable.type} {loop.variable.name} = {turn if start == '0' else f'{start} + {turn}'};"


def _start(view: View, loop: Loop) -> str:
    start = start_of(loop)
    assert start is not None
    return _inlined(view, start)


def _count(view: View, loop: Loop) -> str:
    """How many turns a loop takes."""
    start, bound = _start(view, loop), _inlined(view, loop.bound_node)
    known = (loop.bound - loop.start).constant
    if known is not None:
        return str(known + (loop.relation == "<="))
    if loop.relation == "<=":
        return bound if start == "1" else f"{bound} - {_factor(start)} + 1"
    return bound if start == "0" else f"{bound} - {_factor(start)}"


def _factor(written: str) -> str:
    return written if re.fullmatch(r"\w+", written) else f"({written})"


def _looked_up(view: View, table: Table, name: str, place: Node) -> str:
    if not table.loops:
        return name
    index = _index(view, table.loops[0])
    if len(table.loops) > 1:
        outer = index if re.fullmatch(r"\w+", index) else f"({index})"
        index = f"{outer} * {_factor(_count(view, table.loops[1]))} + {_index(view, table.loops[1])}"
    if table.fixed:
        return f"{name}[{index}]"
    either = f"{index} < {table.capacity} ? {name}[{index}] : {source_text(view.document, place)}"
    alone = place.parent is not None and place.parent.type in ALONE
    return either if alone else f"({either})"


def _index(view: View, loop: Loop) -> str:
    start = _start(view, loop)
    if start == "0":
        return loop.variable.name
    if start.startswith("-") and re.fullmatch(r"-\w+", start):
        return f"{loop.variable.name} + {start[1:]}"
    return f"{loop.variable.name} - {_factor(start)}"


def _inlined(view: View, node: Node) -> str:
    """An expression's text with the loop's own locals replaced by what they stand for, in their type."""
    replaced: dict[tuple[int, int], str] = {}
    names = [node] if node.type == "identifier" else list(descendants(node, "identifier"))
    for use in names:
        symbol = view.facts.symbols.resolve(use)
        if symbol is not None and held(view, symbol):
            assert symbol.init is not None
            inner = _inlined(view, symbol.init)
            replaced[at(use)] = f"({inner})" if symbol.type == "auto" else f"({symbol.type})({inner})"
    return rewritten(view, node, replaced) if replaced else source_text(view.document, node)
