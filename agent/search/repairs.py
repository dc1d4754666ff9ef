"""A candidate that did not pass goes back to whoever wrote it, with the exact failure in its own lines."""

import re

from agent.evaluation.verdict import Verdict
from agent.execution.compiler import build
from agent.execution.compiler.result import CompileFailure
from agent.ideas.source import Failure, NoCode, repair
from agent.search import events
from agent.search.node import Node, fingerprint
from agent.search.run import Run, child_of, request_for
from agent.source.document import parse
from agent.source.kernel import Kernel

_LINE = re.compile(r"\bline (\d+)\b")


def mended(node: Node, run: Run) -> Node | None:
    """A judged node that is wrong or less precise, repaired; not judged yet. None where it needs no repair or gets
    none. What is undecided says nothing about the code, and is left."""
    assert node.candidate is not None and node.parent is not None and node.verdict is not None
    state = node.verdict.correctness.state
    if state == "undecided" or (state == "right" and (node.verdict.shown or run.options.lossy)) or run.stopped():
        return None
    try:
        candidate = repair(node.candidate, request_for(node.parent, run), _failure(node, node.verdict, run))
    except NoCode as problem:
        run.emit(events.IdeaDropped(f"{node.title}, repaired", str(problem)))
        return None
    if candidate is None:
        return None
    base = node.identifier.partition("r")[0]
    child = child_of(candidate, node.parent, f"{base}r{candidate.repairs}", run)
    key = fingerprint(child.program)
    if key in run.seen:
        run.emit(events.IdeaDropped(f"{node.title}, repaired", "the same code again"))
        return None
    run.seen.add(key)
    return child


def _failure(node: Node, verdict: Verdict, run: Run) -> Failure:
    def own(line: int) -> int:
        return _own_line(node, line, run.kernel)

    def moved(match: re.Match[str]) -> str:
        return f"line {line} of `code`" if (line := own(int(match[1]))) else "a line outside `code`"

    built = build(node.program, run.setting.options, cancelled=run.limited.cancelled)
    if isinstance(built, CompileFailure):
        errors = [item for item in built.diagnostics if item.severity == "error"]
        told = tuple((own(item.line) if item.line else 0, item.message) for item in errors)
        return Failure("compile", "The compiler refuses the code", told)
    last = verdict.gates[-1]
    reason = verdict.correctness.reason or last.reason
    return Failure(last.gate, _LINE.sub(moved, reason))


def _own_line(node: Node, line: int, kernel: Kernel) -> int:
    """The line of a candidate's code that is this line of its file; 0 for lines that are none of its own.

    The code stands in one piece, or in two where the kernel's own comment comes between helpers and kernel.
    """
    assert node.candidate is not None
    document, inside = node.program.document, parse(node.candidate.code.encode("utf-8", "surrogateescape"))
    there = document.kernel(kernel.qualified_name)
    here = next((one for one in inside.kernels if one.name == kernel.name), None)
    if here is None:
        return 0
    first = document.line(there.span.start)
    if first <= line <= document.line(there.span.end):
        return line - first + inside.line(here.span.start)
    helpers = inside.text[: here.span.start].strip()
    text = document.text.replace(b"\r\n", b"\n")
    at = text.find(helpers) if helpers else -1
    if at < 0 or not 0 <= line - text.count(b"\n", 0, at) - 1 <= helpers.count(b"\n"):
        return 0
    return line - text.count(b"\n", 0, at) + inside.text[: inside.text.find(helpers)].count(b"\n")
