"""Online softmax: the maximum of a row and the sum of exponentials relative to it, in one pass.

M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867: when the running maximum rises
from m to v, a sum of exp(x - m) becomes relative to v by multiplying it with exp(m - v).
"""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.patterns.row_pass import RowPass, canonical, respelled, same_space, through_locals
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, contains, expression_of, same, statements, text
from agent.ideas.elements.pieces import lines_for
from agent.ideas.idea import Scope, Tunable
from agent.ideas.registry import Match, Variant
from agent.ideas.rewriting import Rewrite, insert_after, remove_between, replace, source_text
from agent.ideas.rowpass.batch import batch, batchable, in_batches, later_passes
from agent.ideas.rowpass.pair import Pair, alike, between, changed_between, difference, pair, same_elements, siblings
from agent.ideas.rowpass.writing import (
    body_edits,
    in_place_of_second,
    less_traffic,
    moved_start,
    new_name,
    number,
    passes_over_row,
    value_name,
    with_pragma,
)
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span

EXPONENTIALS = ("expf", "exp", "__expf")


@frozen(eq=False)
class Online:
    """A maximum pass and a sum of exponentials. ``exponential`` is the user's function. ``scaled`` is the statement
    of a third pass that reads back what the second stored, with that read; None where the second stores nothing."""

    pair: Pair
    exponential: str
    scaled: tuple[Loop, Node, Node] | None


def online(
    first: RowPass, second: RowPass, facts: Facts, apart: frozenset[Symbol] = frozenset()
) -> Online | str | None:
    """The pair of passes, why it cannot be fused, or None where it is nothing of the kind."""
    if first.fold.op != "max" or second.fold.op != "sum" or first.store is not None or not siblings(first, second):
        return None
    term = through_locals(second.fold.operand, second.loop, facts)
    if second.store is not None and term is not None and term.type == "subscript_expression":
        term = _stored(second, term, facts)
    if callee(term) not in EXPONENTIALS or term is None or len(arguments(term)) != 1:
        return None
    found = difference(arguments(term)[0], second, facts)
    if found is None or not same_elements(first, second, found[0], facts):
        return None
    if not alike(first, second):
        return "the two passes do not walk over the same elements in the same order"
    both = pair(first, second, found[0], found[1], facts, apart)
    if isinstance(both, str):
        return both
    scaled = None
    if second.store is not None:
        third = _third(second, term, both, facts)
        if isinstance(third, str):
            return third
        scaled = third
    return Online(both, text(term.child_by_field_name("function")), scaled)


def _stored(second: RowPass, read: Node, facts: Facts) -> Node | None:
    """The stored expression, where the sum reads back what was stored just before (``y[i] = e; s += y[i];``)."""
    assignment = None if second.store is None else expression_of(second.store)
    if assignment is None or not same(assignment.child_by_field_name("left"), read):
        return None
    return through_locals(assignment.child_by_field_name("right"), second.loop, facts)


def _third(second: RowPass, term: Node, both: Pair, facts: Facts) -> tuple[Loop, Node, Node] | str:
    """The pass that scales the stored exponentials; it can make them anew instead of reading them."""
    assert second.store is not None
    assignment = expression_of(second.store)
    assert assignment is not None
    left, right = bare(assignment.child_by_field_name("left")), assignment.child_by_field_name("right")
    stored = next(access for access in facts.accesses if access.node == left)
    here = between(second, second)
    refusal = f"`{text(left)}` is stored in the second pass and used other than by a third pass that scales it"
    if (
        canonical(right, second.loop, facts, here) != canonical(term, second.loop, facts, here)
        or stored.element != both.type
    ):
        return refusal
    if text(assignment.child_by_field_name("operator")) != "=" or stored.space != "global":
        return refusal
    others = [
        access for access in facts.accesses if access.root is stored.root and not contains(second.node, access.node)
    ]
    for loop in facts.loops:
        if loop.node.start_byte < second.node.end_byte or not same_space(loop, second.loop) or loop.leaves_early:
            continue
        if loop.node.parent != second.node.parent or any(not contains(loop.node, access.node) for access in others):
            continue
        inside = statements(loop.body)
        statement = expression_of(inside[0]) if len(inside) == 1 else None
        if statement is None or statement.type != "assignment_expression":
            continue
        target = statement.child_by_field_name("left")
        span = Span(second.node.start_byte, loop.node.end_byte)
        if target is None or canonical(target, loop, facts, span) != canonical(left, second.loop, facts, span):
            continue
        if canonical(both.element, second.loop, facts, span) is None or any(not same(a.node, target) for a in others):
            continue
        pivot = facts.symbols.resolve(both.pivot) if both.pivot.type == "identifier" else None
        later = [] if pivot is None else [w for w in pivot.writes if span.start <= w.start_byte < span.end]
        if pivot is None or pivot.is_memory or later:
            return f"`{text(both.pivot)}` may have changed when the third pass begins"
        return loop, statement, target
    return refusal


