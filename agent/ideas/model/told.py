"""What a model is told of a kernel: its device code, its workload, counted facts, and what was tried.

Nothing else leaves the machine: no host code, no header of the user's, no path. What is code is marked as data between
two lines that nobody can know beforehand, so that no comment in it can pose as a question of ours.
"""

import re
import secrets
from collections.abc import Iterator

from attrs import evolve

from agent.ideas.request import Request
from agent.source.document import Document, parse
from agent.source.errors import SliceError
from agent.source.kernel import Kernel
from agent.source.slicing import device_slice
from agent.workload.directive import format_statements
from agent.workload.workload import Workload

_LINE = re.compile(r'^#line \d+(?: "(?P<file>[^"]*)")?$')
_OURS = "<cuda-lsp>"
_MOST_TRIED = 24


def device_code(document: Document, kernel: Kernel) -> str:
    """The kernel and what it uses of its own file. Raises SourceError where no slice can be cut.

    Headers are not looked at: what a kernel uses from them is a name to the model.
    """
    if kernel.damage is not None:
        raise SliceError(kernel.damage)
    part = device_slice(parse(document.text), [kernel.qualified_name])
    lines: list[str] = []
    ours = False
    for line in part.text.split("\n"):
        if mark := _LINE.match(line):
            ours = mark["file"] == _OURS
        elif not ours and (line.strip() or (lines and lines[-1].strip())):
            lines.append(line.rstrip())
    return "\n".join(lines).strip()


def workload_text(workload: Workload) -> str:
    """The workload as statements of a directive, without the user's compiler flags: those may hold paths."""
    return "\n".join(line for line in format_statements(workload) if not line.startswith("flags"))


def marked(text: str, what: str) -> str:
    """``text`` as data."""
    mark = f"{what.upper()} {secrets.token_hex(6)}"
    return f"===== BEGIN {mark} =====\n{text}\n===== END {mark} ====="


def about(request: Request) -> str:
    """All that the model is told of the kernel."""
    return "\n\n".join(_sections(request))


def _sections(request: Request) -> Iterator[str]:
    kernel = request.kernel
    yield (
        f"The kernel is `{kernel.name}`. Its code, with the device code that it uses:\n"
        + marked(device_code(request.document, kernel), "code")
        + "\nNames that are not defined there come from headers that are in place already."
    )
    yield (
        "What it is run on, and how it is launched now (sizes vary, and every valid size must work):\n"
        + marked(_with_plan(request), "workload")
    )
    if request.facts:
        yield "Facts about this kernel as it is:\n" + "\n".join(f"- {fact}" for fact in request.facts)
    if request.counters:
        counted = (f"- {name}: {value:.4g}" for name, value in request.counters)
        yield "Counters of the whole grid at the declared size:\n" + "\n".join(counted)
    yield _SCOPES[request.scope.value]
    if request.lossy:
        yield "Less precise arithmetic (half, bfloat16, tf32) is allowed where it pays."
    if request.tried:
        ended = (f"- {title}: {end}" for title, end in request.tried[-_MOST_TRIED:])
        yield "Tried on this kernel before, and how it ended:\n" + marked("\n".join(ended), "tried")
    if request.adviser is not None and request.adviser.rejected:
        turned = (f"- {title}: {reason}" for title, reason in request.adviser.rejected[-_MOST_TRIED:])
        yield "The user does not want these, for the reason given:\n" + marked("\n".join(turned), "rejected")


_SCOPES = {
    "drop-in": "The launch must stay exactly as it is: only the kernel's body may change.",
    "relaunch": "Grid, block and dynamic shared memory may change; kernels and arguments of the launches stay.",
    "plan": "The launches are free: several kernels, other arguments, scratch buffers.",
}


def _with_plan(request: Request) -> str:
    return workload_text(evolve(request.workload, plan=request.plan))


def plan_lines(request: Request) -> list[str]:
    """The plan alone, as statements."""
    bare = evolve(
        request.workload, sizes=(), constants=(), buffers=(), plan=request.plan, comparators=(), flags=(), lossy=False
    )
    return format_statements(bare)
