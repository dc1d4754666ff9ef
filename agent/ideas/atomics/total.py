"""Atomics of all threads to one address: each thread keeps its own total, the block's goes out once."""

from collections.abc import Iterable

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.guards import guards
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, descendants, statements, text
from agent.analysis.types import type_of
from agent.analysis.values import value
from agent.analysis.widths import integer_type
from agent.ideas.atomics.site import Atomics, atomics
from agent.ideas.gridloop.site import GridLoop, grid_loop
from agent.ideas.gridloop.write import in_loop, with_fewer_blocks
from agent.ideas.reduction.helpers import Shape
from agent.ideas.reduction.lanes import among_block
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, insert_after, insert_before, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.workload.dtypes import from_c_type, is_float

FOLDS = {
    "atomicAdd": ("sum", "+"),
    "atomicSub": ("sum", "+"),
    "atomicOr": ("or", "|"),
    "atomicMax": ("max", "max"),
    "atomicMin": ("min", "min"),
}
NEUTRAL = {
    ("max", "int"): "-2147483647 - 1",
    ("max", "unsigned"): "0",
    ("max", "unsigned int"): "0",
    ("min", "int"): "2147483647",
    ("min", "unsigned"): "0xffffffffu",
    ("min", "unsigned int"): "0xffffffffu",
}
TYPES = ("int", "unsigned", "unsigned int", "unsigned long long", "float", "double")
WARP = 32
BLOCK = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})
"""What is the same for all threads of a block."""


@frozen(eq=False)
class Totals:
    """``updates`` all go to one element each; ``target`` is how its address is spelled. ``elements`` is None where the
    kernel keeps its shape, because every thread comes to its end."""

    updates: tuple[tuple[Atomics, Node], ...]
    elements: GridLoop | None

    @property
    def calls(self) -> tuple[Access, ...]:
        return tuple(call for one, _ in self.updates for call in one.calls)


def totals(view: View) -> Totals | str:
    found = atomics(view)
    if isinstance(found, str):
        return found
    updates: list[tuple[Atomics, Node]] = []
    reason = ""
    for one in found:
        target = one_target(one, view)
        if isinstance(target, str):
            reason = reason or target
        else:
            updates.append((one, target))
    if not updates:
        return reason
    elements = grid_loop(view)
    loop = elements if isinstance(elements, GridLoop) else None
    local = next((name for _, target in updates if (name := hanging(target, view, loop)) is not None), None)
    if local is not None:
        return f"the address that is updated hangs on the local `{local}`"
    if isinstance(elements, GridLoop):
        return Totals(tuple(updates), elements)
    if any(True for _ in descendants(view.facts.body, "return_statement", "goto_statement")):
        return f"not all threads come to the kernel's end, and {elements}"
    threads = view.block[0]
    if threads is None or view.block[1:] != (1, 1) or threads % WARP:
        return elements
    return Totals(tuple(updates), None)


def one_target(one: Atomics, view: View) -> Node | str:
    """How the one address is spelled that all threads of a block update; or why there is none."""
    name = one.root.name
    if one.function not in FOLDS or one.root.type not in TYPES:
        return f"`{one.function}` on {one.root.type} is no fold that a block can do first"
    op = FOLDS[one.function][0]
    if op in ("max", "min") and (op, one.root.type) not in NEUTRAL:
        return f"`{one.function}` on {one.root.type} has no neutral element here"
    first = one.calls[0]
    if first.index is None or any(call.index != first.index for call in one.calls):
        return f"{name} is updated at more than one element"
    if first.index.depends - BLOCK or any("@" in atom.name for atom in first.index.atoms):
        return f"which element of {name} is updated differs from thread to thread"
    return arguments(first.node)[0]


def hanging(target: Node, view: View, elements: GridLoop | None = None) -> str | None:
    """The local on which the address hangs, where that may mean something else at the kernel's end than at an atomic,
    or nothing: parameters keep their meaning, and locals of the body itself that keep their value, where they stand
    before the loop over ``elements``. That its value is the same for all threads is known from the address."""
    for symbol in symbols_in(target, view):
        if symbol.space == "parameter":
            continue
        early = elements is None or symbol.declarator.end_byte <= elements.first.start_byte
        if not (early and symbol.fixed and symbol.space == "local" and symbol.scope == view.facts.body):
            return symbol.name
    return None


