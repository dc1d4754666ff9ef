"""What leaves this machine when a language model is asked, in words for the user to agree to."""

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from agent.ideas.model.told import device_code
from agent.models.budget import Budget
from agent.models.keys import Key, host_of, is_loopback, is_open
from agent.source.document import Document
from agent.source.kernel import Kernel


@frozen
class Asking:
    """Who would be asked, and with what in hand."""

    name: str
    endpoint: str
    key: Key
    budget: Budget


def disclosure(asking: Asking, document: Document, kernel: Kernel) -> list[str]:
    """What would be sent and to whom, a line each. Raises SourceError where the kernel has no slice to send."""
    return list(_disclosure(asking, document, kernel))


def _disclosure(asking: Asking, document: Document, kernel: Kernel) -> Iterator[str]:
    lines = device_code(document, kernel).count("\n") + 1
    yield f"{asking.name} at {asking.endpoint} would be asked for ideas and code: {_where(asking.endpoint)}."
    yield "It would be sent, several times:"
    yield f"- the device code of {kernel.name}: {lines} lines of {Path(document.path).name}, with the comments in them"
    yield "- what it is run on: names, types and sizes of its arguments, and its launches"
    yield "- what was counted and estimated, what was tried and why it failed, compiler messages without folders"
    yield "- ideas that you typed or rejected"
    yield f"Not sent: host code, headers, other files, folders. {_key(asking.key)}."
    yield f"Caps for this search: {_caps(asking.budget)}."


def _where(endpoint: str) -> str:
    if is_loopback(endpoint):
        return "a server on this machine (what it passes on is up to it)"
    if is_open(endpoint):
        return f"{host_of(endpoint)}, over a connection that is NOT encrypted and that others can read"
    return f"{host_of(endpoint)}, outside this machine"


def _key(key: Key) -> str:
    return f"Your key from {key.origin} goes to this endpoint alone" if key.value else "No key is sent"


def _caps(budget: Budget) -> str:
    caps = budget.caps
    parts = [f"{caps.tokens:,} tokens"] if caps.tokens is not None else []
    parts += [f"{caps.requests} requests"] if caps.requests is not None else []
    if budget.price is None:
        parts.append("no cap on money, as the price is not known")
    elif caps.dollars is not None:
        parts.append(f"${caps.dollars:g}")
    elif caps.tokens is not None:
        most = caps.tokens * max(budget.price.sent, budget.price.received) / 1e6
        parts.append(f"at most ${most:.2f} at the stated price")
    return ", ".join(parts) or "none"
