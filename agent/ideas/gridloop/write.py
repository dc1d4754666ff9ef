"""Writing the loop over further elements, with lines before and after it."""

from collections.abc import Sequence

from attrs import evolve

from agent.analysis.syntax import statements
from agent.ideas.gridloop.site import GridLoop
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import indent_of, indent_unit, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit, apply_edits
from agent.source.span import Span
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch, Plan

STRIDE = "gridDim.x * blockDim.x"


def in_loop(view: View, found: GridLoop, before: str, after: str, inner: Sequence[Edit]) -> list[Edit]:
    """The kernel's body as ``before``, the loop over the elements, ``after`` (lines without indentation). ``inner`` are
    edits inside the work."""
    indent = indent_of(view.document, found.first)
    edits = [*inner, _ahead(view, found, before, indent)] if found.loop is not None else []
    if found.loop is None:
        edits = _made(view, found, before, indent, [*inner, *(replace(leave, "continue;") for leave in found.returns)])
    closing = view.facts.body.children[-1]
    lead = "".join(f"\n{indent}{line}" if line else "\n" for line in after.split("\n"))
    last = statements(view.facts.body)[-1]
    return [*edits, Edit(Span(_end(view, last.end_byte), closing.start_byte), f"{lead}\n".encode())] if after else edits


def _end(view: View, offset: int) -> int:
    """The end of the line, where only a comment is left on it."""
    stop = view.document.text.find(b"\n", offset)
    rest = view.document.text[offset:stop].strip()
    return stop if rest.startswith(b"//") else offset


def _ahead(view: View, found: GridLoop, before: str, indent: str) -> Edit:
    start = found.first.start_byte
    return Edit(Span(start, start), _lines(before, indent).encode())


def _lines(lines: str, indent: str) -> str:
    """Lines to stand before something that is indented already; empty ones stay empty."""
    if not lines:
        return ""
    first, *more = lines.split("\n")
    return first + "".join("\n" + (indent + line if line else "") for line in more) + "\n" + indent


def _made(view: View, found: GridLoop, before: str, indent: str, inner: Sequence[Edit]) -> list[Edit]:
    """The declaration and the guard become the loop's header."""
    assert found.declaration is not None and found.guard is not None and found.bound is not None
    document = view.document
    declared = source_text(document, found.declaration).rstrip(";").replace("const ", "").strip()
    bound = source_text(document, found.bound)
    name = found.index.name
    head = f"for ({declared}; {name} {found.below} {bound}; {name} += {STRIDE})"
    start = found.declaration.start_byte
    work = found.guard.child_by_field_name("consequence")
    if found.inside:
        assert work is not None
        between = (
            " " if work.type == "compound_statement" else document.text[_close(view, found) : work.start_byte].decode()
        )
        return [*inner, Edit(Span(start, work.start_byte), (_lines(before, indent) + head + between).encode())]
    rest = [one for one in view.facts.body.named_children if one.start_byte >= found.guard.end_byte]
    first, last = rest[0].start_byte, _end(view, rest[-1].end_byte)
    moved = [Edit(Span(one.span.start - first, one.span.end - first), one.text) for one in inner]
    raw = apply_edits(document.text[first:last], moved).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    unit = indent_unit(document, view.kernel)
    lines = raw.split("\n")
    deeper = "\n".join(
        [lines[0], *(unit + line if line.strip() and not line.startswith("#") else line for line in lines[1:])]
    )
    made = f"{_lines(before, indent)}{head} {{\n{indent}{unit}{deeper}\n{indent}}}"
    return [Edit(Span(start, last), made.encode("utf-8", "surrogateescape"))]


def _close(view: View, found: GridLoop) -> int:
    condition = None if found.guard is None else found.guard.child_by_field_name("condition")
    assert condition is not None
    return condition.end_byte


def with_fewer_blocks(view: View, blocks: int) -> Plan:
    """The plan with at most ``blocks`` blocks in each launch of the kernel."""

    def changed(launch: Launch) -> Launch:
        return evolve(launch, grid=(at_most(launch.grid[0], blocks), *launch.grid[1:]))

    return each_launch(view.request.plan, view.kernel, changed)


def at_most(extent: Expression, blocks: int) -> Expression:
    """The smaller of the two, as C writes it without a library."""
    known = extent.constant
    if isinstance(known, int):
        return number(min(known, blocks))
    return build("?", [build("<", [extent, number(blocks)]), extent, number(blocks)])
