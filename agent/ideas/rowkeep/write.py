"""Writing it: the first pass puts each element aside, later passes take it from there."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.dependence import conditions
from agent.analysis.loops import Loop
from agent.analysis.patterns.block_size import Resizable
from agent.analysis.patterns.row_reuse import RowReuse
from agent.analysis.syntax import contains, descendants, statement_of, statements, text
from agent.ideas.bodies import statement_in_braces, with_names
from agent.ideas.elements.pieces import at
from agent.ideas.pipeline.write import HEADER
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indent_of, replace, source_text
from agent.ideas.rowkeep.aligned import aligned
from agent.ideas.rowkeep.repeated import Repeated, repeated
from agent.ideas.rowkeep.room import Dynamic
from agent.ideas.rowpass.writing import with_pragma
from agent.ideas.terms import in_plan_names, least
from agent.ideas.vectors.held import Held
from agent.ideas.vectors.site import Site
from agent.ideas.vectors.write import strided, vectorised
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan

COPIED = (4, 8, 16)
"""Bytes that one cp.async copies (PTX ISA, "cp.async")."""
UNBOUNDED = 256
"""Threads a block that can each have as many registers as a thread may."""


@frozen
class Packs:
    """``width`` neighbouring elements each, of which a thread has ``at_once`` under way together."""

    width: int
    at_once: int


def kept_in_shared(
    reuse: RowReuse, view: View, capacity: int, threads: int, arrays: Resizable | None, own: Dynamic
) -> Rewrite:
    """The rewrite. ``threads`` a block; ``arrays`` are enlarged to that many elements; the row lies behind the kernel's
    own dynamic array."""
    element = view.element_bytes(reuse.reads[0][0])
    assert element is not None
    used = own.grown(threads, element)
    row, count = fresh_name("kept_row", view.document), fresh_local("kept", view.document, view.kernel)
    lines = _opening(reuse, view, row, count, capacity, own, used // element)
    copied = _copies(reuse, view, row, count)
    if copied is not None:
        edits = [above(reuse, view, f"{lines}\n{copied}")]
    else:
        variable = reuse.passes[0].variable.name
        if with_pragma(reuse.passes[0].node) == reuse.passes[0].node:
            lines += "\n#pragma unroll 8"
        edits = [above(reuse, view, lines)]
        edits += _first_pass(reuse, view, f"if ({variable} < {count}) {row}[{variable}] = {{}};")
    again = repeated(reuse, view)
    plain = len(reuse.passes) if again is None else len(reuse.passes) - 2
    for loop, reads in list(zip(reuse.passes, reuse.reads, strict=True))[copied is None : plain]:
        edits += _later_pass(loop, reads, view, _chosen(loop, row, count))
    if again is not None:
        edits += _kept_anew(reuse, again, view, row, count)
    edits += enlarged(arrays, threads)
    plan = changed_plan(reuse, view, capacity, element, threads, used)
    return Rewrite(tuple(edits), (), plan, headers=() if copied is None else (HEADER,))


def _copies(reuse: RowReuse, view: View, row: str, count: str) -> str | None:
    """Each thread's elements on their way to shared memory all at once; None where they cannot be so."""
    loop, read = reuse.passes[0], reuse.reads[0][0]
    named = {view.facts.symbols.resolve(one) for one in descendants(read.node, "identifier")} - {loop.variable, None}
    inner = any(one is not None and contains(loop.node, one.declarator) for one in named)
    if inner or not copies_allowed(view) or view.element_bytes(read) not in COPIED or loop.setup is not None:
        return None
    kind, name = loop.variable.type, loop.variable.name
    start, step = strided(view, loop)
    return "\n".join(
        (
            f"for ({kind} {name} = {start}; {name} < {count}; {name} += {step}) {{",
            f"    __pipeline_memcpy_async(&{row}[{name}], &{source_text(view.document, read.node)}, "
            f"sizeof({reuse.root.type}));",
            "}",
            "__pipeline_commit();",
            "__pipeline_wait_prior(0);",
        )
    )


