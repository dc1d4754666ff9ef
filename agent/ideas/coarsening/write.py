"""What a coarsened kernel looks like: its work in a short loop over a thread's outputs, unrolled."""

from collections.abc import Sequence

from attrs import evolve
from tree_sitter import Node

from agent.analysis.patterns.straight import Piece
from agent.analysis.syntax import bare, descendants, text
from agent.ideas.coarsening.site import Site
from agent.ideas.elements.pieces import at, lines_for, rewritten
from agent.ideas.elements.places import end_of
from agent.ideas.elements.reach import blocks_for
from agent.ideas.elements.restrict import restricted
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite, fresh_counter, fresh_local, indent_of, replace_between, source_text
from agent.ideas.view import View
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan


def coarsened(view: View, site: Site, outputs: int) -> Rewrite:
    """``outputs`` neighbours along the site's axis a thread."""
    document, kernel, variable = view.document, view.kernel, site.place.symbol
    first = fresh_local(f"{variable.name}_first", document, kernel)
    counter = fresh_counter(document, kernel, first)
    lines = lines_for(view)
    start = f"{outputs} * ({source_text(document, site.place.init)})"
    replaced = {
        at(variable.declarator): first,
        at(site.place.init): start if site.asked.lower is None else f"{start} + {site.asked.lower}",
    }
    head = [*site.head]
    for piece, parts in site.asked.kept:
        if parts:
            head.append(piece)
            replaced[at(bare(piece.node) or piece.node)] = _joined(view, site, piece, parts, first)
    past = " || ".join(f"{variable.name} >= {source_text(document, limit)}" for limit in site.asked.upper)
    work = lines.body(site.work, _pragmas(view, site), "continue")
    inside = [
        f"const {variable.type} {variable.name} = {first} + {counter};",
        f"if ({past}) break;",
        *work,
    ]
    loop = ["#pragma unroll", *lines.block(f"for (int {counter} = 0; {counter} < {outputs}; ++{counter})", inside)]
    children = view.facts.body.named_children
    indent = indent_of(document, children[0])
    written = ("\n" + indent).join(lines.body(head, replaced, "return", loop))
    edits = (*restricted(view), replace_between(children[0], children[-1], written))
    return Rewrite(edits, plan=_plan(view, site, outputs))


def _joined(view: View, site: Site, piece: Piece, parts: Sequence[Node], first: str) -> str:
    """The parts of a test that are asked once, of the first output where they are about the outputs' coordinate."""
    written = []
    for part in parts:
        uses = [one for one in descendants(part, "identifier") if view.facts.symbols.resolve(one) is site.place.symbol]
        spelled = rewritten(view, part, {at(one): first for one in uses})
        loose = part.type == "binary_expression" and text(part.child_by_field_name("operator")) in ("&&", "||")
        written.append(f"({spelled})" if loose or part.type == "conditional_expression" else spelled)
    return (" && " if piece.holds else " || ").join(written)


def _pragmas(view: View, site: Site) -> dict[tuple[int, int], str]:
    """``#pragma unroll`` above each loop that has to vanish for its loads to be seen as the same."""
    found = {}
    for loop in site.unrolled:
        before = loop.node.prev_named_sibling
        if before is None or before.type != "preproc_call" or "unroll" not in text(before):
            start = loop.node.start_byte
            found[(start, start)] = "#pragma unroll\n" + indent_of(view.document, loop.node)
    return found


def _plan(view: View, site: Site, outputs: int) -> Plan:
    axis = site.place.axis
    extent = view.block[axis]
    assert extent is not None

    def changed(launch: Launch) -> Launch:
        grid = list(launch.grid)
        end = end_of(view, launch, site.asked.upper[0])
        past = end if site.asked.lower is None else build("-", (end, number(site.asked.lower)))
        grid[axis] = blocks_for(_at_least_one(past), extent * outputs)
        return evolve(launch, grid=(grid[0], grid[1], grid[2]))

    return each_launch(view.request.plan, view.kernel, changed)


def _at_least_one(count: Expression) -> Expression:
    """A grid has a block in any case: ``h - 1 - 1`` may be 0 or less."""
    return count if count.op == "name" else build("call", (count, number(1)), "max")
