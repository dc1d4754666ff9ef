"""From a text to its facts."""

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from agent.source.document import Document, parse
from agent.source.index.definitions import definitions_of
from agent.source.index.facts import HOST, OUTSIDE, Definition, Facts, Mention
from agent.source.index.mentions import mentions_of
from agent.source.lexing import Directive, scan

_INCLUDE = re.compile(rb'#\s*include\s*(?:"([^"\n]+)"|<([^>\n]+)>)')
_USING = re.compile(rb"\busing\s+(namespace\s+)?((?:::\s*)?\w+(?:\s*::\s*\w+)*)\s*;")
_TELLING = re.compile(
    rb"__global__|__device__|__constant__|__managed__|<<<|<\s*<<|<<\s*<|KERNEL|GLOBAL|DEVICE|HD"
    rb"|\bcu(?:da)?(?:Launch|Func|Occupancy|Memcpy\w*Symbol|GetSymbol)"
)
"""What a text has somewhere that says more than what it includes: others are not parsed."""


def read_facts(text: bytes) -> Facts:
    """Of any bytes; offsets are those of ``text``."""
    if _TELLING.search(text):
        return facts_of(parse(text))
    return Facts(includes=tuple(_includes(scan(text).directives))) if b"include" in text else Facts()


def facts_of(document: Document) -> Facts:
    scanned = scan(document.text)
    definitions = definitions_of(document, scanned.code, scanned.directives)
    mentions, wrappers = mentions_of(document, scanned.code, definitions)
    launching = [evolve(one, launches=at in wrappers) for at, one in enumerate(definitions)]
    found = _without_idle(launching, mentions, tuple(_includes(scanned.directives)))
    return evolve(found, usings=tuple(dict.fromkeys(_usings(scanned.code))))


def _usings(code: bytes) -> Iterator[str]:
    for match in _USING.finditer(code):
        name = re.sub(rb"\s+", b"", match.group(2)).decode("utf-8", "replace").removeprefix("::")
        yield f"{name}::" if match.group(1) else name


def _includes(directives: Iterable[Directive]) -> Iterator[str]:
    for directive in directives:
        named = _INCLUDE.match(directive.text)
        if named is not None:
            yield (named.group(1) or named.group(2)).decode("utf-8", "replace")


def _without_idle(definitions: Sequence[Definition], mentions: Sequence[Mention], includes: tuple[str, ...]) -> Facts:
    """Without functions of the host in which nothing stands that is known here."""
    busy = {mention.inside for mention in mentions}
    kept = [at for at, one in enumerate(definitions) if one.kind != HOST or at in busy or one.launches]
    place = {at: number for number, at in enumerate(kept)}
    moved = (
        Mention(one.name, one.qualifier, one.how, one.span, one.within, place.get(one.inside, OUTSIDE))
        for one in mentions
    )
    return Facts(tuple(definitions[at] for at in kept), tuple(moved), includes)
