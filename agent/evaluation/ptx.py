"""What a kernel's PTX gives away: instructions that escape the clock or the cache, state that outlives a launch.

PTX is what is judged, not the source: inline assembly, macros and pasted tokens all end up there.
"""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

_SUSPECT = {
    "reads a clock": re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?)\b"),
    "asks which multiprocessor or warp slot it runs on": re.compile(r"%(?:smid|nsmid|warpid|nwarpid|gridid)\b"),
    "reads performance or environment registers": re.compile(r"%(?:pm\d+(?:_64)?|envreg\d+)\b"),
    "gives cache-policy or persisting hints": re.compile(
        r"\b(?:createpolicy|applypriority|discard)\.|\.(?:L1|L2)::(?:evict_\w+|cache_hint|no_allocate)|\.level::"
    ),
    "stops the program": re.compile(r"^\s*(?:@!?%\w+\s+)?(?:trap|brkpt)\s*;", re.MULTILINE),
    "sleeps": re.compile(r"\bnanosleep\."),
}
"""Each is allowed only to a rewrite of an original that does it too."""

_EXTERNAL = re.compile(r"\.extern\s+\.func\s*(?:\([^)]*\)\s*)?([\w$]+)")
_GLOBAL = re.compile(
    r"^\s*(?:\.(?:visible|weak|extern|common)\s+)*\.global\s[^;{]*?([\w$]+)\s*(?:\[[^\]]*\])*\s*[;=]", re.MULTILINE
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"^\s*(?:\.\w+\s+)*\.(?:entry|func)\b", re.MULTILINE)
_NAME = re.compile(r"%?[\w$]+")
_STORES = ("st", "red", "atom", "atomg", "cp")


@frozen
class Traits:
    """``features``: suspect behaviour in words. ``externals``: functions called that are not in the module
    (``vprintf``, ``malloc``, ``cudaLaunchDevice``). ``mutable``: module variables in global memory that may be
    written."""

    features: frozenset[str]
    externals: frozenset[str]
    mutable: frozenset[str]


def traits(ptx: str) -> Traits:
    """Read them off. A variable counts as mutable when its address may reach a store, an atomic or a call."""
    text = _COMMENT.sub("", ptx)
    features = frozenset(words for words, pattern in _SUSPECT.items() if pattern.search(text))
    externals = frozenset(_EXTERNAL.findall(text))
    names = frozenset(_GLOBAL.findall(text))
    return Traits(features, externals, _written(text, names))


def _written(text: str, names: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for body in _FUNCTION.split(text)[1:] if names else []:
        found |= _written_in(body, names)
    return frozenset(found)


def _written_in(body: str, names: frozenset[str]) -> set[str]:
    """Follow addresses through the registers of one function until nothing new is reached (flow-insensitive)."""
    pieces = body.replace("{", ";").replace("}", ";").split(";")
    statements = [tokens for piece in pieces if (tokens := _tokens(piece)) is not None]
    held: dict[str, set[str]] = {name: {name} for name in names}
    written: set[str] = set()
    while True:
        before = (sum(map(len, held.values())), len(written))
        for opcode, operands in statements:
            reached = _reached(operands, held)
            if not reached:
                continue
            if opcode in _STORES or opcode == "call":
                written |= reached
            elif opcode != "ld" and operands:
                held.setdefault(operands[0], set()).update(_reached(operands[1:], held))
        if (sum(map(len, held.values())), len(written)) == before:
            return written


def _tokens(statement: str) -> tuple[str, tuple[str, ...]] | None:
    """``@%p1 st.global.f32 [%rd1+4], %f1`` -> ``("st", ("%rd1", "4", "%f1"))``."""
    text = re.sub(r"^\s*(?:[\w$]+:\s*)*(?:@!?%\w+\s+)?", "", statement).strip()
    if not text or text.startswith((".", ")")):
        return None
    opcode, _, rest = text.partition(" ")
    return opcode.split(".")[0], tuple(_NAME.findall(rest))


def _reached(operands: Iterable[str], held: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for operand in operands:
        found |= held.get(operand, set())
    return found