def online_match(found: Online, view: View) -> Match:
    both = found.pair
    passes = passes_over_row(both, view.facts)
    saved = 1 if found.scaled is None else 2
    element = source_text(view.document, both.first.fold.operand)
    why = (
        f"the maximum and the sum both read `{element}`; keeping the sum relative to the running maximum, and "
        "rescaling it when that rises, takes one pass"
    )
    if found.scaled is not None:
        why += "; the exponentials that are stored and read back are made anew in the last pass"
    return Match(
        line=view.document.line(both.first.node.start_byte),
        title="fuse the max and sum passes over a row (online softmax)",
        why=why,
        expects=less_traffic(passes, saved),
        variants=(
            *_in_batches(found, view),
            Variant(
                "rescale when the maximum rises",
                "a branch, seldom taken: the sum is rescaled only when a larger element comes",
                Scope.DROP_IN,
                lambda: _write(found, view, _branching),
            ),
            Variant(
                "one exponential, no branch",
                "the same exponential serves as the new term or as the factor of the old sum, chosen by a select",
                Scope.DROP_IN,
                lambda: _write(found, view, _selecting),
            ),
        ),
    )


def _in_batches(found: Online, view: View) -> tuple[Variant, ...]:
    """Offered where the passes count upwards by themselves."""
    first, total = found.pair.first, found.pair.second.accumulator
    if not batchable(first.loop) or first.accumulator.type != total.type:
        return ()
    return (
        Variant(
            "in batches",
            "a thread reads several elements at once, rescales the sum once for all of them, and reads them so again "
            "where the row is used",
            Scope.DROP_IN,
            lambda size: _batches(found, view, size),
            (Tunable("size", (2, 4, 8, 16), 8, "elements of a thread at once"),),
        ),
    )


def _batches(found: Online, view: View, size: int) -> Rewrite:
    both = found.pair
    first, lines = both.first, lines_for(view)
    top, total, kind = _words(found)
    made = batch(view, first.loop, size)
    higher, pivot, more = (new_name(view, name, made.values) for name in (f"higher_{top}", "pivot", f"more_{total}"))
    zero = number("0.0", kind)
    larger = "fmaxf" if kind == "float" else "fmax"
    element = respelled(first.fold.operand, first.loop, view.facts, {})
    value = f"{made.values}[{made.k}]"
    work = [
        f"{kind} {higher} = {top};",
        *made.each([f"{higher} = {larger}({higher}, {value});"], lines),
        f"// {total} is relative to {top}: rescale it to the higher one (-inf: nothing was added, to nothing).",
        f"const {kind} {pivot} = {higher} == -INFINITY ? {zero} : {higher};",
        f"{kind} {more} = {zero};",
        *made.each([f"{more} += {found.exponential}({value} - {pivot});"], lines),
        f"{total} = {total} * {found.exponential}({top} - {pivot}) + {more};",
        f"{top} = {higher};",
    ]
    name = new_name(view, "value", made.values)
    rest = [f"const {kind} {name} = {element};", *_branching(found, view, name).split("\n")]
    edits = [*moved_start(view, both), made.edit(kind, element, work, rest)]
    edits += _rescaled(found, view, top, total)
    if found.scaled is not None:
        edits += _made_anew(found, view)
    elif (again := later_passes(view, first.loop, both.second.node)) is not None:
        edits += in_batches(view, again, size)
    return Rewrite(tuple(edits))


