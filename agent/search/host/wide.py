"""Launches whose lines no longer fit: written anew, over as many lines as they take."""

from agent.ideas.layout import line_limit
from agent.ideas.rewriting import indent_of
from agent.search.host.problem import Inexpressible
from agent.search.host.sites import is_alone, statement_of, unit_at
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.launch import LaunchSite
from agent.source.line_ends import line_end
from agent.source.nodes import descendants, node_text
from agent.source.span import Span


def without_wide_launches(before: Document, after: Document) -> Document:
    """``after`` with each launch laid out anew that differs from ``before`` and is too long, or stands on several
    lines: what was aligned with its brackets may be so no longer."""
    edits = [edit for site in after.launches if (edit := _edit(before, after, site)) is not None]
    return parse(apply_edits(after.text, edits), after.path) if edits else after


def _edit(before: Document, after: Document, site: LaunchSite) -> Edit | None:
    text = after.text[site.span.start : site.span.end]
    if text in before.text or site.function_span is None or site.damage is not None:
        return None
    try:
        statement = statement_of(after, site)
        alone = is_alone(after, site) and not any(descendants(statement, "comment"))
    except Inexpressible:
        return None
    limit = line_limit(before)
    start = after.line_starts[after.line(site.span.start) - 1]
    lines = after.text[start : after.text.find(b"\n", site.span.end)].decode("utf-8", "replace").splitlines()
    if not alone or (len(lines) == 1 and len(lines[0]) <= limit):
        return None
    written = _laid_out(site, indent_of(after, statement), unit_at(after, statement), limit)
    if written == node_text(after, statement).strip().removesuffix(";"):
        return None
    return Edit(Span(site.span.start, site.span.end), written.encode().replace(b"\n", line_end(after.text)))


def _laid_out(site: LaunchSite, indent: str, unit: str, limit: int) -> str:
    shape = [site.grid, site.block, *(one for one in (site.shared, site.stream) if one is not None)]
    head = f"{site.callee}<<<{', '.join(' '.join(part.split()) for part in shape)}>>>("
    arguments = [" ".join(argument.split()) for argument in site.arguments]
    whole = f"{head}{', '.join(arguments)})"
    room = limit - 1  # for the semicolon
    if len(indent) + len(whole) <= room:
        return whole
    aligned = " " * (len(indent) + len(head))
    if len(aligned) + max(map(len, arguments), default=0) < room and len(aligned) <= 2 * limit // 3:
        return head + f",\n{aligned}".join(_filled(arguments, room - len(aligned))) + ")"
    inner = indent + unit
    return f"{head}\n{inner}" + f",\n{inner}".join(_filled(arguments, room - len(inner))) + ")"


def _filled(arguments: list[str], width: int) -> list[str]:
    """Arguments on as few lines as they fit, without the commas between the lines."""
    lines: list[str] = []
    for argument in arguments:
        if lines and len(lines[-1]) + len(argument) + 3 <= width:
            lines[-1] += f", {argument}"
        else:
            lines.append(argument)
    return lines
