"""What a kernel's PTX gives away: instructions that escape the clock or the cache, state that outlives a launch.

PTX is what is judged, not the source: inline assembly, macros and pasted tokens all end up there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

_SUSPECT = {
    "reads a clock": re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?)\b"),
    "asks which multiprocessor or warp slot it runs on": re.compile(r"%(?:smid|nsmid|warpid|nwarpid|gridid)\b"),
    "reads performance or environment registers": re.compile(r"%(?:pm\d+(?:_64)?|envreg\d+|current_graph_exec)\b"),
    "gives cache-policy or persisting hints": re.compile(
        r"\b(?:createpolicy|applypriority|discard)\.|\.(?:L1|L2)::(?:evict_\w+|cache_hint|no_allocate)|\.level::"
    ),
    "stops the program": re.compile(r"^\s*(?:@!?%\w+\s+)?(?:trap|brkpt)\s*;", re.MULTILINE),
    "sleeps": re.compile(r"\bnanosleep\."),
}
"""Each is allowed only to a rewrite of an original that does it too."""

_EXTERNAL = re.compile(r"\.extern\s+\.func\s*(?:\([^)]*\)\s*)?([\w$]+)")
_DECLARED = re.compile(r"(?<![\w.])(?<!\.ptr\s)\.(global|const)\s([^;]*)")
_WORDS = re.compile(r"\.align\s+\d+|\.attribute\s*\([^)]*\)|\.\w+")
_PIECES = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRINGS = (r'"[^"\n]*"', r'"(?:\\.|[^"\\\n])*"')
"""As PTX has them (a backslash is a character), and as C has them: nothing hides behind which of the two it is."""

_FUNCTION = re.compile(r"^\s*(?:\.\w+\s+)*\.(?:entry|func)\b", re.MULTILINE)
_NAME = re.compile(r"%?[\w$]+")
_VECTOR = re.compile(r"\{([^{};]*)\}")
"""Of registers; what stands between the braces of a block has a semicolon."""

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
    texts = _readings(ptx)
    features = frozenset(words for words, pattern in _SUSPECT.items() if any(map(pattern.search, texts)))
    externals = frozenset(name for text in texts for name in _EXTERNAL.findall(text))
    return Traits(features, externals, frozenset[str]().union(*map(_mutable, texts)))


def _readings(ptx: str) -> tuple[str, ...]:
    """The text without comments. A string may hold what looks like one, as in ``.pragma "/*";``: then whoever reads
    strings as a comment's part, or a comment as part of a string, sees less than the assembler does."""
    plain = _PIECES.sub("", ptx)
    if not any(mark in ptx for mark in ('"', "\\")):
        return (plain,)
    apart = [
        re.sub(f"({string})|{_PIECES.pattern}", lambda found: '""' if found[1] else "", ptx, flags=re.DOTALL)
        for string in _STRINGS
    ]
    return tuple(dict.fromkeys((plain, *apart)))


def _mutable(text: str) -> frozenset[str]:
    names: set[str] = set()
    told: dict[str, str] = {}
    for space, body in _DECLARED.findall(text):
        for name, value in _declarators(body):
            names |= {name} if space == "global" else set()
            told[name] = value
    holds = {name: set(_NAME.findall(value)) & names for name, value in told.items()}
    return _written(text, frozenset(names), {name: found for name, found in holds.items() if found})


def _declarators(body: str) -> Iterator[tuple[str, str]]:
    """``.align 4 .b8 a[2] = {1, 2}, b`` -> ``("a", "{1, 2}")``, ``("b", "")``."""
    depth, piece = 0, ""
    for letter in f"{_WORDS.sub(' ', body)},":
        depth += (letter in "{([") - (letter in "})]")
        if letter != "," or depth > 0:
            piece += letter
            continue
        declared, _, value = piece.partition("=")
        name = _NAME.search(declared)
        piece = ""
        if name is not None:
            yield name[0], value


def _written(text: str, names: frozenset[str], holds: Mapping[str, set[str]]) -> frozenset[str]:
    """``holds``: variables that are initialised with addresses of others."""
    found: set[str] = set()
    for body in _FUNCTION.split(text)[1:] if names else []:
        found |= _written_in(body, names, holds) & names
    return frozenset(found)


def _written_in(body: str, names: frozenset[str], holds: Mapping[str, set[str]]) -> set[str]:
    """Follow addresses through the registers of one function until nothing new is reached (flow-insensitive). What is
    loaded is an address where the variable was initialised with one."""
    pieces = _VECTOR.sub(r"(\1)", body).replace("{", ";").replace("}", ";").split(";")
    statements = [tokens for piece in pieces if (tokens := _tokens(piece)) is not None]
    held: dict[str, set[str]] = {name: {name} for name in (*names, *holds)}
    written: set[str] = set()
    while True:
        before = (sum(map(len, held.values())), len(written))
        for opcode, operands, count in statements:
            reached = _reached(operands, held)
            if not reached:
                continue
            if opcode in _STORES or opcode == "call":
                written |= reached
            elif operands:
                came = _reached(operands[count:], held)
                if opcode.startswith("ld"):
                    came = set[str]().union(*(holds.get(name, set()) for name in came))
                for target in operands[:count]:
                    held.setdefault(target, set()).update(came)
        if (sum(map(len, held.values())), len(written)) == before:
            return written


def _tokens(statement: str) -> tuple[str, tuple[str, ...], int] | None:
    """``@%p1 st.global.f32 [%rd1+4], %f1`` -> ``("st", ("%rd1", "4", "%f1"), 1)``; the number is that of what the
    first operand names: two of ``mov.b64 (%r1, %r2), %rd1``."""
    text = re.sub(r"^\s*(?:[\w$]+:\s*)*(?:@!?%\w+\s+)?", "", statement).strip()
    if not text or text.startswith((".", ")")):
        return None
    opcode, _, rest = text.partition(" ")
    first = rest.lstrip().partition(")")[0] if rest.lstrip().startswith("(") else rest.partition(",")[0]
    return opcode.split(".")[0], tuple(_NAME.findall(rest)), max(1, len(_NAME.findall(first)))


def _reached(operands: Iterable[str], held: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for operand in operands:
        found |= held.get(operand, set())
    return found
