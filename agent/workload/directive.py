"""Directive comments: a workload written down above its kernel, for a user to read and correct.

::

    // cuda-lsp: workload
    //   size     rows = 4096, cols = 65536
    //   buffer   x: f32[rows * cols] in normal
    //   buffer   y: f32[rows * cols] out
    //   launch   softmax<<<rows, 256>>>(x, y, rows, cols)
    __global__ void softmax(const float* x, float* y, int rows, int cols) {

``/* ... */`` comments do as well; an empty comment line ends the directive. What the statements mean is told in
:mod:`agent.workload.statements`.
"""

import re
import shlex

from attrs import frozen

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, number
from agent.workload.generators import default_domain
from agent.workload.plan import Copy, Fill, Grid, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.statements import read_statements
from agent.workload.stray import BETWEEN
from agent.workload.texture_words import texture_text
from agent.workload.workload import PROBED, Buffer, Domain, Origin, Size, Workload

_MARK = re.compile(r"cuda-lsp:\s*workload\b[^\S\n]*")
_LINE_COMMENTS = re.compile(r"(?:^[^\S\n]*//[^\n]*(?:\n|\Z))+", re.M)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.S)


@frozen
class Statement:
    """The text of a directive without its comment marks; its first line is ``line`` of the file."""

    text: str
    line: int


def find_directive(document: Document, kernel: Kernel) -> Statement | None:
    """The directive comment above ``kernel``, or None."""
    above = document.text[: kernel.span.start].decode("utf-8", "replace")
    if "cuda-lsp:" not in above:
        return None
    marks = list(_MARK.finditer(above))
    if not marks:
        return None
    start = marks[-1].start()
    for comment in (*_LINE_COMMENTS.finditer(above), *_BLOCK_COMMENT.finditer(above)):
        if comment.start() <= start < comment.end():
            between = BETWEEN.sub("", above[comment.end() :])
            return None if between.strip() else _stripped(above, marks[-1], comment.end())
    return None


def _stripped(above: str, mark: re.Match[str], end: int) -> Statement:
    body = above[mark.end() : end].removesuffix("*/")
    lines = [re.sub(r"^\s*(//+|\*)?", "", line) for line in body.split("\n")]
    lines[0] = body.split("\n")[0]
    text = re.split(r"\n[^\S\n]*\n", "\n".join(lines).replace("\r", ""), maxsplit=1)[0]
    return Statement(text, 1 + above.count("\n", 0, mark.start()))


def read_directive(document: Document, kernel: Kernel) -> Workload | None:
    """The workload that the comment above ``kernel`` states, checked at its declared sizes; None where there is none.

    Raises WorkloadError with the line to blame.
    """
    statement = find_directive(document, kernel)
    if statement is None:
        return None
    workload = read_statements(
        statement.text, kernel.qualified_name, Origin("directive", statement.line), statement.line
    )
    if not workload.plan.launches():
        raise WorkloadError(
            f"the directive launches nothing; add a line such as `launch {kernel.name}<<<grid, block>>>(...)`",
            statement.line,
        )
    try:
        bind(workload, workload.plan, None, document)
    except WorkloadError as error:
        raise error if error.line else WorkloadError(error.message, statement.line) from None
    return workload


def partial_sizes(document: Document, kernel: Kernel) -> dict[str, int | float] | None:
    """The sizes and constants of a directive that states nothing else, as answers to what the host code leaves open;
    else None."""
    statement = find_directive(document, kernel)
    if statement is None:
        return None
    told = read_statements(statement.text, kernel.qualified_name, Origin("directive", statement.line), statement.line)
    others = (told.plan.steps, told.buffers, told.plan.scratch, told.plan.locals)
    numbers = {part.name: part.value.constant for part in told.constants}
    if not (told.sizes or numbers) or any(others) or None in numbers.values():
        return None
    answers: dict[str, int | float] = {size.name: size.value for size in told.sizes}
    return answers | {name: value for name, value in numbers.items() if value is not None}


def format_directive(workload: Workload, indent: str = "") -> str:
    """The directive comment that states ``workload``; reading it back gives the same (with ``directive`` origins)."""
    lines = ["cuda-lsp: workload", *("  " + line for line in format_statements(workload))]
    return "".join(f"{indent}// {line}\n" for line in lines)


