"""What of a file's own launches a verdict says nothing about: the plan that was judged may be a part of the program."""

import re
from collections import Counter
from collections.abc import Iterator

from agent.evaluation.host_changes import host_changes
from agent.source.document import Document
from agent.source.launch import LaunchSite
from agent.workload.plan import Launch, Plan
from agent.workload.program import Program
from agent.workload.static.assemble import launch_roles
from agent.workload.static.contents import again
from agent.workload.static.inference import trace_all
from agent.workload.static.state import Facts
from agent.workload.static.values import LaunchItem, memories_of
from agent.workload.types import split_name
from agent.workload.workload import Access, Workload

_WORD = re.compile(r"[A-Za-z_]\w*")


def unjudged(original: Program, candidate: Program, workload: Workload) -> tuple[str, ...]:
    """Words on launches that were not judged, read off the host code of the rewrite, or else of the original; and on
    what else of the host code changed."""
    programs = (candidate, original)
    places = next((found for found in map(_places, programs) if found), ())
    turns = next((found for found in (_turns(one, workload) for one in programs) if found), ())
    return (*places, *turns, *_again(original, workload), *host_changes(original, candidate, workload))


def _places(program: Program) -> tuple[str, ...]:
    """Kernels that the file launches in more ways than the plan does. Launches that are written alike count once."""
    found: list[str] = []
    planned: dict[str, set[Launch]] = {}
    for launch in program.plan.launches():
        planned.setdefault(_bare(launch.kernel), set()).add(launch)
    for kernel, judged in planned.items():
        sites = _ways(program.document, kernel)
        if len(sites) > len(judged):
            listed = ", ".join(f"line {site.line} {_called(site)}" for site in sites)
            ran = ", ".join(sorted(f"{one.kernel}({', '.join(map(str, one.arguments))})" for one in judged))
            found.append(f"the other launches of {kernel} (all: {listed}): judged was {ran}")
    return tuple(found)


def _turns(program: Program, workload: Workload) -> tuple[str, ...]:
    """Launches in a loop of the host's, of which the plan has one turn, on memory that a turn leaves to the next."""
    carried = {buffer.name for buffer in workload.buffers if buffer.access is Access.INOUT}
    carried |= {one.name for one in program.plan.scratch}
    found: dict[str, None] = {}
    for launch in _once(program.plan):
        if not carried & {word for argument in launch.arguments for word in _WORD.findall(str(argument))}:
            continue
        for site in _ways(program.document, _bare(launch.kernel)):
            if site.loops:
                where = f"the loop around line {site.line}"
                found[f"what one turn of {where} leaves to the next: one launch of {site.kernel} was judged"] = None
    return tuple(found)


def _again(original: Program, workload: Workload) -> tuple[str, ...]:
    """Launches that the original's host code writes a second time, of buffers that hold something else by then."""
    kernels = {_bare(launch.kernel) for launch in _once(original.plan)}
    sites = Counter(site.kernel for site in original.document.launches)
    if workload.origin.kind != "launch" or not any(sites[kernel] > 1 for kernel in kernels):
        return ()
    facts = trace_all(original.document)
    read = {buffer.host for buffer in workload.buffers if buffer.access is not Access.OUT and not buffer.symbol}
    met = [item for item in facts.items if isinstance(item, LaunchItem)]
    first = next((item for item in met if item.kernel in kernels and item.line == workload.origin.line), None)
    if first is None:
        return ()
    found: list[str] = []
    for other in again(first, met):
        names = sorted(read & {facts.memories[memory].name for memory in _changed(first, other, met, facts)})
        if names:
            told = f"the launch at line {other.line}, before which {', '.join(names)} changed"
            found.append(f"{told}: one launch of {other.kernel} was judged")
    return tuple(dict.fromkeys(found))


def _changed(first: LaunchItem, other: LaunchItem, met: list[LaunchItem], facts: Facts) -> Iterator[int]:
    """Memories of a launch that hold something else at the other one. A launch leaves alone what it only reads."""
    start, end = sorted((met.index(first), met.index(other)))
    roles = [launch_roles(link, facts) for link in met[start:end]]
    for memory in memories_of(other.arguments):
        before, after = first.contents.get(memory), other.contents.get(memory)
        written = any(role is None or memory in role[1] for role in roles)
        if before != after and (written or "kernel" not in {one.kind for one in (before, after) if one is not None}):
            yield memory


def _once(plan: Plan) -> tuple[Launch, ...]:
    return tuple(step for step in plan.steps if isinstance(step, Launch))


def _ways(document: Document, kernel: str) -> tuple[LaunchSite, ...]:
    found: dict[tuple[object, ...], LaunchSite] = {}
    for site in (*document.launches, *document.indirect_launches):
        if site.kernel == kernel:
            found.setdefault((site.callee, site.grid, site.block, site.shared, site.arguments, site.function), site)
    return tuple(found.values())


def _called(site: LaunchSite) -> str:
    return f"{site.callee}({', '.join(' '.join(one.split()) for one in site.arguments)})"


def _bare(kernel: str) -> str:
    return split_name(kernel)[0].split("::")[-1]
