"""What the kernels of a file share: integer constants, functions that take references, arrays and names that no
kernel can change.

Read off one item of the file at a time and remembered by the item's text, so that a keystroke inside one function
reads that function anew and nothing else.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TypeVar

from attrs import field, frozen
from tree_sitter import Node

from agent.analysis.constants import constant_arrays, definitions, folded, steady_scalars
from agent.analysis.formulas import Formula, formula_of
from agent.analysis.layouts import Layout, Written, another_name, layouts, of_item
from agent.analysis.symbols import cast_of, reference_takers, takes_address
from agent.analysis.syntax import text
from agent.source.document import Document
from agent.source.incremental import Fresh
from agent.source.parsing import changed_range
from agent.workload.dtypes import from_c_type, is_scalar

CONTAINERS = frozenset(
    (
        *("translation_unit", "namespace_definition", "declaration_list", "linkage_specification"),
        *("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"),
        *("template_declaration", "ERROR"),
    )
)
_T = TypeVar("_T")
_WORDS = re.compile(r"\b[A-Za-z_]\w*")


@frozen(eq=False)
class FileFacts:
    """``constants``: integers with a name. ``takers``: functions and macros that may change an argument. ``arrays``:
    those that no kernel changes. ``fixed``: scalar names that have one value for all threads (constants that are not
    integers included). ``functions``: functions and macros with parameters that the file defines or declares;
    ``formulas`` those of them that are one expression. ``structs``: how those lie in memory that are plain.
    ``casts``: the macros that take another type at an address, and that type. ``items``: where all that comes from."""

    constants: Mapping[str, int]
    takers: frozenset[str]
    arrays: frozenset[str]
    fixed: frozenset[str]
    functions: frozenset[str] = frozenset()
    formulas: Mapping[str, Formula] = field(factory=dict)
    structs: Mapping[str, Layout] = field(factory=dict)
    casts: Mapping[str, str] = field(factory=dict)
    items: Sequence["_Item"] = field(factory=list, repr=False)


@frozen
class _Item:
    """What one item of a file gives. ``macros`` and ``variables`` are (name, value as written)."""

    macros: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    takers: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    formulas: tuple[tuple[str, Formula], ...] = ()
    structs: tuple[tuple[str, Written], ...] = ()
    casts: tuple[tuple[str, str], ...] = ()


_Kind = tuple[int, bool, int]


@frozen(eq=False)
class _Level:
    """The items of a container: where each begins and ends, how it was read, and what it says (``found``). ``inner``
    is what was found in those that are containers themselves, by their index, as far as that is known. ``broken``:
    there are parse errors."""

    starts: list[int]
    ends: list[int]
    kinds: list[_Kind]
    found: list[_Item]
    inner: dict[int, "_Level"]
    broken: bool

    @property
    def telling(self) -> list[_Item]:
        """What the items say, those left out that say nothing."""
        return [item for item in self.found if item is not _NOTHING]


@frozen(eq=False)
class _Reading:
    """What is known of a file. ``without`` are words that its text is known to lack."""

    document: Document
    level: _Level
    items: list[_Item]
    facts: FileFacts
    without: set[bytes]


_readings: deque[_Reading] = deque(maxlen=8)


def file_facts(document: Document) -> FileFacts:
    """What the file of a document says to all its kernels."""
    return _read_file(document).facts


def mentions(document: Document, word: bytes) -> bool:
    """Whether the text of a document has a word, in which there is no brace. What one state of it lacks, the next can
    have only where it was edited."""
    there = _read_file(document)
    if word in there.without:
        return False
    if word in document.text:
        return True
    there.without.add(word)
    return False


def _read_file(document: Document) -> _Reading:
    newest = list(_readings)[::-1]
    there = next((one for one in newest if one.document is document), None)
    if there is None:
        # what was read in haste may be wrong, and a careful reading does not rest on it
        same = [one for one in newest if one.document.path == document.path and not one.document.hasty]
        there = _edited(document, same) or _reading(document, same[0] if same else None)
        _readings.append(there)
    return there


def _edited(document: Document, known: Iterable[_Reading]) -> _Reading | None:
    """What is known of a file of which one part was read anew, from what was known before; else None."""
    fresh = document.fresh
    before = next((one for one in known if fresh is not None and one.document.is_state(fresh.since)), None)
    if fresh is None or before is None or (before.level.broken and not document.hasty):
        return None
    _readings.append(before)  # many states in haste may follow from this one
    level = _patched(before.level, fresh)
    part = document.text[fresh.start : fresh.end]
    return _settled(document, level, before, {word for word in before.without if word not in part})


def _patched(old: _Level, fresh: Fresh) -> _Level:
    """The items of a file of which one part was read anew: both ends of it are ends of items."""
    front, behind = bisect_right(old.ends, fresh.start), bisect_left(old.starts, fresh.old_end)
    root, by = fresh.tree.root_node, fresh.end - fresh.old_end
    part = _level(root, None, _Edit(fresh.start, fresh.start, fresh.end))
    inner = {at: level for at, level in old.inner.items() if at < front}
    return _Level(
        starts=[*old.starts[:front], *part.starts, *[start + by for start in old.starts[behind:]]],
        ends=[*old.ends[:front], *part.ends, *[end + by for end in old.ends[behind:]]],
        kinds=[*old.kinds[:front], *part.kinds, *old.kinds[behind:]],
        found=[*old.found[:front], *part.found, *old.found[behind:]],
        inner=inner | {at + front: level for at, level in part.inner.items()},
        broken=old.broken or root.has_error,
    )


def _reading(document: Document, before: _Reading | None) -> _Reading:
    old = before.document.blanked if before else b""
    edit = _Edit(*changed_range(old, document.blanked))
    return _settled(document, _level(document.tree.root_node, before.level if before else None, edit), before, set())


def _settled(document: Document, level: _Level, before: _Reading | None, without: set[bytes]) -> _Reading:
    items = level.telling
    facts = before.facts if before is not None and before.items == items else _facts(items)
    return _Reading(document, level, items, facts, without)


def alone(document: Document) -> FileFacts:
    """The same of a file that nobody edits: nothing of it is kept."""
    return _reading(document, None).facts


@lru_cache(maxsize=16)
def joined(*files: FileFacts) -> FileFacts:
    """What several files say together: what they say in two ways, none of them says."""
    return _facts([item for one in files for item in one.items])


def _facts(items: Sequence[_Item]) -> FileFacts:
    whole = _merged(items)
    constants = folded((*whole.macros, *whole.variables))
    return FileFacts(
        constants=constants,
        takers=whole.takers | {"swap"},
        arrays=whole.arrays,
        fixed=_plain(whole.macros) | whole.scalars,
        functions=whole.functions,
        formulas=_single(whole.formulas),
        structs=layouts(_types(whole), constants),
        casts=_once(whole.casts),
        items=items,
    )


def _types(whole: _Item) -> Mapping[str, Written]:
    """What names of types mean. One that stands for a number in each of several ways (``float`` or ``double``, as the
    build has it) is taken for a float: how many times too many sectors a stride touches hardly depends on it."""
    told = (*whole.structs, *((name, another_name(value)) for name, value in whole.macros if _dtype(value)))
    other = {name for name, members in told if not _stands_for_number(members)}
    numbers = {name: another_name("float") for name, _ in told if name not in other}
    return {**numbers, **_once(told)}


def _stands_for_number(members: Written) -> bool:
    dtype = _dtype(members[0][0]) if len(members) == 1 and not members[0][1] else None
    return dtype is not None and is_scalar(dtype)


@lru_cache(maxsize=4096)
def _dtype(kind: str) -> str | None:
    return from_c_type(kind)


def _once(pairs: Sequence[tuple[str, _T]]) -> Mapping[str, _T]:
    """Those that are defined in one way."""
    told = dict(pairs)
    double = {name for name, one in pairs if told[name] != one}
    return {name: one for name, one in told.items() if name not in double}


_seen: dict[tuple[bytes, tuple[int, bool, int]], _Item] = {}
MOST_ITEMS = 8_192
"""About a kilobyte each, and every key that is typed makes one."""
_NOTHING = _Item()


@frozen
class _Edit:
    """``start`` to ``old_end`` of the text before became ``start`` to ``end``."""

    start: int
    old_end: int
    end: int


def _level(container: Node, before: _Level | None, edit: _Edit) -> _Level:
    """What the items of a container give: those around the edit are read, of the others it is known."""
    nodes, broken = container.named_children, container.has_error
    new = _Level(
        [node.start_byte for node in nodes], [node.end_byte for node in nodes], [_kind(node) for node in nodes],
        [], {}, broken,
    )  # fmt: skip
    old = before or _Level([], [], [], [], {}, broken)
    front, tail = _kept(new, old, edit, broken or old.broken)
    back, behind = len(nodes) - tail, len(old.found) - tail
    # those behind the edit stand elsewhere now
    new.inner.update({at: level for at, level in old.inner.items() if at < front})
    alone = old.inner.get(front) if back - front == behind - front == 1 else None
    new.found.extend(old.found[:front])
    for at in range(front, back):
        item, level = _read_item(nodes[at], alone, edit)
        new.found.append(item)
        if level is not None:
            new.inner[at] = level
    new.found.extend(old.found[behind:])
    return new


def _kept(new: _Level, old: _Level, edit: _Edit, broken: bool) -> tuple[int, int]:
    """How many items at the front and at the end are those from before. A parser reads the same text in the same way
    once it is between two items again; only where it recovers from errors, each item has to be compared."""
    by, size, was = edit.end - edit.old_end, len(new.starts), len(old.starts)
    front = min(bisect_right(level.ends, edit.start) for level in (new, old))
    tail = min(size - bisect_left(new.starts, edit.end), was - bisect_left(old.starts, edit.old_end))
    tail = min(tail, min(size, was) - front)

    def same(at: int, other: int, by: int) -> bool:
        place = (old.starts[other] + by, old.ends[other] + by)
        return (new.starts[at], new.ends[at]) == place and new.kinds[at] == old.kinds[other]

    if broken or (front and not same(front - 1, front - 1, 0)):
        front = next((at for at in range(front) if not same(at, at, 0)), front)
    if broken or (tail and not same(size - tail, was - tail, by)):
        tail = next((at for at in range(tail) if not same(size - 1 - at, was - 1 - at, by)), tail)
    return front, tail


def _kind(node: Node) -> _Kind:
    """Tells apart how the same text was read: next to a parse error, it is read in more ways than one."""
    return node.grammar_id, node.has_error, node.descendant_count


def _read_item(node: Node, before: _Level | None, edit: _Edit) -> tuple[_Item, _Level | None]:
    """What one item gives, and its own items where it had to be opened."""
    if node.type == "comment":
        return _NOTHING, None
    source = node.text or b""
    key = (blake2b(source, digest_size=16).digest(), _kind(node))
    level, found = None, _seen.get(key)
    if found is None:
        if len(_seen) >= MOST_ITEMS:
            _seen.clear()
        level = _level(node, before, edit) if node.type in CONTAINERS else None
        read = _merged(level.telling) if level is not None else _read(node, source)
        found = _seen[key] = _NOTHING if read == _NOTHING else read
    return found, level


def _merged(items: Sequence[_Item]) -> _Item:
    if len(items) < 2:
        return items[0] if items else _NOTHING
    return _Item(
        macros=tuple(pair for item in items for pair in item.macros),
        variables=tuple(pair for item in items for pair in item.variables),
        takers=frozenset().union(*(item.takers for item in items)),
        arrays=frozenset().union(*(item.arrays for item in items)),
        scalars=frozenset().union(*(item.scalars for item in items)),
        functions=frozenset().union(*(item.functions for item in items)),
        formulas=tuple(pair for item in items for pair in item.formulas),
        structs=tuple(pair for item in items for pair in item.structs),
        casts=tuple(pair for item in items for pair in item.casts),
    )


def _read(node: Node, source: bytes) -> _Item:
    functions, formula = frozenset(_functions(node)), formula_of(node)
    formulas = () if formula is None else (formula,)
    if node.type == "preproc_function_def":
        casts = tuple((name, kind) for name in functions if (kind := cast_of(node)))
        takers = functions if takes_address(node) else frozenset()
        return _Item(takers=takers, functions=functions, formulas=formulas, casts=casts)
    if node.type == "function_definition":
        macros, _ = definitions(node) if b"define" in source else ((), ())
        declarator = node.child_by_field_name("declarator")
        takes = declarator is not None and b"&" in (declarator.text or b"")
        takers = reference_takers(node) - {"swap"} if takes else frozenset()
        return _Item(macros=macros, takers=takers, functions=functions, formulas=formulas)
    structs = tuple(of_item(node)) if b"struct" in source or b"typedef" in source else ()
    # most items hold none of these words, and a table of numbers is long to walk through
    takers = reference_takers(node) - {"swap"} if b"&" in source else frozenset()
    if not any(word in source for word in (b"#", b"const", b"enum")):
        return _Item(takers=takers, functions=functions, formulas=formulas, structs=structs)
    macros, variables = definitions(node)
    return _Item(macros, variables, takers, constant_arrays(node), steady_scalars(node), functions, formulas, structs)


def _functions(node: Node) -> Iterator[str]:
    """The names that an item defines or declares as functions."""
    if node.type == "preproc_function_def":
        yield text(node.child_by_field_name("name"))
        return
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is not None:
        yield text(declarator.child_by_field_name("declarator")).split("::")[-1]


@lru_cache(maxsize=8)
def _plain(macros: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Macros that stand for numbers and other such macros only, so that they mean the same for every thread. One that
    is defined twice must be so both times."""
    words: dict[str, list[str]] = {name: [] for name, _ in macros}
    for name, value in macros:
        words[name] += _WORDS.findall(re.sub(r"\b\d[\w.]*|\b(?:sizeof|float|double|int|unsigned|long)\b", "", value))
    plain = {name for name, used in words.items() if not used}
    grew = True
    while grew:
        new = {name for name, used in words.items() if name not in plain and plain.issuperset(used)}
        plain |= new
        grew = bool(new)
    return frozenset(plain)


@lru_cache(maxsize=8)
def _single(pairs: tuple[tuple[str, Formula], ...]) -> Mapping[str, Formula]:
    """Those that are defined in one way."""
    found: dict[str, set[Formula]] = {}
    for name, formula in pairs:
        found.setdefault(name, set()).add(formula)
    return {name: next(iter(formulas)) for name, formulas in found.items() if len(formulas) == 1}


def restricted(facts: FileFacts, names: Iterable[str]) -> FileFacts:
    """What is known of these names only, and of those that their formulas use: what a kernel that uses them can see."""
    wanted = set(names)
    formulas = {name: facts.formulas[name] for name in sorted(wanted & facts.formulas.keys())}
    for formula in formulas.values():
        wanted |= formula.expression.names
    return FileFacts(
        {name: facts.constants[name] for name in sorted(wanted & facts.constants.keys())},
        facts.takers & (wanted | {"swap"}),
        facts.arrays & wanted,
        facts.fixed & wanted,
        facts.functions & wanted,
        formulas,
        {name: facts.structs[name] for name in sorted(wanted & facts.structs.keys())},
        {name: facts.casts[name] for name in sorted(wanted & facts.casts.keys())},
    )