def format_statements(workload: Workload) -> list[str]:
    """One statement a line."""
    lines = []
    if workload.sizes:
        lines.append("size     " + ", ".join(map(_size, workload.sizes)))
    lines += [f"const    {constant.name} = {constant.value}" for constant in workload.constants]
    lines += [f"{'symbol ' if buffer.symbol else 'buffer '}  {_buffer(buffer)}" for buffer in workload.buffers]
    lines += map(texture_text, workload.textures)
    lines += plan_statements(workload.plan)
    for name, comparator in workload.comparators:
        tolerance = "" if comparator.tolerance is None else f" {comparator.tolerance!r}"
        lines.append(f"compare  {name} {comparator.kind}{tolerance}")
    if workload.flags:
        lines.append("flags    " + shlex.join(workload.flags))
    if workload.reference is not None:
        lines.append(f"reference {workload.reference}")
    return [*lines, "lossy"] if workload.lossy else lines


def plan_statements(plan: Plan) -> list[str]:
    """The statements of a plan alone: scratch, locals, steps."""
    lines = [f"scratch  {_scratch(scratch)}" for scratch in plan.scratch]
    lines += [f"local    {name} = {value}" for name, value in plan.locals]
    return lines + [line for step in plan.steps for line in _step(step)]


def _size(size: Size) -> str:
    minimum = f" min {size.minimum}" if size.minimum != 1 else ""
    multiple = f" multiple {size.multiple}" if size.multiple != 1 else ""
    return f"{size.name} = {size.value}{minimum}{multiple}"


def _buffer(buffer: Buffer) -> str:
    domain = "" if buffer.domain == default_domain(buffer.dtype) else " " + _domain(buffer.domain)
    probed = f"{PROBED} " if buffer.probed else ""
    return f"{buffer.name}: {buffer.dtype}[{buffer.extent}] {probed}{buffer.access.value}{domain}"


def _domain(domain: Domain) -> str:
    return ("" if domain.given else "assumed ") + domain_text(domain)


def domain_text(domain: Domain) -> str:
    """``uniform(0, 1)``, ``index(n)``, ``normal``."""
    if domain.kind == "data":
        return f"data({domain.data})"
    if domain.low is None and domain.high is None:
        return domain.kind
    low = number(float("-inf")) if domain.low is None else domain.low
    high = number(float("inf")) if domain.high is None else domain.high
    if domain.kind == "constant" and low == high:
        return f"constant({low})"
    if domain.kind in ("index", "offsets") and low == number(0):
        return f"{domain.kind}({high})"
    return f"{domain.kind}({low}, {high})"


def _scratch(scratch: Scratch) -> str:
    return f"{scratch.name}: {scratch.dtype}[{scratch.extent}]" + (" zeroed" if scratch.zeroed else "")


def _step(step: Step) -> list[str]:
    if isinstance(step, Launch):
        return [f"launch   {_launch(step)}"]
    if isinstance(step, Swap):
        return [f"swap     {step.first} {step.second}"]
    if isinstance(step, Fill):
        return [f"fill     {step.buffer} {step.byte}"]
    if isinstance(step, Copy):
        return [f"copy     {step.target} {step.source}"]
    inner = ["  " + line for part in step.body for line in _step(part)]
    return [f"repeat   {_repeat_head(step)} {{", *inner, "}"]


def _repeat_head(repeat: Repeat) -> str:
    if repeat.count is not None:
        return f"{repeat.count}" + (f" as {repeat.variable}" if repeat.variable else "")
    return f"{repeat.variable} = {repeat.start}; {repeat.condition}; {repeat.variable} = {repeat.update}"


def _launch(launch: Launch) -> str:
    shared = "" if launch.shared == number(0) else f", {launch.shared}"
    arguments = ", ".join(map(str, launch.arguments))
    return f"{launch.kernel}<<<{three(launch.grid)}, {three(launch.block)}{shared}>>>({arguments})"


def three(grid: Grid) -> str:
    """``n``, or ``dim3(n, m)`` where more than x differs from 1."""
    one = number(1)
    x, y, z = grid
    used: list[Expression] = [x, y, z] if z != one else [x, y] if y != one else [x]
    if len(used) == 1:
        text = str(x)
        return f"({text})" if "<" in text or ">" in text else text
    return f"dim3({', '.join(map(str, used))})"
