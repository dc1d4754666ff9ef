"""Edits of the user's launch sites that a changed plan needs."""

from collections.abc import Sequence

from attrs import frozen

from agent.search.formatting.formatter import Formatter, unformatted
from agent.search.host.directive import directive_edits
from agent.search.host.named import with_names
from agent.search.host.problem import Inexpressible
from agent.search.host.relaunch import exchanges, site_edits
from agent.search.host.replace import Run, run_edits
from agent.search.host.sites import bare, check_direct, matched, sites_of
from agent.search.host.spelling import speller
from agent.search.host.swaps import without_needless_swaps
from agent.search.host.unused import without_unused
from agent.search.host.wide import without_wide_launches
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.launch import LaunchSite
from agent.workload.plan import Launch, Plan, Repeat, Step
from agent.workload.program import Program
from agent.workload.workload import Workload


@frozen
class HostEdits:
    """``document`` is the rewritten file with its launch sites edited; ``by_hand`` says what could not be. ``plan`` is
    what its host code launches: the rewrite's, without exchanges that the host code can do without."""

    document: Document
    by_hand: str
    plan: Plan


def host_edits(
    original: Program, rewrite: Program, workload: Workload, formatted: Formatter = unformatted
) -> HostEdits:
    """The rewritten document with the directive and every launch site brought in line with the new plan, in the user's
    style by ``formatted``. No launch is edited where not all can be; ``by_hand`` then says why, and what was
    verified."""
    if original.plan == rewrite.plan:
        return HostEdits(rewrite.document, "", rewrite.plan)
    document = rewrite.document
    try:
        document = _with(document, directive_edits(document, original.plan, rewrite.plan, workload))
        plan = without_needless_swaps(original.plan, rewrite.plan, document, workload)
        edited = _with(document, _edits(original.plan, plan, document, workload))
        edited = without_unused(document, with_names(document, edited))
        return HostEdits(formatted(without_wide_launches(document, edited), rewrite.document), "", plan)
    except (Inexpressible, ValueError) as problem:
        return HostEdits(document, f"{problem}. The launches that were verified: {_in_words(rewrite)}", rewrite.plan)


def _with(document: Document, edits: Sequence[Edit]) -> Document:
    return parse(apply_edits(document.text, edits), document.path) if edits else document


def _edits(old: Plan, new: Plan, document: Document, workload: Workload) -> list[Edit]:
    launches = old.launches()
    check_direct(launches, document)
    if _one_to_one(old, new) and all(exchanges(*pair) for pair in zip(launches, new.launches(), strict=True)):
        return _exchanged(old, new, document, workload)
    sites = matched(launches, document)
    if _one_to_one(old, new):
        found: list[Edit] = []
        for before, after, where in zip(launches, new.launches(), sites, strict=True):
            for site in where if before != after else ():
                found += site_edits(site, before, after, speller(site, before, new, old, workload, document), document)
        return found
    return _replaced(old, new, sites, document, workload)


def _one_to_one(old: Plan, new: Plan) -> bool:
    """Whether the new plan is the old one with other numbers in its launches."""
    before, after = old.launches(), new.launches()
    return (
        [one for one in new.scratch if one not in old.scratch] == []
        and _shape(old.steps) == _shape(new.steps)
        and all(
            a.kernel == b.kernel and len(a.arguments) == len(b.arguments) for a, b in zip(before, after, strict=True)
        )
    )


def _shape(steps: Sequence[Step]) -> tuple[object, ...]:
    """The steps without the numbers of their launches."""
    found: list[object] = []
    for step in steps:
        if isinstance(step, Launch):
            found.append("launch")
        elif isinstance(step, Repeat):
            head = (step.count, step.variable, step.start, step.update, step.condition)
            found.append(("repeat", head, _shape(step.body)))
        else:
            found.append(step)
    return tuple(found)


def _exchanged(old: Plan, new: Plan, document: Document, workload: Workload) -> list[Edit]:
    """Axes that were exchanged: whatever its numbers are, every site of the kernel follows."""
    edits: list[Edit] = []
    for before, after in zip(old.launches(), new.launches(), strict=True):
        if before == after:
            continue
        sites = sites_of(document, before.kernel)
        if not sites:
            raise Inexpressible(f"no launch of {bare(before.kernel)} is in this file")
        for site in sites:
            edits += site_edits(site, before, after, speller(site, before, new, old, workload, document), document)
    return list({edit.span: edit for edit in edits}.values())


def _replaced(
    old: Plan, new: Plan, sites: tuple[tuple[LaunchSite, ...], ...], document: Document, workload: Workload
) -> list[Edit]:
    """The one stretch of steps that differs, at each place where the file has it."""
    before, after, first, depth = _difference(old.steps, new.steps)
    count = len(Plan(before).launches())
    if not count:
        raise Inexpressible("the rewrite only adds steps, and no launch says where")
    launches = old.launches()[first : first + count]
    groups = sites[first : first + count]
    if len({len(group) for group in groups}) != 1:
        raise Inexpressible("the launches that are replaced are not written equally often in this file")
    edits: list[Edit] = []
    for index in range(len(groups[0])):
        where = tuple(group[index] for group in groups)
        spell = speller(where[-1], launches[-1], new, old, workload, document)
        for launch, site in zip(launches, where, strict=True):
            spell = spell.also(dict(speller(site, launch, new, old, workload, document).told) | dict(spell.told))
        edits += run_edits(Run(before, after, where, depth), spell, old, new, workload, document)
    return edits


def _difference(
    old: tuple[Step, ...], new: tuple[Step, ...], first: int = 0, depth: int = 0
) -> tuple[tuple[Step, ...], tuple[Step, ...], int, int]:
    """(old steps, new steps, number of launches before them, loops around them) of the stretch that differs."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first += len(Plan(old[:start]).launches())
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if len(before) == len(after) == 1 and isinstance(before[0], Repeat) and isinstance(after[0], Repeat):
        one, other = before[0], after[0]
        if _shape((one,))[0][1] == _shape((other,))[0][1]:  # type: ignore[index]
            return _difference(one.body, other.body, first, depth + 1)
    if not Plan(before).launches() and end:  # steps before a launch that stays: written where that launch stands
        return _difference_with_next(old, new, start, end, first, depth)
    return before, after, first, depth


def _difference_with_next(
    old: tuple[Step, ...], new: tuple[Step, ...], start: int, end: int, first: int, depth: int
) -> tuple[tuple[Step, ...], tuple[Step, ...], int, int]:
    return old[start : len(old) - end + 1], new[start : len(new) - end + 1], first, depth


def _in_words(program: Program) -> str:
    return "; ".join(
        f"{launch.kernel}<<<({', '.join(map(str, launch.grid))}), ({', '.join(map(str, launch.block))}), "
        f"{launch.shared}>>>"
        f"({', '.join(map(str, launch.arguments))})"
        for launch in program.plan.launches()
    )
