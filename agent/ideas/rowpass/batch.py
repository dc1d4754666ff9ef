"""Several elements of a thread at once: all are on their way before the first is worked on.

A loop that carries a value from one element to the next, or that stores where the compiler cannot tell that nothing is
read, has one load under way at a time; a batch has as many as there are elements in it.
"""

from textwrap import dedent

from attrs import frozen
from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.patterns.row_reuse import RowReuse, disturbed, row_reuses
from agent.analysis.syntax import bare, contains, text
from agent.ideas.elements.pieces import Lines, at, lines_for, rewritten
from agent.ideas.rewriting import fresh_local, indented, replace, source_text
from agent.ideas.terms import apart_from
from agent.ideas.view import View
from agent.source.edits import Edit


@frozen
class Batch:
    """``size`` elements of ``loop`` at once. ``values``, ``k`` and ``first`` are names in the new code."""

    view: View
    loop: Loop
    size: int
    values: str
    k: str
    first: str

    def edit(self, kind: str, load: str, padding: str | None, work: list[str]) -> Edit:
        """The loop in batches. ``load`` reads the element of the loop's variable, of type ``kind``; beyond the bound
        it is ``padding`` (None: nothing). ``work`` are the lines that follow."""
        lines, loop = lines_for(self.view), self.loop
        limit = source_text(self.view.document, loop.bound_node)
        inside = f"{loop.variable.name} {loop.relation} {limit}"
        value = f"{self.values}[{self.k}]"
        loaded = f"if ({inside}) {value} = {load};" if padding is None else f"{value} = {inside} ? {load} : {padding};"
        start, step = _stride(self.view, loop)
        head = (
            f"for ({loop.variable.type} {self.first} = {start}; {self.first} {loop.relation} {limit}; "
            f"{self.first} += {_times(self.size, step)})"
        )
        body = [f"{kind} {self.values}[{self.size}];", *self.each([self.element(), loaded], lines), *work]
        return replace(loop.node, indented(self.view.document, loop.node, "\n".join(lines.block(head, body))))

    def element(self) -> str:
        """The loop's own variable, for one element of the batch."""
        step = _stride(self.view, self.loop)[1]
        ahead = self.k if step == "1" else f"{self.k} * {step}"
        return f"const {self.loop.variable.type} {self.loop.variable.name} = {self.first} + {ahead};"

    def each(self, work: list[str], lines: Lines) -> list[str]:
        return ["#pragma unroll", *lines.block(f"for (int {self.k} = 0; {self.k} < {self.size}; ++{self.k})", work)]


def batch(view: View, loop: Loop, size: int) -> Batch:
    values, k, first = (fresh_local(name, view.document, view.kernel) for name in ("values", "k", "first"))
    return Batch(view, loop, size, values, k, first)


def batchable(loop: Loop) -> bool:
    """Whether the loop counts upwards by itself, in a variable of its own."""
    own = loop.node.type == "for_statement" and loop.setup is None and contains(loop.node, loop.variable.declarator)
    constant = loop.step.constant
    return own and loop.step_kind == "+" and loop.relation in ("<", "<=") and (constant is None or constant > 0)


def later_passes(view: View, first: Loop, after: Node) -> RowReuse | None:
    """The loops behind ``after`` that read the elements of ``first`` again, to be taken in batches: nothing that they
    write may be what they read next."""
    for reuse in row_reuses(view.facts):
        if reuse.passes[0].node != first.node or disturbed(reuse, view.facts, apart_from(reuse.root, view)):
            continue
        passes = [n for n, loop in enumerate(reuse.passes) if loop.node.start_byte >= after.end_byte]
        if passes and all(batchable(reuse.passes[n]) for n in passes):
            return RowReuse(
                tuple(reuse.passes[n] for n in passes), tuple(reuse.reads[n] for n in passes), reuse.root, reuse.index
            )
    return None


def in_batches(view: View, reuse: RowReuse, size: int) -> list[Edit]:
    """Each pass as it was, on elements that were read a batch at a time."""
    edits = []
    for loop, reads in zip(reuse.passes, reuse.reads, strict=True):
        made, lines = batch(view, loop, size), lines_for(view)
        replaced = {at(read.node): f"{made.values}[{made.k}]" for read in reads}
        limit = source_text(view.document, loop.bound_node)
        inverse = {"<": ">=", "<=": ">"}[loop.relation]
        leave = f"if ({loop.variable.name} {inverse} {limit}) break;"
        work = made.each([made.element(), leave, *_body(view, loop.body, replaced, lines)], lines)
        edits.append(made.edit(reuse.root.type, source_text(view.document, reads[0].node), None, work))
    return edits


def _body(view: View, body: Node, replaced: dict[tuple[int, int], str], lines: Lines) -> list[str]:
    if body.type != "compound_statement":
        return lines.statement(body, replaced)
    head, _, rest = rewritten(view, body, replaced)[1:-1].partition("\n")
    return [line for line in (head.strip(), *dedent(rest).rstrip().split("\n")) if line]


def _stride(view: View, loop: Loop) -> tuple[str, str]:
    """(start, step) as they are spelled, to be added to and multiplied."""
    assert loop.variable.init is not None
    start = source_text(view.document, loop.variable.init)
    if loop.update.type == "update_expression":
        return start, "1"
    step = bare(loop.update.child_by_field_name("right"))
    assert step is not None
    if text(loop.update.child_by_field_name("operator")) == "=":  # i = i + step
        sides = [bare(step.child_by_field_name(side)) for side in ("left", "right")]
        step = next(one for one in sides if one is not None and text(one) != loop.variable.name)
    spelled = source_text(view.document, step)
    plain = step.type in ("identifier", "number_literal", "field_expression")
    return start, spelled if plain else f"({spelled})"


def _times(size: int, step: str) -> str:
    return str(size) if step == "1" else f"{size} * {step}"