def _write(found: Online, view: View, update: object) -> Rewrite:
    assert callable(update)
    both = found.pair
    first, second = both.first, both.second
    name, declaration = value_name(view, first)
    top, total = first.accumulator.name, second.accumulator.name
    lines = declaration + update(found, view, name)
    edits = [*moved_start(view, both), body_edits(view, first, lines)]
    edits += _rescaled(found, view, top, total)
    if found.scaled is not None:
        edits += _made_anew(found, view)
    return Rewrite(tuple(edits))


def _branching(found: Online, view: View, value: str) -> str:
    top, total, kind = _words(found)
    one = number("1.0", kind)
    unit = "    "
    return "\n".join(
        (
            f"if ({value} > {top}) {{  // {total} is relative to {top}: rescale it when {top} rises",
            f"{unit}{total} = {total} * {found.exponential}({top} - {value}) + {one};",
            f"{unit}{top} = {value};",
            "} else {",
            f"{unit}{total} += {value} == {top} ? {one} : {found.exponential}({value} - {top});  // equal may be -inf",
            "}",
        )
    )


def _selecting(found: Online, view: View, value: str) -> str:
    top, total, kind = _words(found)
    one, magnitude = number("1.0", kind), "fabsf" if kind == "float" else "fabs"
    ratio = new_name(view, "ratio", value)
    return "\n".join(
        (
            f"// {total} is relative to {top}: where {value} is larger, it is {total} that shrinks. Equal may be -inf.",
            f"const {kind} {ratio} = {value} == {top} ? {one} : {found.exponential}(-{magnitude}({value} - {top}));",
            f"{total} = {value} > {top} ? {total} * {ratio} + {one} : {total} + {ratio};",
            f"{top} = {value} > {top} ? {value} : {top};",
        )
    )


def _words(found: Online) -> tuple[str, str, str]:
    return found.pair.first.accumulator.name, found.pair.second.accumulator.name, found.pair.type


def _rescaled(found: Online, view: View, top: str, total: str) -> list[Edit]:
    """The second loop becomes a rescaling of the thread's own sum to the row's maximum, or nothing where that is the
    same."""
    both = found.pair
    pivot = source_text(view.document, both.pivot)
    changed = changed_between(both.first.accumulator, both.first, both.second)
    if both.pivot.type == "identifier" and pivot == top and not changed:
        return [_without_second(view, both)]
    own, edits = top, []
    if changed:
        own = new_name(view, f"own_{top}", "value", "ratio")
        edits.append(
            insert_after(view.document, both.first.node, f"const {both.first.accumulator.type} {own} = {top};")
        )
    lines = (
        f"// From relative to the thread's own maximum to relative to the row's (no elements: 0 * exp(-inf) = 0).\n"
        f"{total} *= {found.exponential}({own} - {pivot});"
    )
    return [*edits, in_place_of_second(view, both, lines)]


def _without_second(view: View, both: Pair) -> Edit:
    return remove_between(view.document, with_pragma(both.second.node), both.second.node)


def _made_anew(found: Online, view: View) -> list[Edit]:
    """``y[i] /= s`` becomes ``y[i] = exp(x[i] - m) / s``; each read of ``y[i]`` in the statement likewise."""
    assert found.scaled is not None
    loop, statement, target = found.scaled
    both = found.pair
    names = {both.second.loop.variable: loop.variable.name}
    element = respelled(both.element, both.second.loop, view.facts, names)
    made = f"{found.exponential}({element} - {source_text(view.document, both.pivot)})"
    operator = next(
        child for child in statement.children if child.type == text(statement.child_by_field_name("operator"))
    )
    right = statement.child_by_field_name("right")
    assert right is not None
    if text(operator) != "=":
        rest = source_text(view.document, right)
        rest = rest if right.type in ("identifier", "number_literal", "subscript_expression") else f"({rest})"
        return [replace(operator, "="), replace(right, f"{made} {text(operator)[:-1]} {rest}")]
    reads = [access for access in view.facts.accesses_in(right) if same(access.node, target)]
    return [replace(access.node, made) for access in reads]