def symbols_in(node: Node, view: View) -> list[Symbol]:
    names = [node] if node.type == "identifier" else list(descendants(node, "identifier"))
    return [found for name in names if (found := view.facts.symbols.resolve(name)) is not None]


def once_a_block(view: View, found: Totals, blocks: int | None) -> Rewrite:
    """Each thread folds into a variable of its own; the block's total is made at the end, and one thread sends it.
    ``blocks``: how many at most, or None for as many as now."""
    threads = view.block[0]
    assert threads is not None
    before: list[str] = []
    after: list[str] = [""]
    edits: list[Edit] = []
    helpers: dict[Shape, str] = {}
    for one, target in found.updates:
        op, function = FOLDS[one.function]
        shape = Shape(op, function, one.root.type, planar=False, template=False)
        if shape not in helpers:
            helpers[shape] = fresh_name(styled(f"block_{op}", view), view.document, *helpers.values())
        own = fresh_local(styled(f"own_{one.root.name}", view), view.document, view.kernel)
        before.append(f"{one.root.type} {own} = {NEUTRAL.get((op, one.root.type), '0')};")
        edits += [folded(view, one, call, own) for call in one.calls]
        after.append(f"{own} = {helpers[shape]}({own});")
        after.append(f"if (threadIdx.x == 0) {one.function}({source_text(view.document, target)}, {own});")
    lead = "// One atomic for each block, instead of one for each element.\n" + "\n".join(before)
    made = tuple(among_block(shape, name, threads) for shape, name in helpers.items())
    plan = None if blocks is None else with_fewer_blocks(view, blocks)
    if found.elements is not None:
        return Rewrite(tuple(in_loop(view, found.elements, lead, "\n".join(after), edits)), made, plan)
    return Rewrite(tuple(_around(view, lead, after, edits)), made, plan)


def folded(view: View, one: Atomics, call: Access, own: str) -> Edit:
    """The atomic as a fold into ``own``. A value of another type becomes the cell's first, as it does for the atomic:
    ``atomicAdd(&count, 0.75f)`` adds nothing to an ``int``."""
    given, kind = arguments(call.node)[1], one.root.type
    spelled = source_text(view.document, given)
    fold = FOLDS[one.function][1]
    if not _is_of(given, kind, view, exactly=fold in ("max", "min")):
        plain = given.type in ("identifier", "number_literal", "parenthesized_expression")
        spelled = f"({kind}){spelled}" if plain else f"({kind})({spelled})"
    return replace(
        call.node, f"{own} = {fold}({own}, {spelled})" if fold in ("max", "min") else f"{own} {fold}= {spelled}"
    )


def _is_of(given: Node, kind: str, view: View, exactly: bool) -> bool:
    """Whether a value is known to be of a cell's type; for sums of whole numbers any whole number will do, as it wraps
    alike."""
    symbols, wanted = view.facts.symbols, from_c_type(kind)
    if given.type == "cast_expression" and text(given.child_by_field_name("type")) == kind:
        return True
    if wanted is None or is_float(wanted):
        return wanted is not None and type_of(given, symbols) == wanted
    whole = integer_type(given, symbols)
    return whole is not None and (not exactly or whole == wanted)


def _around(view: View, lead: str, after: list[str], edits: list[Edit]) -> list[Edit]:
    body = statements(view.facts.body)
    return [
        *edits,
        insert_before(view.document, body[0], lead),
        insert_after(view.document, body[-1], "\n".join(after[1:])),
    ]


def several_threads(view: View, calls: Iterable[Access]) -> bool:
    """Whether several threads of a block send an atomic: none stands where thread 0 or lane 0 alone comes."""
    for call in calls:
        for guard in guards(call.node, view.facts.node):
            test = bare(guard.condition)
            equal = test is not None and text(test.child_by_field_name("operator")) == "=="
            if equal and guard.taken and any(_on_thread(test, side, view) for side in ("left", "right")):
                return False
    return True


def _on_thread(test: Node | None, side: str, view: View) -> bool:
    operand = None if test is None else test.child_by_field_name(side)
    found = value(operand, view.facts.scope)
    return any(atom.name.startswith("threadIdx") or "(threadIdx" in atom.name for atom in found.atoms)
