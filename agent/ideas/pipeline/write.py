"""Writing the overlap: two buffers, and a function of the step that starts its copies."""

from tree_sitter import Node

from agent.analysis.patterns.staged_loop import Copy, StagedLoop
from agent.analysis.syntax import descendants
from agent.ideas.product.texts import comment_above, replaced, wrapped
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    indent_of,
    indent_unit,
    insert_before,
    remove_between,
    source_text,
)
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span

HEADER = "cuda_pipeline.h"


def overlapped(view: View, found: StagedLoop) -> Rewrite:
    """The loop with the copies of the next step under way while the block works on this one."""
    document, kernel = view.document, view.kernel
    fetch = fresh_local("fetch", document, kernel)
    buffer = fresh_local("buffer", document, kernel, fetch)
    unit = indent_unit(document, kernel)
    edits = [_doubled(array.declarator) for array in found.arrays]
    edits.append(insert_before(document, found.loop.node, _opening(view, found, fetch, buffer, unit)))
    edits += _body(view, found, fetch, buffer, unit)
    return Rewrite(tuple(edits), headers=(HEADER,))


def _doubled(declarator: Node) -> Edit:
    return Edit(Span(declarator.end_byte, declarator.end_byte), b"[2]")


def _opening(view: View, found: StagedLoop, fetch: str, buffer: str, unit: str) -> str:
    """The function that starts the copies of a step, and the copies of the first."""
    variable = found.loop.variable
    start = _start(view, found)
    lines = [
        "// Start copying the elements of a step into one of the two buffers.",
        f"const auto {fetch} = [&]({variable.type} {variable.name}, int {buffer}) {{",
        *(f"{unit}{line}" if line and line[0] != "#" else line for line in _staging(view, found, buffer).split("\n")),
        "};",
        f"int {buffer} = 0;",
        f"if ({start} {found.loop.relation} {source_text(view.document, found.loop.bound_node)}) "
        f"{fetch}({start}, {buffer});",
        "__pipeline_commit();",
    ]
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


def _body(view: View, found: StagedLoop, fetch: str, buffer: str, unit: str) -> list[Edit]:
    """In the loop: the next step's copies instead of this one's, and the work on the buffer that has arrived."""
    document = view.document
    loop = found.loop
    step = source_text(document, loop.update)
    following = _following(view, found)
    bound = source_text(document, loop.bound_node)
    margin = indent_of(document, found.staging[0])
    lines = [
        f"if ({following} {loop.relation} {bound}) {fetch}({following}, {buffer} ^ 1);",
        "__pipeline_commit();",
        "__pipeline_wait_prior(1);  // all copies but those of the next step have arrived",
    ]
    assert step
    edits = [
        Edit(
            Span(found.staging[0].start_byte, found.staging[-1].end_byte),
            f"\n{margin}".join(lines).encode(),
        )
    ]
    edits += _moved(view, found)
    for one in found.work:
        for name in descendants(one, "identifier"):
            if view.facts.symbols.resolve(name) in found.arrays:
                edits.append(Edit(Span(name.end_byte, name.end_byte), f"[{buffer}]".encode()))
    end = [child for child in loop.body.named_children if child.type != "comment"][-1]
    edits.append(Edit(Span(end.end_byte, end.end_byte), f"\n{margin}{buffer} ^= 1;".encode()))
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


def _following(view: View, found: StagedLoop) -> str:
    """The loop's variable in the next turn."""
    update, name = found.loop.update, found.loop.variable.name
    if update.type == "update_expression":
        return f"{name} {'+' if found.loop.step.constant == 1 else '-'} 1"
    right = update.child_by_field_name("right")
    assert right is not None
    written = source_text(view.document, right)
    operator = update.child_by_field_name("operator")
    sign = "" if operator is None or operator.text is None else operator.text.decode()
    return written if sign == "=" else f"{name} {sign[0]} {_grouped(written)}"
