"""A launch that stays the same launch with other numbers: its site is edited in place."""

import re

from agent.ideas.rewriting import unused_name
from agent.search.host.named import declared_parts
from agent.search.host.problem import Inexpressible
from agent.search.host.sites import check_of, checked, sites_of, statement_of
from agent.search.host.spelling import Speller
from agent.source.document import Document
from agent.source.edits import Edit
from agent.source.launch import LaunchSite
from agent.source.line_ends import line_end
from agent.source.span import Span
from agent.workload.bind import FREE_SHARED
from agent.workload.expression import Expression, ExpressionError
from agent.workload.plan import Grid, Launch
from agent.workload.types import split_arguments

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"\w+")
_DIM3 = re.compile(r"\s*dim3\s*[({](.*)[)}]\s*", re.DOTALL)


def site_edits(site: LaunchSite, before: Launch, after: Launch, spell: Speller, document: Document) -> list[Edit]:
    """The edits of one site. Raises Inexpressible where a name is not known there."""
    grid, block = (
        _exchanged(text, old, new) or _told(site, text, old, new, spell, document, fixed) if old != new else text
        for text, old, new, fixed in (
            (site.grid, before.grid, after.grid, before.block == after.block),
            (site.block, before.block, after.block, True),
        )
    )
    edits = [_edit(site.block_span, block)] if before.block != after.block else []
    if before.grid != after.grid:
        lines, grid = _bounded(site, grid, document)
        edits += [_edit(site.grid_span, grid), *([_before(site, lines, document)] if lines else [])]
    if before.shared != after.shared:
        text = spell.text(after.shared)
        if needs_attribute(after, spell) and not needs_attribute(before, spell):
            lines, text = _asked_for(site, after, text, document)
            edits.append(_before(site, lines, document))
        edits.append(_shared(site, text))
    for index, (old_argument, new_argument) in enumerate(zip(before.arguments, after.arguments, strict=True)):
        if old_argument != new_argument:
            edits.append(_edit(site.argument_spans[index], spell.text(new_argument)))
    return edits


def needs_attribute(launch: Launch, spell: Speller) -> bool:
    try:
        return launch.shared.evaluate(spell.declared) > FREE_SHARED
    except ExpressionError:
        return False


def attribute(launch: Launch, shared: str) -> str:
    """The call without which a launch with more than 48 KB of dynamic shared memory fails."""
    return f"cudaFuncSetAttribute({launch.kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared})"


def _asked_for(site: LaunchSite, after: Launch, shared: str, document: Document) -> tuple[list[str], str]:
    """The lines without which a launch with much dynamic shared memory fails, and how its bytes are spelled then: under
    a name, where they are computed and no other launch would name them too."""
    lines = []
    if not _PLAIN.fullmatch(shared) and len(sites_of(document, after.kernel)) == 1:
        name = unused_name("shared_bytes", set(_words(site, document)))
        lines = [f"const int {name} = {shared};"]
        shared = name
    return [*lines, checked(attribute(after, shared), check_of(document))], shared


def _bounded(site: LaunchSite, grid: str, document: Document) -> tuple[list[str], str]:
    """``blocks < most ? blocks : most``, and the line that says what ``blocks`` are, where a grid with an upper bound
    would say it twice."""
    bounded = re.fullmatch(r"(.+) < (\w+) \? \1 : \2", grid)
    statement = statement_of(document, site)
    in_block = statement.parent is not None and statement.parent.type == "compound_statement"
    if bounded is None or _PLAIN.fullmatch(bounded[1]) or len(sites_of(document, site.kernel)) != 1 or not in_block:
        return [], grid
    words = _words(site, document)
    if words.count(site.grid.strip()) == 2:
        return [], grid  # a variable for this launch alone: the new value is told where it is declared
    name = unused_name("blocks", set(words))
    return [f"const int {name} = {bounded[1]};"], f"{name} < {bounded[2]} ? {name} : {bounded[2]}"


def _words(site: LaunchSite, document: Document) -> list[str]:
    """Every word of the function around a launch, and every macro's name."""
    function = site.function_span or Span(0, len(document.text))
    return [*_IDENTIFIER.findall(document.slice_text(function)), *(macro.name for macro in document.macros)]


def _before(site: LaunchSite, lines: list[str], document: Document) -> Edit:
    """Lines before the launch's statement, indented as it is; on its line where it does not begin one."""
    statement = statement_of(document, site)
    if statement.parent is None or statement.parent.type != "compound_statement":
        raise Inexpressible(
            f"the launch at line {site.line} needs cudaFuncSetAttribute before it, and stands in no block of its own"
        )
    start = statement.start_byte
    line = document.text[document.line_starts[document.line(start) - 1] : start]
    between = b" " if line.strip() else line_end(document.text) + line
    return Edit(Span(start, start), b"".join(one.encode() + between for one in lines))


def _shared(site: LaunchSite, text: str) -> Edit:
    if site.shared_span is not None:
        return _edit(site.shared_span, text)
    end = site.block_span.end
    return Edit(Span(end, end), f", {text}".encode())


def _edit(span: Span, text: str) -> Edit:
    return Edit(span, text.encode())


def _exchanged(text: str, old: Grid, new: Grid) -> str | None:
    """The site's own text with x and y exchanged, where that is all that changed: it holds at every launch site."""
    if new != (old[1], old[0], old[2]):
        return None
    if _IDENTIFIER.fullmatch(text.strip()) and text.strip() != str(old[0]):
        name = text.strip()
        return f"dim3({name}.y, {name}.x, {name}.z)"
    match = _DIM3.fullmatch(text)
    parts = split_arguments(match[1], angles=False) if match else [text.strip()]
    parts += ["1"] * (2 - len(parts))
    return f"dim3({', '.join([parts[1], parts[0], *parts[2:]])})"


def _told(site: LaunchSite, text: str, old: Grid, new: Grid, spell: Speller, document: Document, fixed: bool) -> str:
    """A shape, with the axes that stay in the user's own words. ``fixed``: the block that they may be told over is as
    it was."""
    parts = declared_parts(document, site, text) if fixed else []
    kept = [part if a == b else None for part, a, b in zip(parts, old, new, strict=False)]
    if not any(part is not None and not part.isdecimal() for part in kept):
        return spell.dims(new)
    told = [part if part is not None else spell.text(one) for part, one in zip(kept, new, strict=False)]
    told += [spell.text(one) for one in new[len(told) :]]
    while len(told) > 1 and told[-1] == "1":
        told.pop()
    return told[0] if len(told) == 1 else f"dim3({', '.join(told)})"


def exchanges(before: Launch, after: Launch) -> bool:
    """Whether two launches differ in nothing but the order of the axes, which every site can follow."""
    old: tuple[tuple[Expression, ...], ...] = (before.grid, before.block)
    new: tuple[tuple[Expression, ...], ...] = (after.grid, after.block)
    same = (before.kernel, before.shared, before.arguments) == (after.kernel, after.shared, after.arguments)
    return same and all(b in (a, (a[1], a[0], a[2])) for a, b in zip(old, new, strict=True))
