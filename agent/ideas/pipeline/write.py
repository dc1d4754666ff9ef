"""Writing the overlap: several buffers, a function of the step that starts its copies, and one barrier a step."""

from tree_sitter import Node

from agent.analysis.patterns.staged_loop import Copy, StagedLoop
from agent.analysis.syntax import contains, descendants
from agent.ideas.product.texts import comment_above, replaced, wrapped
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    indent_of,
    indent_unit,
    insert_after,
    remove_between,
    source_text,
)
from agent.ideas.rowpass.writing import insert_before_loop
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span

HEADER = "cuda_pipeline.h"
NAMES = {2: "two", 3: "three", 4: "four"}


def overlapped(view: View, found: StagedLoop, stages: int = 2) -> Rewrite:
    """The loop with the copies of the next ``stages - 1`` steps under way while the block works on this one."""
    document, kernel = view.document, view.kernel
    fetch = fresh_local("fetch", document, kernel)
    buffer = fresh_local("buffer", document, kernel, fetch)
    unit = indent_unit(document, kernel)
    edits = [_several(array.declarator, stages) for array in found.arrays]
    opening = _opening(view, found, fetch, buffer, unit, stages)
    edits.append(insert_before_loop(document, found.loop.node, opening))
    edits += _body(view, found, fetch, buffer, stages)
    if _barrier_is_missed(view, found):
        edits.append(insert_after(document, found.loop.node, "__syncthreads();"))
    return Rewrite(tuple(edits), headers=(HEADER,))


def _barrier_is_missed(view: View, found: StagedLoop) -> bool:
    """Whether the last barrier of the loop kept apart more than its steps: the loop runs again, or what its work reads
    is written behind it."""
    if view.facts.loops_around(found.loop.node):
        return True
    accesses = [one for one in view.facts.accesses if one.space != "local"]
    read = {one.root for one in accesses if one.reads and any(contains(work, one.node) for work in found.work)}
    behind = [one for one in accesses if one.writes and one.node.start_byte >= found.loop.node.end_byte]
    return any(one.root is None or one.root in read for one in behind)


def _several(declarator: Node, stages: int) -> Edit:
    return Edit(Span(declarator.end_byte, declarator.end_byte), f"[{stages}]".encode())


def _opening(view: View, found: StagedLoop, fetch: str, buffer: str, unit: str, stages: int) -> str:
    """The function that starts the copies of a step, and the copies of the first ones."""
    variable, relation = found.loop.variable, found.loop.relation
    start, bound = _start(view, found), source_text(view.document, found.loop.bound_node)
    lines = [
        f"// Start copying the elements of a step into one of the {NAMES[stages]} buffers.",
        f"const auto {fetch} = [&]({variable.type} {variable.name}, int {buffer}) {{",
        *(f"{unit}{line}" if line and line[0] != "#" else line for line in _staging(view, found, buffer).split("\n")),
        "};",
        f"int {buffer} = 0;",
    ]
    for ahead in range(stages - 1):
        at = _ahead(view, found, start, ahead)
        lines += [f"if ({at} {relation} {bound}) {fetch}({at}, {ahead});", "__pipeline_commit();"]
    return "\n".join(lines)


def _start(view: View, found: StagedLoop) -> str:
    header = found.loop.node.child_by_field_name("initializer")
    init = found.loop.variable.init
    if header is not None and init is not None and header.start_byte <= init.start_byte < header.end_byte:
        return _grouped(source_text(view.document, init))
    right = None if header is None else header.child_by_field_name("right")
    assert right is not None
    return _grouped(source_text(view.document, right))


def _grouped(written: str) -> str:
    return written if written.replace("_", "a").replace(".", "a").isalnum() else f"({written})"


def _staging(view: View, found: StagedLoop, buffer: str) -> str:
    swaps = {copy.statement.start_byte: (copy.statement.end_byte, _copied(view, copy, buffer)) for copy in found.copies}
    staging = replaced(view.document, found.staging[0], found.staging[-1], swaps)
    advances = [replaced(view.document, comment_above(one), one, {}) for one in found.advances]
    width = max(100, *(len(line) for line in view.document.slice_text(view.kernel.span).split("\n")))
    width -= len(indent_of(view.document, found.staging[0]))
    lines = "\n".join([staging, *advances]).split("\n")
    return "\n".join(piece for line in lines for piece in wrapped(line, width))