def copies_allowed(view: View) -> bool:
    """Whether the header of asynchronous copies can be included: not where the kernel stands in a namespace."""
    return "::" not in view.kernel.qualified_name


def kept_in_packs(
    reuse: RowReuse,
    view: View,
    passes: tuple[Site, ...],
    packs: Packs,
    capacity: int,
    threads: int,
    arrays: Resizable | None,
    own: Dynamic,
) -> Rewrite:
    """The same, with packs of neighbouring elements in every pass."""
    element = view.element_bytes(reuse.reads[0][0])
    assert element is not None
    row, count = fresh_name("kept_row", view.document), fresh_local("kept", view.document, view.kernel)
    used = own.grown(threads, element)
    again = repeated(reuse, view)
    held = Held(
        row,
        count,
        fresh_local("whole", view.document, view.kernel),
        packs.at_once,
        reuse.passes[0].node,
        frozenset(at(read.node) for reads in reuse.reads for read in reads),
        None if again is None else (again.first, again.second),
    )
    written = vectorised(view, passes, packs.width, held)
    test = aligned(view, passes, packs.width, () if own.array is None else (row,))
    assert test is not None
    lines = (
        _opening(reuse, view, row, count, capacity, own, used // element)
        + "\n"
        + _whole(held, reuse, view, test, packs)
    )
    edits = [above(reuse, view, lines), *written.edits, *enlarged(arrays, threads), *bounded(view, threads)]
    return Rewrite(tuple(edits), written.helpers, changed_plan(reuse, view, capacity, element, threads, used))


def _whole(held: Held, reuse: RowReuse, view: View, test: str, packs: Packs) -> str:
    kind, bound = reuse.passes[0].variable.type, grouped(view, reuse.passes[0].bound_node)
    ready = fresh_local("aligned", view.document, view.kernel)
    return (
        f"// Packs of {packs.width} where the row starts aligned; what is behind the last of them comes one by one.\n"
        f"const bool {ready} = {test};\n"
        f"const {kind} {held.whole} = {ready} ? {bound} / {packs.width} * {packs.width} : 0;"
    )


def grouped(view: View, node: Node) -> str:
    """A node's text as a factor."""
    written = source_text(view.document, node)
    return written if node.type in ("identifier", "number_literal") else f"({written})"


def bounded(view: View, threads: int) -> list[Edit]:
    """Says how many threads a block has, where the compiler would else take more registers than so many have."""
    declarator = view.facts.node.child_by_field_name("declarator")
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    if name is None or view.kernel.launch_bounds or threads <= UNBOUNDED:
        return []
    return [Edit(Span(name.start_byte, name.start_byte), f"__launch_bounds__({threads}) ".encode())]


def _chosen(loop: Loop, row: str, count: str) -> str:
    return f"{loop.variable.name} < {count} ? {row}[{loop.variable.name}] : {{}}"


def _kept_anew(reuse: RowReuse, again: Repeated, view: View, row: str, count: str) -> list[Edit]:
    """What both last passes make of the element takes its place, so that it is made once."""
    (one, two), read = reuse.passes[-2:], reuse.reads[-2][0].node
    name, variable = fresh_local("element", view.document, view.kernel), one.variable.name
    chosen = _chosen(one, row, count).format(source_text(view.document, read))
    made = with_names(view, again.first, {read: f"({chosen})"})
    lines = f"const {reuse.root.type} {name} = {made};\nif ({variable} < {count}) {row}[{variable}] = {name};"
    held = next(statement for statement in statements(one.body) if contains(statement, read))
    kept = _chosen(two, row, count).format(source_text(view.document, again.second))
    return [*statement_in_braces(view, one, held, lines, "", {again.first: name}), replace(again.second, f"({kept})")]


def shared_bytes(launch: Launch, reuse: RowReuse, view: View, capacity: int, element: int) -> Expression | None:
    bound = in_plan_names(reuse.passes[0].bound, launch, view)
    if bound is None:
        return None
    return build("*", [least(bound.simplify(), number(capacity)), number(element)])


def _opening(reuse: RowReuse, view: View, row: str, count: str, capacity: int, own: Dynamic, offset: int) -> str:
    """The declarations in front of the first pass."""
    first = reuse.passes[0]
    bound = source_text(view.document, first.bound_node)
    return (
        "// The first pass leaves the start of the row in shared memory; what does not fit is read again.\n"
        f"{declared_row(row, reuse.root.type, own, offset)}\n"
        f"const {first.variable.type} {count} = {bound} < {capacity} ? {bound} : {capacity};"
    )


def above(reuse: RowReuse, view: View, lines: str) -> Edit:
    anchor = with_pragma(reuse.passes[0].node)
    indent = indent_of(view.document, anchor)
    above = "".join(f"{line}\n{indent}" for line in lines.split("\n"))
    return Edit(Span(anchor.start_byte, anchor.start_byte), above.encode())


def declared_row(row: str, element: str, own: Dynamic, offset: int) -> str:
    if own.array is None:
        return f"extern __shared__ __align__(16) {element} {row}[];"
    return f"{element}* const {row} = {own.array.name} + {offset};"


def enlarged(arrays: Resizable | None, threads: int) -> list[Edit]:
    """Arrays with an element a thread grow with the block."""
    dims = [] if arrays is None else [dim for array in arrays.arrays for dim in array.dims]
    return [replace(dim, str(threads)) for dim in dims if dim is not None]


def changed_plan(reuse: RowReuse, view: View, capacity: int, element: int, threads: int, used: int) -> Plan:
    return each_launch(
        view.request.plan,
        view.kernel,
        lambda launch: _relaunched(launch, reuse, view, capacity, element, threads, used),
    )


def _relaunched(
    launch: Launch, reuse: RowReuse, view: View, capacity: int, element: int, threads: int, used: int
) -> Launch:
    shared = shared_bytes(launch, reuse, view, capacity, element)
    assert shared is not None
    shared = build("+", [number(used), shared])
    block = launch.block if threads == view.block[0] else (number(threads), *launch.block[1:])
    return evolve(launch, shared=shared, block=block)


def _first_pass(reuse: RowReuse, view: View, keep: str) -> list[Edit]:
    """``const float value = in[i];``, put aside, and used in place of the reads. A declaration that only reads the
    element stays."""
    loop, reads = reuse.passes[0], reuse.reads[0]
    declared = _declared(reads[0].node)
    if declared is not None and len(reads) == 1:
        return statement_in_braces(view, loop, declared[0], "", keep.format(declared[1]), {})
    name = fresh_local("element", view.document, view.kernel)
    spelled = source_text(view.document, reads[0].node)
    lines = f"const {reuse.root.type} {name} = {spelled};\n{keep.format(name)}"
    held = [statement for statement in statements(loop.body) if contains(statement, reads[0].node)]
    return statement_in_braces(view, loop, held[0], lines, "", {read.node: name for read in reads})


def _declared(read: Node) -> tuple[Node, str] | None:
    """(statement, name) of ``float value = in[i];``."""
    holder, statement = read.parent, statement_of(read)
    if holder is None or holder.type != "init_declarator" or holder.child_by_field_name("value") != read:
        return None
    name = holder.child_by_field_name("declarator")
    lone = statement.type == "declaration" and len(statement.children_by_field_name("declarator")) == 1
    return (statement, text(name)) if name is not None and name.type == "identifier" and lone else None


def _later_pass(loop: Loop, reads: tuple[Access, ...], view: View, chosen: str) -> list[Edit]:
    """Each read chooses between what was kept and memory; several in one turn share one choice."""
    spelled = source_text(view.document, reads[0].node)
    alone = len(reads) == 1 and _declared(reads[0].node) is not None
    if alone or any(conditions(read.node, loop.body) for read in reads):
        return [
            replace(read.node, chosen.format(spelled) if alone else f"({chosen.format(spelled)})") for read in reads
        ]
    name = fresh_local("element", view.document, view.kernel)
    lines = f"const {reads[0].element} {name} = {chosen.format(spelled)};"
    held = [statement for statement in statements(loop.body) if contains(statement, reads[0].node)]
    return statement_in_braces(view, loop, held[0], lines, "", {read.node: name for read in reads})
