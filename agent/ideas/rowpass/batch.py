"""Several elements of a thread at once: all are on their way before the first is worked on.

A loop that carries a value from one element to the next, or that stores where the compiler cannot tell that nothing is
read, has one load under way at a time; a batch has as many as there are elements in it.
"""

import re
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
    """``size`` elements of ``loop`` at once, in ``values[k]``, from number ``first`` on (names in the new code)."""

    view: View
    loop: Loop
    size: int
    values: str
    k: str
    first: str

    def edit(self, kind: str, read: str, work: list[str], rest: list[str]) -> Edit:
        """Whole batches, and ``rest``, the body of a loop for the elements behind them. ``read`` is an element, of type
        ``kind``; ``work`` are the lines for a batch of them."""
        lines, loop, step = lines_for(self.view), self.loop, self._step()
        name, of, relation = loop.variable.name, loop.variable.type, loop.relation
        limit = source_text(self.view.document, loop.bound_node)
        start = source_text(self.view.document, loop.variable.init) if loop.variable.init is not None else ""
        last = _times(self.size - 1, f"({of}){step}" if "blockDim" in step else step)
        load = [self.element(), f"{self.values}[{self.k}] = {read};"]
        written = [
            f"{of} {self.first} = {start};",
            *lines.block(
                f"for (; {self.first} + {last} {relation} {limit}; {self.first} += {_times(self.size, step)})",
                [f"{kind} {self.values}[{self.size}];", *self.each(load, lines), *work],
            ),
            *lines.block(f"for ({of} {name} = {self.first}; {name} {relation} {limit}; {name} += {step})", rest),
        ]
        return replace(loop.node, indented(self.view.document, loop.node, "\n".join(written)))

    def element(self) -> str:
        """The loop's own variable, for one element of the batch."""
        return f"const {self.loop.variable.type} {self.loop.variable.name} = {self.first} + {self._ahead()};"

    def _ahead(self) -> str:
        return self.k if self._step() == "1" else f"{self.k} * {self._step()}"

    def each(self, work: list[str], lines: Lines) -> list[str]:
        return ["#pragma unroll", *lines.block(f"for (int {self.k} = 0; {self.k} < {self.size}; ++{self.k})", work)]

    def _step(self) -> str:
        return _stride(self.view, self.loop)


def batch(view: View, loop: Loop, size: int, number: int = 0) -> Batch:
    """``number`` tells the loops of a kernel apart."""
    first = "first" if number == 0 else f"first_{number + 1}"
    values, k, first = (fresh_local(name, view.document, view.kernel) for name in ("values", "k", first))
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
    for number, (loop, reads) in enumerate(zip(reuse.passes, reuse.reads, strict=True), start=1):
        made, lines = batch(view, loop, size, number), lines_for(view)
        replaced = {at(read.node): f"{made.values}[{made.k}]" for read in reads}
        work = _body(view, loop.body, replaced, lines)
        if any(re.search(rf"\b{loop.variable.name}\b", line) for line in work):
            work = [made.element(), *work]
        read, rest = source_text(view.document, reads[0].node), _body(view, loop.body, {}, lines)
        edits.append(made.edit(reuse.root.type, read, made.each(work, lines), rest))
    return edits


def _body(view: View, body: Node, replaced: dict[tuple[int, int], str], lines: Lines) -> list[str]:
    if body.type != "compound_statement":
        return lines.statement(body, replaced)
    head, _, rest = rewritten(view, body, replaced)[1:-1].partition("\n")
    return [line for line in (head.strip(), *dedent(rest).rstrip().split("\n")) if line]


def _stride(view: View, loop: Loop) -> str:
    """The step as it is spelled, to be multiplied."""
    if loop.update.type == "update_expression":
        return "1"
    step = bare(loop.update.child_by_field_name("right"))
    assert step is not None
    if text(loop.update.child_by_field_name("operator")) == "=":  # i = i + step
        sides = [bare(step.child_by_field_name(side)) for side in ("left", "right")]
        step = next(one for one in sides if one is not None and text(one) != loop.variable.name)
    spelled = source_text(view.document, step)
    return spelled if step.type in ("identifier", "number_literal", "field_expression") else f"({spelled})"


def _times(size: int, step: str) -> str:
    return str(size) if step == "1" else f"{size} * {step}"
