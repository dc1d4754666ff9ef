"""The whole row stays on chip: copied to shared memory all at once, and what does not fit there kept in registers."""

from attrs import evolve, frozen

from agent.analysis.patterns.block_size import Resizable
from agent.analysis.patterns.row_reuse import RowReuse
from agent.ideas.elements.pieces import Lines, at, lines_for
from agent.ideas.pipeline.write import HEADER
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indented, replace
from agent.ideas.rowkeep.aligned import aligned
from agent.ideas.rowkeep.repeated import repeated
from agent.ideas.rowkeep.room import Dynamic
from agent.ideas.rowkeep.write import above, bounded, changed_plan, declared_row, enlarged, grouped
from agent.ideas.vectors.held import There
from agent.ideas.vectors.moving import Moving, moving
from agent.ideas.vectors.site import BYTES, Site
from agent.ideas.vectors.write import moved, strided, work
from agent.ideas.view import View
from agent.source.edits import Edit


@frozen
class Room:
    """Elements of a row in shared memory, and packs of it in each thread's registers."""

    shared: int
    turns: int
    threads: int


@frozen(eq=False)
class _Names:
    """Of what the new code declares: ``whole`` elements come in packs, the first ``kept`` of them in shared memory."""

    row: str
    aligned: str
    whole: str
    kept: str
    more: str
    turn: str


def kept_whole(
    reuse: RowReuse, view: View, passes: tuple[Site, ...], room: Room, arrays: Resizable | None, own: Dynamic
) -> Rewrite:
    """The rewrite. ``passes`` are the loops over the row. A longer row is read again beyond the room, one by one."""
    element = view.element_bytes(reuse.reads[0][0])
    assert element is not None
    used = own.grown(room.threads, element)
    row = fresh_name("kept_row", view.document)
    ready, whole, kept, more, turn = (
        fresh_local(name, view.document, view.kernel) for name in ("aligned", "whole", "kept", "more", "turn")
    )
    names = _Names(row, ready, whole, kept if room.turns else whole, more, turn)
    moves = moving(view, BYTES // element, True)
    again = repeated(reuse, view)
    reads = frozenset(at(read.node) for group in reuse.reads for read in group)
    made = None if again is None else (again.first, again.second)
    held = There(names.row, "", names.whole, 0, reuse.passes[0].node, reads, made)
    lines = lines_for(view)
    declared = declared_row(row, reuse.root.type, own, used // element)
    others = () if own.array is None else (row,)
    edits = [above(reuse, view, _opening(view, reuse, passes, names, room, held, moves, declared, others))]
    edits += [_pass(view, site, names, room, held, moves, lines) for site in passes]
    edits += [*enlarged(arrays, room.threads), *bounded(view, room.threads)]
    plan = changed_plan(reuse, view, room.shared, element, room.threads, used)
    return Rewrite(tuple(edits), moves.helpers(True), plan, headers=(HEADER,))


def _opening(
    view: View,
    reuse: RowReuse,
    passes: tuple[Site, ...],
    names: _Names,
    room: Room,
    held: There,
    moves: Moving,
    declared: str,
    others: tuple[str, ...],
) -> str:
    """The declarations, and the start of the copies."""
    kind, width, bound = reuse.passes[0].variable.type, moves.width, grouped(view, reuse.passes[0].bound_node)
    test = aligned(view, passes, width, others)
    assert test is not None
    most = room.shared + room.turns * room.threads * width
    least = f"({bound} < {most} ? {bound} : {most})"
    start, step = strided(view, reuse.passes[0])
    first = fresh_local(f"{reuse.passes[0].variable.name}_first", view.document, view.kernel)
    head = f"for ({kind} {first} = {width} * {start}; {first} < {names.kept}; {first} += {width} * {step})"
    copy = f"__pipeline_memcpy_async(&{names.row}[{first}], &{_address(view, passes[0], held, first)}, {BYTES});"
    lines = [
        f"// Up to {most} elements of the row stay on chip, in packs of {width} where it starts aligned.",
        declared,
        f"const bool {names.aligned} = {test};",
        f"const {kind} {names.whole} = {names.aligned} ? {least} / {width} * {width} : 0;",
    ]
    if room.turns:
        lines += [
            f"const {kind} {names.kept} = {names.whole} < {room.shared} ? {names.whole} : {room.shared};",
            f"{moves.pack}<{reuse.root.type}, {width}> {names.more}[{room.turns}];  // behind what is in shared memory",
        ]
    return "\n".join([*lines, *lines_for(view).block(head, [copy]), "__pipeline_commit();"])


def _address(view: View, site: Site, held: There, first: str) -> str:
    """The row's element ``first`` in memory."""
    group = next(one for one in site.groups if any(at(access.node) in held.reads for access in one.accesses))
    return moved(view, site, group, first)


def _pass(view: View, site: Site, names: _Names, room: Room, held: There, moves: Moving, lines: Lines) -> Edit:
    """Loops over what is in registers, over what is not on chip, and over what is in shared memory: in the first pass,
    that comes last."""
    loop = site.loop
    assert loop is not None and loop.variable.init is not None
    begins = loop.node == held.first
    start, step = strided(view, loop)
    kind, width = loop.variable.type, moves.width
    first = fresh_local(f"{loop.variable.name}_first", view.document, view.kernel)
    rest = lines.statement(loop.node, {at(loop.variable.init): f"{names.whole} + {start}"})
    written: list[str] = []
    if room.turns:
        over = f"for (int {names.turn} = 0; {names.turn} < {room.turns}; ++{names.turn})"
        own = f"const {kind} {first} = {names.kept} + {width} * ({start} + {names.turn} * {step});"
        if begins:
            load = f"{names.more}[{names.turn}] = {moves.load(f'&{_address(view, site, held, first)}', '')};"
            written += ["#pragma unroll", *lines.block(over, [own, f"if ({first} < {names.whole}) {load}"])]
        inside = work(view, site, first, moves, lines, evolve(held, register=f"{names.more}[{names.turn}]"))
        written += ["#pragma unroll", *lines.block(over, [own, f"if ({first} >= {names.whole}) break;", *inside])]
    head = f"for ({kind} {first} = {width} * {start}; {first} < {names.kept}; {first} += {width} * {step})"
    shared = lines.block(head, work(view, site, first, moves, lines, held))
    written += [*rest, "__pipeline_wait_prior(0);", *shared] if begins else [*shared, *rest]
    return replace(loop.node, indented(view.document, loop.node, "\n".join(written)))
