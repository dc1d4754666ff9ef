"""A directive states the plan too: its launches follow a rewrite, so that the file can be verified again."""

from agent.search.host.problem import Inexpressible
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.errors import UnknownKernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from agent.workload.directive import find_directive, plan_statements
from agent.workload.plan import Plan
from agent.workload.workload import Workload

_PLAN = ("scratch", "local", "launch", "repeat", "swap", "fill", "copy")
_OPEN, _CLOSE = "([{", ")]}"


def directive_edits(document: Document, old: Plan, new: Plan, workload: Workload) -> list[Edit]:
    """The plan's lines of the directive above the kernel, written anew; nothing where there is no such directive."""
    if workload.origin.kind != "directive" or old == new:
        return []
    try:
        statement = find_directive(document, document.kernel(workload.kernel))
    except UnknownKernel:
        return []
    if statement is None:
        return []
    first, count = statement.line, statement.text.count("\n") + 1
    lines = _plan_lines(document, range(first, first + count))
    if not lines:
        return []
    starts = (*document.line_starts, len(document.text))
    text = document.text[starts[lines[0] - 1] : starts[lines[0]]].decode("utf-8", "replace")
    mark = text[: len(text) - len(text.lstrip(" \t/*"))]
    end = line_end(document.text)
    written = b"".join(f"{mark}{line}".encode() + end for line in plan_statements(new))
    edits = [Edit(Span(starts[number - 1], starts[number]), b"") for number in lines[1:]]
    return [Edit(Span(starts[lines[0] - 1], starts[lines[0]]), written), *edits]


def _plan_lines(document: Document, numbers: range) -> list[int]:
    """The 1-based lines of the directive that tell the plan, lines that go on in brackets included."""
    starts = (*document.line_starts, len(document.text))
    found: list[int] = []
    depth = 0
    for number in numbers:
        text = document.text[starts[number - 1] : starts[number]].decode("utf-8", "replace").strip()
        plain = text.lstrip("/* \t")
        words = plain.split(None, 1)
        if depth or (words and words[0] in _PLAN):
            found.append(number)
            depth += sum((one in _OPEN) - (one in _CLOSE) for one in plain)
    if depth:
        raise Inexpressible("the directive has a bracket that is not closed")
    return found
