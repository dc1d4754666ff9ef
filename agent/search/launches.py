"""Edits of the user's launch sites that a changed plan needs. We write them from the plan; no model ever does."""

import re

from attrs import evolve, frozen

from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.launch import LaunchSite
from agent.source.span import Span
from agent.workload.expression import Expression
from agent.workload.plan import Launch
from agent.workload.program import Program
from agent.workload.workload import Workload

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DIM3 = re.compile(r"\s*dim3\s*[({](.*)[)}]\s*", re.DOTALL)


@frozen
class HostEdits:
    """``document`` is the rewritten file with its launch sites edited; ``by_hand`` says what could not be."""

    document: Document
    by_hand: str


class _Inexpressible(Exception):
    """Why a launch site cannot be edited by us."""


def host_edits(original: Program, rewrite: Program, workload: Workload) -> HostEdits:
    """The rewritten document with every launch site of a relaunched kernel brought in line with the new plan."""
    if original.plan == rewrite.plan:
        return HostEdits(rewrite.document, "")
    try:
        edits = _edits(original, rewrite, workload)
    except _Inexpressible as problem:
        return HostEdits(rewrite.document, f"{problem}. The launches that were verified: {_in_words(rewrite)}")
    document = rewrite.document
    return HostEdits(parse(apply_edits(document.text, edits), document.path), "")


def _edits(original: Program, rewrite: Program, workload: Workload) -> list[Edit]:
    old, new = original.plan.launches(), rewrite.plan.launches()
    same_shape = evolve(rewrite.plan, steps=()) == evolve(original.plan, steps=()) and len(old) == len(new)
    if not same_shape or any(a.kernel != b.kernel or a.arguments != b.arguments for a, b in zip(old, new, strict=True)):
        raise _Inexpressible(
            "this rewrite launches other kernels or needs scratch memory, and its host code has to be written"
        )
    edits: list[Edit] = []
    for before, after in zip(old, new, strict=True):
        if before == after:
            continue
        sites = [site for site in rewrite.document.launches if site.kernel == _bare(before.kernel)]
        if not sites:
            raise _Inexpressible(f"no launch of {before.kernel} is in this file")
        for site in sites:
            edits += _site_edits(site, before, after, rewrite.document, only=len(sites) == 1)
    return list({edit.span: edit for edit in edits}.values())


def _bare(name: str) -> str:
    return name.split("<")[0].split("::")[-1]


def _site_edits(site: LaunchSite, before: Launch, after: Launch, document: Document, only: bool) -> list[Edit]:
    edits = []
    for span, text, old, new in (
        (site.grid_span, site.grid, before.grid, after.grid),
        (site.block_span, site.block, before.block, after.block),
    ):
        if old != new:
            edits.append(_edit(span, _permuted(text, old, new) or _spelled(new, site, document, only)))
    if before.shared != after.shared:
        if site.shared_span is None:
            raise _Inexpressible(f"the launch at line {site.line} names no dynamic shared memory to change")
        edits.append(_edit(site.shared_span, _visible(after.shared, site, document, only)))
    return edits


def _edit(span: Span, text: str) -> Edit:
    return Edit(span, text.encode())


def _permuted(text: str, old: tuple[Expression, ...], new: tuple[Expression, ...]) -> str | None:
    """The site's own text with x and y exchanged, where that is all that changed: it holds at every launch site."""
    if new != (old[1], old[0], old[2]):
        return None
    if _IDENTIFIER.fullmatch(text.strip()) and text.strip() != str(old[0]):
        name = text.strip()
        return f"dim3({name}.y, {name}.x, {name}.z)"
    match = _DIM3.fullmatch(text)
    parts = _split(match[1]) if match else [text.strip()]
    parts += ["1"] * (2 - len(parts))
    return f"dim3({', '.join([parts[1], parts[0], *parts[2:]])})"


def _split(text: str) -> list[str]:
    """The top-level commas of an argument list."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[begin:index].strip())
            begin = index + 1
    return [*parts, text[begin:].strip()]


def _spelled(dims: tuple[Expression, ...], site: LaunchSite, document: Document, only: bool) -> str:
    used = dims[:1] if str(dims[1]) == str(dims[2]) == "1" else dims[:2] if str(dims[2]) == "1" else dims
    texts = [_visible(expression, site, document, only) for expression in used]
    return texts[0] if len(texts) == 1 else f"dim3({', '.join(texts)})"


def _visible(expression: Expression, site: LaunchSite, document: Document, only: bool) -> str:
    """The expression as host code, if every name in it is in sight at the site and the site is the only one."""
    if not only:
        raise _Inexpressible(
            f"the kernel is launched in several places, and only one of them was verified (line {site.line})"
        )
    in_sight = set(_IDENTIFIER.findall(document.slice_text(Span(0, site.span.start))))
    missing = sorted(set(expression.names) - in_sight)
    if missing:
        raise _Inexpressible(f"the launch at line {site.line} does not know {', '.join(missing)}")
    return str(expression)


def _in_words(program: Program) -> str:
    return "; ".join(
        f"{launch.kernel}<<<({', '.join(map(str, launch.grid))}), ({', '.join(map(str, launch.block))}), "
        f"{launch.shared}>>>"
        f"({', '.join(map(str, launch.arguments))})"
        for launch in program.plan.launches()
    )
