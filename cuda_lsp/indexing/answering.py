"""Questions of a client, answered from the index as it is."""

from collections.abc import Iterator

from attrs import evolve

from agent.source.index.calls import Call, callables_at, callees, callers
from agent.source.index.facts import SYMBOL, Found
from agent.source.index.naming import named
from agent.source.index.resolving import declarations_of, meant_at, mentions_of
from cuda_lsp.indexing.messages import (
    DEFINITION,
    INCOMING,
    OUTGOING,
    PREPARE,
    REFERENCES,
    SYMBOLS,
    Answer,
    Item,
    Place,
    Question,
)
from cuda_lsp.indexing.workspace import Workspace

MOST_SYMBOLS = 200
MOST_PLACES = 5_000
_TIMES = 3
"""So many times a file that changed on disk meanwhile is read again for one question."""


def answer(workspace: Workspace, question: Question) -> Answer:
    workspace.take(question.texts, question.gone)
    for _ in range(_TIMES):
        items = tuple(_items(workspace, question))
        if not workspace.renewed(item.key for item in items):
            break
    return Answer(items)


def _items(workspace: Workspace, question: Question) -> Iterator[Item]:
    table, encoding = workspace.table, question.encoding
    if question.kind == SYMBOLS:
        yield from (_definition(workspace, one, encoding) for one in named(table, question.query, MOST_SYMBOLS))
    elif question.kind in (INCOMING, OUTGOING):
        yield from _calls(workspace, question)
    elif (offset := _offset(workspace, question)) is None:
        return
    elif question.kind == PREPARE:
        found = callables_at(table, question.key, offset)
        yield from (_definition(workspace, one, encoding) for one in found)
    elif question.kind == DEFINITION:
        yield from (_definition(workspace, one, encoding) for one in meant_at(table, question.key, offset))
    elif question.kind == REFERENCES:
        yield from _references(workspace, question, offset)


def _offset(workspace: Workspace, question: Question) -> int | None:
    if question.key not in workspace.table:
        return None
    return workspace.rows(question.key).offset_of(question.line, question.character, question.encoding)


BY_NAME = "(by its name alone: other scopes have one too)"
"""Behind the head of a function in a call hierarchy."""


def _references(workspace: Workspace, question: Question, offset: int) -> Iterator[Item]:
    targets = meant_at(workspace.table, question.key, offset)
    if question.declarations:
        for one in declarations_of(workspace.table, targets):
            yield _definition(workspace, one, question.encoding)
    for count, (key, mention) in enumerate(mentions_of(workspace.table, targets)):
        if count >= MOST_PLACES:
            return
        yield Item(key, workspace.uri(key), workspace.rows(key).range_of(mention.span, question.encoding))


def _calls(workspace: Workspace, question: Question) -> Iterator[Item]:
    asked = question.place and _again(workspace, question.place)
    if not asked:
        return
    incoming = question.kind == INCOMING
    for call in callers(workspace.table, asked) if incoming else callees(workspace.table, asked):
        yield _call(workspace, call, call.other.key if incoming else asked.key, question.encoding)


def _again(workspace: Workspace, place: Place) -> Found | None:
    """The definition that was shown, where it is now."""
    there = [one for one in workspace.table.facts(place.key).definitions
             if one.name == place.name and one.kind == place.kind and one.whole]  # fmt: skip
    if not there:
        return None
    rows = workspace.rows(place.key)
    return Found(place.key, min(there, key=lambda one: abs(rows.line_of(one.span.start) - place.line)))


def _definition(workspace: Workspace, found: Found, encoding: str) -> Item:
    one, rows = found.definition, workspace.rows(found.key)
    return Item(
        found.key,
        workspace.uri(found.key),
        rows.range_of(one.span, encoding),
        one.name,
        one.kind,
        one.qualified,
        one.head,
        rows.range_of(one.extent, encoding),
        one.kind == SYMBOL,
    )


def _call(workspace: Workspace, call: Call, caller: str, encoding: str) -> Item:
    rows = workspace.rows(caller)
    shown = _definition(workspace, call.other, encoding)
    ranges = tuple(rows.range_of(span, encoding) for span in call.spans)
    return evolve(shown, ranges=ranges, head=shown.head if call.sure else f"{shown.head} {BY_NAME}")
