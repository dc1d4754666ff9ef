"""Writing the loop in which each thread folds several elements before the tree."""

from agent.analysis.syntax import statement_of
from agent.ideas.coarse.site import Coarse, OneEach
from agent.ideas.gridloop.write import STRIDE, with_fewer_blocks
from agent.ideas.reduction.helpers import fold, shape_of
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, insert_before, remove, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span


def several_each(view: View, found: Coarse, blocks: int) -> Rewrite:
    """At most ``blocks`` blocks, whose threads fold the elements of all others before the tree."""
    edits = [] if found.each is None else _edits(view, found, found.each)
    return Rewrite(tuple(edits), (), with_fewer_blocks(view, blocks))


def _edits(view: View, found: Coarse, each: OneEach) -> list[Edit]:
    document = view.document
    declared = source_text(document, each.declaration).rstrip(";").replace("const ", "").strip()
    bound = source_text(document, each.bound)
    head = f"for ({declared}; {each.index.name} {each.below} {bound}; {each.index.name} += {STRIDE})"
    edits = [remove(document, each.declaration)]
    element = source_text(document, each.element)
    if each.choice is not None:
        array = found.tree.array
        own = fresh_local(styled(f"own_{found.tree.tree.combination.op}", view), document, view.kernel)
        neutral = each.choice.child_by_field_name("alternative")
        assert neutral is not None
        lines = f"{array.type} {own} = {source_text(document, neutral)};\n{head} {_step(found, own, element)}"
        edits.append(insert_before(document, statement_of(each.choice), lines))
        return [*edits, replace(each.choice, own)]
    assert each.guard is not None and each.assignment is not None
    condition, target = each.guard.child_by_field_name("condition"), each.assignment.child_by_field_name("left")
    assert condition is not None and target is not None
    edits.append(Edit(Span(each.guard.start_byte, condition.end_byte), head.encode()))
    step = _step(found, source_text(document, target), element)
    return [*edits, replace(each.assignment, step.rstrip(";"))]


def _step(found: Coarse, own: str, element: str) -> str:
    combination = found.tree.tree.combination
    shape = shape_of(combination, found.tree.array.type, planar=False, template=False)
    if shape.function in "+*&|^":
        return f"{own} {shape.function}= {element};"
    return f"{own} = {fold(shape, own, element)};"