def _copied(view: View, copy: Copy, buffer: str) -> str:
    """A copy of one element that does not wait; under its condition, where it has one."""
    document = view.document
    target = _in_buffer(view, copy.target.node, copy.target.name, buffer)
    if copy.source is None:
        return f"{target}{source_text(document, copy.statement)[len(source_text(document, copy.target.node)) :]}"
    source = source_text(document, copy.source.node)
    issue = f"__pipeline_memcpy_async(&{target}, &{source}, sizeof({copy.target.element}));"
    if copy.condition is None or copy.otherwise is None:
        return issue
    margin = indent_of(document, copy.statement)
    condition, otherwise = (source_text(document, one) for one in (copy.condition, copy.otherwise))
    condition = condition if condition.startswith("(") and condition.endswith(")") else f"({condition})"
    step = indent_unit(document, view.kernel)
    lines = [f"if {condition}", f"{step}{issue}", "else", f"{step}{target} = {otherwise};"]
    body = f"\n{margin}".join(lines)
    alone = copy.statement.parent is not None and copy.statement.parent.type == "compound_statement"
    return body if alone else "{ " + " ".join(line.strip() for line in lines) + " }"


def _in_buffer(view: View, node: Node, name: str, buffer: str) -> str:
    written = source_text(view.document, node)
    assert written.startswith(name)
    return f"{name}[{buffer}]{written[len(name) :]}"


def _body(view: View, found: StagedLoop, fetch: str, buffer: str, stages: int) -> list[Edit]:
    """In the loop: a wait instead of this step's copies; behind the barrier, where everybody is done with the step
    before, copies into its buffer; and the work on the buffer that has arrived. The second barrier is not needed."""
    document, loop = view.document, found.loop
    following = _ahead(view, found, loop.variable.name, stages - 1)
    bound = source_text(document, loop.bound_node)
    margin = indent_of(document, found.staging[0])
    last = stages - 1
    behind = f"{buffer} ^ 1" if stages == 2 else f"{buffer} > 0 ? {buffer} - 1 : {last}"
    onward = f"{buffer} ^= 1;" if stages == 2 else f"{buffer} = {buffer} < {last} ? {buffer} + 1 : 0;"
    copying = [f"if ({following} {loop.relation} {bound}) {fetch}({following}, {behind});", "__pipeline_commit();"]
    edits = [
        Edit(
            Span(found.staging[0].start_byte, found.staging[-1].end_byte),
            f"__pipeline_wait_prior({stages - 2});  // this step's copies have arrived".encode(),
        ),
        Edit(Span(found.barriers[0].end_byte, found.barriers[0].end_byte), f"\n{margin}".join(("", *copying)).encode()),
        Edit(Span(found.barriers[1].start_byte, found.barriers[1].end_byte), onward.encode()),
    ]
    edits += _moved(view, found)
    for one in found.work:
        for name in descendants(one, "identifier"):
            if view.facts.symbols.resolve(name) in found.arrays:
                edits.append(Edit(Span(name.end_byte, name.end_byte), f"[{buffer}]".encode()))
    return edits


def _moved(view: View, found: StagedLoop) -> list[Edit]:
    """The statements that step on are taken away, side by side ones at once, with their comments."""
    document, runs = view.document, list[list[Node]]()
    for one in found.advances:
        if runs and not any(runs[-1][-1].end_byte <= other.start_byte < one.start_byte for other in found.work):
            runs[-1].append(one)
        else:
            runs.append([one])
    return [remove_between(document, comment_above(run[0]), run[-1]) for run in runs]


def may_run_ahead(found: StagedLoop) -> bool:
    """Whether the loop's variable several turns on can be spelled, and compared with the bound: not where the loop
    ends at one value alone."""
    spelled = found.loop.step.constant is not None or _sign(found) in ("+=", "-=")
    return spelled and found.loop.relation != "!="


def _ahead(view: View, found: StagedLoop, start: str, turns: int) -> str:
    """The loop's variable ``turns`` after it was ``start``."""
    if not turns:
        return start
    fixed, right = found.loop.step.constant, found.loop.update.child_by_field_name("right")
    if right is not None and _sign(found) == "=" and turns == 1 and start == found.loop.variable.name:
        return source_text(view.document, right)
    if right is not None and _sign(found) != "=":
        sign, written = _sign(found)[0], _grouped(source_text(view.document, right))
        moved = written if turns == 1 else f"{turns} * {written}"
    else:
        assert fixed is not None
        sign, moved = "-" if fixed < 0 else "+", str(turns * abs(fixed))
    return moved if start == "0" and sign == "+" else f"{start} {sign} {moved}"


def _sign(found: StagedLoop) -> str:
    operator = found.loop.update.child_by_field_name("operator")
    return "" if operator is None or operator.text is None else operator.text.decode()
