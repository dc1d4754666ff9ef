"""A model's ideas: the form that is asked for, and what is made of the answer."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent.ideas.idea import Expectation, Idea, Scope
from agent.ideas.request import Request
from agent.models.model import Schema
from agent.models.reading import json_object
from agent.models.words import one_line

SOURCE = "model"
MOST = 8
EXAMPLE = "what to change, in one line"
"""What stands for a title in the question: small models give it back."""

_TITLE, _WHY, _RISK = 100, 500, 300


def schema(request: Request, most: int) -> Schema:
    """Short strings and few items, so that a small model comes to an end."""
    text = {"type": "string"}
    counters = [name for name, _ in request.counters] or ["time"]
    scopes = [scope.value for scope in Scope if request.scope.allows(scope)]
    idea = {
        "type": "object",
        "properties": {
            "title": {**text, "maxLength": _TITLE},
            "why": {**text, "maxLength": _WHY},
            "counter": {**text, "enum": counters},
            "factor": {"type": "number", "minimum": 0, "maximum": 2},
            "risk": {**text, "maxLength": _RISK},
            "scope": {**text, "enum": scopes},
        },
        "required": ["title", "why", "counter", "factor", "risk", "scope"],
        "additionalProperties": False,
    }
    ideas = {"type": "array", "items": idea, "maxItems": most}
    shape = {"type": "object", "properties": {"ideas": ideas}, "required": ["ideas"], "additionalProperties": False}
    return Schema("ideas", shape)


class NoIdeas(Exception):
    """The answer holds no idea; the message says what was wrong with it."""


def read_ideas(text: str, request: Request, most: int) -> tuple[tuple[Idea, ...], tuple[tuple[str, str], ...]]:
    """The ideas of an answer, at most ``most``, and (title, reason) of those that are dropped. What is missing or
    makes no sense beside a title is left out; only an idea without a title is none. Raises NoIdeas."""
    told = _entries(text)
    ideas: list[Idea] = []
    dropped: list[tuple[str, str]] = []
    known = {_same(title): f"tried before: {end}" for title, end in request.tried}
    if request.adviser is not None:
        known |= {_same(title): f"you rejected it: {reason}" for title, reason in request.adviser.rejected}
    for entry in told:
        idea = _idea(entry, request)
        if idea is None:
            continue
        if reason := known.get(_same(idea.title)):
            dropped.append((idea.title, reason))
        elif not request.scope.allows(idea.scope):
            dropped.append((idea.title, f"needs the scope {idea.scope.value}; allowed is {request.scope.value}"))
        elif len(ideas) == most:
            dropped.append((idea.title, f"only {most} ideas are taken at once"))
        else:
            known[_same(idea.title)] = "the same idea twice"
            ideas.append(idea)
    if not ideas and not dropped:
        raise NoIdeas("none of its entries has a title" if told else "its list of ideas is empty")
    return tuple(ideas), tuple(dropped)


def _entries(text: str) -> list[Any]:
    found = json_object(text)
    if found is None:
        raise NoIdeas("it holds no JSON object")
    told = found.get("ideas", [found] if "title" in found else None)
    if isinstance(told, Mapping):
        told = list(told.values())
    if not isinstance(told, list):
        raise NoIdeas("its JSON has no list `ideas`")
    return told[:64]


def _idea(entry: Any, request: Request) -> Idea | None:
    if isinstance(entry, str):
        entry = {"title": entry}
    if not isinstance(entry, Mapping):
        return None
    title = _text(entry, "title", _TITLE)
    if not re.search(r"[A-Za-z]{3}", title) or _same(title).startswith(_same(EXAMPLE)):
        return None
    return Idea(
        name=f"{SOURCE}-{_slug(title)}",
        title=title,
        why=_text(entry, "why", _WHY) or "the model gives no reason",
        expects=tuple(_expectations(entry, request)),
        risk=_text(entry, "risk", _RISK),
        scope=_scope(entry, request),
        source=SOURCE,
        line=request.kernel.line,
    )


def _text(entry: Mapping[str, Any], key: str, most: int) -> str:
    value = entry.get(key)
    return one_line(value, most) if isinstance(value, str) else ""


def _scope(entry: Mapping[str, Any], request: Request) -> Scope:
    """What the idea says that it needs; where it says nothing, all that is allowed."""
    try:
        return Scope(entry.get("scope"))
    except ValueError:
        return request.scope


def _expectations(entry: Mapping[str, Any], request: Request) -> Iterator[Expectation]:
    """A counter that is counted and a factor that would be a gain; any other claim is dropped."""
    wanted, factor = entry.get("counter"), entry.get("factor")
    counter = next((name for name, _ in request.counters if _same(name) == _same(str(wanted))), None)
    if counter is not None and isinstance(factor, int | float) and not isinstance(factor, bool) and 0 <= factor < 1:
        yield Expectation(counter, float(factor), f"{counter} -{round(100 * (1 - factor))} %, as the model guesses")


def _slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower())[:5])[:40]


def _same(title: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", title.lower()))
