"""Device slices: the smallest translation unit that NVRTC compiles for some kernels of a file."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from attrs import field, frozen

from agent.source.document import Document
from agent.source.errors import SliceError, SourceError, UnknownKernel
from agent.source.includes import is_missed, kept_header, known, local_header
from agent.source.instances import expressions
from agent.source.items import Block, Conditional, Entry, Found, Include, Item, entries, symbol_names, used_namespace
from agent.source.kernel import Kernel
from agent.source.mixed_math import with_promotion
from agent.source.names import KEYWORDS, names_in
from agent.source.nodes import kernel_node
from agent.source.pruning import key_of, said
from agent.source.stripping import device_text
from agent.source.substitutes import prologue
from agent.source.workspace import includers
from agent.source.writing import Writer

_STD = re.compile(r"(?<!::)(?<!:: )\bstd\s*::\s*(\w+)")
_THRUST = re.compile(r"\bthrust\s*::\s*(\w+)")
# a branch that is only there when one macro is defined
_NEEDS = re.compile(r"#\s*(?:ifdef\s+(\w+)|(?:el)?if\s+defined\s*\(?\s*(\w+)\s*\)?$|(?:el)?if\s+([A-Za-z_]\w*)$)")
_FRAGMENTS = (".cuh", ".h", ".hpp", ".inl", ".inc")
"""Endings of files that others include: what these include before them is not known."""
_DEPTH = 32
_INCLUDERS = 12


@frozen
class Slice:
    """``text`` compiles alone. ``names`` are NVRTC's name expressions for the kernels asked for, in that order.

    ``headers`` are (name, text) pairs that ``text`` includes and no folder holds. ``symbols`` are the
    ``__constant__`` and ``__device__`` variables in it, qualified. ``dropped`` says what was
    left out and why: headers that were not found, kernels inside an ``#ifdef`` of an undefined macro. ``relaxed``
    names ``constexpr`` functions that got a ``__device__``, which NVRTC wants and nvcc does not: those that constants
    need, and with ``--expt-relaxed-constexpr`` those that device code calls. ``context`` is the file that includes the
    kernels' own and as which it is read, ``path`` the kernels' own. ``assumed`` says what was put in for template
    arguments that nothing fixes. ``items`` are what it was made of, ``roots`` the names that were asked for.
    """

    text: str
    names: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    symbols: tuple[str, ...]
    path: str
    dropped: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()
    context: str = ""
    assumed: tuple[str, ...] = ()
    items: tuple[Found, ...] = field(default=(), repr=False, eq=False)
    roots: frozenset[str] = field(default=frozenset(), repr=False, eq=False)


@frozen(eq=False)
class _Unit:
    """A document's entries, and the local headers that its includes stand for, by the include's offset."""

    document: Document
    entries: tuple[Entry, ...]
    headers: "dict[int, _Unit]" = field(factory=dict)

    def documents(self) -> Iterator[Document]:
        yield self.document
        for header in self.headers.values():
            yield from header.documents()


@frozen(eq=False)
class Reading:
    """A document with all that it includes, and what it is made of; ``dropped`` are headers that were not found."""

    unit: _Unit
    found: tuple[Found, ...]
    dropped: tuple[str, ...]


def read_for(document: Document, names: Sequence[str], folders: Sequence[str] = (), alone: bool = False) -> Reading:
    """What a slice for these kernels is cut from."""
    dropped: list[str] = []
    unit, found = _read(document, names, folders, dropped, alone)
    return Reading(unit, tuple(found), tuple(dropped))


def device_slice(
    document: Document,
    names: Sequence[str],
    folders: Sequence[str] = (),
    relaxed_constexpr: bool = False,
    alone: bool = False,
    stand_ins: str = "",
    without: frozenset[str] = frozenset(),
    reading: "Reading | None" = None,
) -> Slice:
    """The slice for kernels given by name (``softmax``, ``ns::scan<float, 256>``). ``folders`` are include folders,
    ``relaxed_constexpr`` says that the user's nvcc gets ``--expt-relaxed-constexpr``.

    A file that others of its workspace include is read as one of them sees it, but for ``alone``. With ``stand_ins``
    (a type) something is put in for template arguments that nothing in sight fixes. Items whose keys (see
    :func:`agent.source.pruning.key_of`) are in ``without`` are left out. ``reading`` is what :func:`read_for` gave for
    the same document, names, folders and ``alone``, where it is asked for again and again.

    Raises UnknownKernel, and SliceError for a kernel that the parser lost or a template without known arguments.
    """
    reading = reading or read_for(document, names, folders, alone)
    unit, found, dropped = reading.unit, list(reading.found), list(reading.dropped)
    if without:
        dropped += [said(each.item) for each in found if key_of(each.item) in without]
        found = [each for each in found if key_of(each.item) not in without]
    named = tuple(_named(document, unit, name, found, stand_ins)[0] for name in names)
    expressions = tuple(expression for expression, _ in named)
    roots = frozenset().union(*(names_in(name.encode()) for name in expressions))
    # a macro by the name of a keyword changes all code behind it
    roots |= frozenset(name for each in found if each.item.kind == "macro" for name in each.item.gives & KEYWORDS)
    chosen = _closure(found, roots)
    if not relaxed_constexpr:
        chosen = _closure([each for each in found if not _called_on_device(each.item, chosen)], roots)
    fragment = Path(document.path).suffix in _FRAGMENTS and unit.document is document
    unknown = frozenset(["an unknown header"] if dropped or fragment else [])
    dropped += _undefined(found, [_bare(name) for name in expressions])
    words = roots.union(*(item.takes for item in chosen))
    writer = Writer()
    chosen_ids = {id(item) for item in chosen}
    output = _Output(writer, chosen, words, relaxed_constexpr)
    output.write(unit, unit.entries, ())
    body = writer.text()
    # a macro call may define every word of the macro's body, and seldom defines a type of the standard library's
    given = frozenset().union(*(item.gives for item in chosen if item.kind != "other"))
    includes = frozenset(
        include.name for part in _units(unit) for include in _includes(part.entries) if not include.quoted
    )
    kept = frozenset(output.included)
    members = frozenset(_STD.findall(body)), frozenset(_THRUST.findall(body))
    first = prologue(words, members[0], given, includes | unknown, kept, relaxed_constexpr, members[1])
    return Slice(
        text=first + body,
        names=expressions,
        headers=(),
        symbols=tuple(dict.fromkeys(output.symbols)),
        path=document.path,
        dropped=tuple(dropped),
        relaxed=tuple(dict.fromkeys(output.relaxed)),
        context=unit.document.path if unit.document is not document else "",
        assumed=tuple(text for _, assumed in named for text in assumed),
        items=tuple(each for each in found if id(each.item) in chosen_ids),
        roots=roots,
    )


def kernel_instances(
    document: Document, name: str, folders: Sequence[str] = (), alone: bool = False, stand_ins: str = ""
) -> tuple[str, ...]:
    """The names of every instance of a kernel that its file, or a file that includes it, launches or otherwise names
    (at most 16); the kernel's own name where it is no template. Raises as :func:`device_slice` does."""
    unit, found = _read(document, [name], folders, [], alone)
    return tuple(expression for expression, _ in _named(document, unit, name, found, stand_ins))


def _read(
    document: Document, names: Sequence[str], folders: Sequence[str], dropped: list[str], alone: bool
) -> "tuple[_Unit, list[Found]]":
    """The unit in which the kernels are read, and its items."""
    for context in () if alone else _contexts(document, names):
        missed: list[str] = []
        unit = _load(context, folders, missed, {str(Path(context.path).resolve())}, 0, document)
        if any(part is document for part in unit.documents()):
            dropped += missed
            return unit, list(_items(unit, unit.entries))
    unit = _load(document, folders, dropped, {str(Path(document.path).resolve())}, 0, document)
    return unit, list(_items(unit, unit.entries))


def _contexts(document: Document, names: Sequence[str]) -> Iterator[Document]:
    """The files that include this one: those first that name one of the kernels."""
    bare = [_bare(name).encode() for name in names]
    others = [found for place in includers(document.path)[:_INCLUDERS] if (found := known(place)) is not None]
    return iter(sorted(others, key=lambda other: not any(name in other.text for name in bare)))


def _load(
    document: Document, folders: Sequence[str], dropped: list[str], seen: set[str], depth: int, own: Document
) -> _Unit:
    """The document with all that it includes; ``own`` is in memory and not read again."""
    unit = _Unit(document, entries(document) if document is own else _known_entries(document))
    for include in _includes(unit.entries):
        if kept_header(include, frozenset()) is not None:
            continue
        header = local_header(include, document, folders)
        if isinstance(header, str):
            if include.quoted or is_missed(include):
                line = document.line(include.span.start)
                dropped.append(f"{document.path or 'text'}:{line}: {include.name}: {header}")
            continue
        place = str(Path(header.path).resolve())
        if place not in seen and depth < _DEPTH:
            seen.add(place)
            header = own if own.path and place == str(Path(own.path).resolve()) else header
            unit.headers[include.span.start] = _load(header, folders, dropped, seen, depth + 1, own)
    return unit


@lru_cache(maxsize=64)
def _known_entries(document: Document) -> tuple[Entry, ...]:
    """Those of a file that is not being edited, which is asked for again and again."""
    return entries(document)


def _units(unit: _Unit) -> Iterator[_Unit]:
    yield unit
    for header in unit.headers.values():
        yield from _units(header)


def _includes(entries: Sequence[Entry]) -> Iterator[Include]:
    for entry in entries:
        if isinstance(entry, Include):
            yield entry
        elif isinstance(entry, Block):
            yield from _includes(entry.children)
        elif isinstance(entry, Conditional):
            for _, inside in entry.branches:
                yield from _includes(inside)


def _items(
    unit: _Unit,
    entries: Sequence[Entry],
    conditions: frozenset[str] = frozenset(),
    branches: tuple[str, ...] = (),
    scope: tuple[str, ...] = (),
) -> Iterator[Found]:
    for entry in entries:
        if isinstance(entry, Item):
            yield Found(entry, conditions, branches, scope)
        elif isinstance(entry, Block):
            inner = (*scope, entry.name) if entry.name else scope
            yield from _items(unit, entry.children, conditions, branches, inner)
        elif isinstance(entry, Conditional):
            for span, inside in entry.branches:
                branch = " ".join(unit.document.slice_text(span).split())
                yield from _items(unit, inside, conditions | entry.takes, (*branches, branch), scope)
        elif (header := unit.headers.get(entry.span.start)) is not None:
            yield from _items(header, header.entries, conditions, branches, scope)


def _undefined(found: Sequence[Found], kernels: Sequence[str]) -> Iterator[str]:
    """Kernels that only a macro from the command line brings to life."""
    given = _given(found)
    for kernel in kernels:
        places = [each for each in found if kernel in each.item.gives and each.item.device]
        for branch in places[0].branches if len(places) == 1 else ():
            match = _NEEDS.match(branch)
            macro = next(filter(None, match.groups())) if match else ""
            if macro and macro not in given and not macro.startswith("__"):
                yield f"{kernel} is there only if {macro} is defined, which nothing here does: compile with -D{macro}"


def _given(found: Sequence[Found]) -> frozenset[str]:
    return frozenset().union(*(each.item.gives for each in found))


def _bare(expression: str) -> str:
    return re.split(r"[<(]", expression.rpartition("))")[2] or expression)[0].rpartition("::")[2]


def _named(
    document: Document, unit: _Unit, name: str, found: Sequence[Found], stand_ins: str
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """NVRTC's expressions for a kernel, one for each of its instances, with what is assumed in each."""
    base, bracket, arguments = name.partition("<")
    kernel, home = _find(document, unit, base)
    if kernel.damage is not None:
        try:
            kernel_node(home, kernel)
        except SourceError:
            raise SliceError(f"{kernel.qualified_name} cannot be compiled alone: {kernel.damage}") from None
    if bracket:
        return ((f"{kernel.qualified_name}<{arguments}", ()),)
    if kernel.template or sum(_defines(each.item, kernel.name) for each in found) < 2:
        return expressions(tuple(unit.documents()), kernel, _qualified(found, kernel), stand_ins)
    # an overload is named by a cast to its type
    types = ", ".join(parameter.type for parameter in kernel.parameters)
    return ((f"(void(*)({types})){kernel.qualified_name}", ()),)


def _qualified(found: Sequence[Found], kernel: Kernel) -> dict[str, str]:
    """Every name of the unit as it is found from file level: of several by one name that which the kernel sees."""
    home = tuple(kernel.qualified_name.split("::")[:-1])
    names: dict[str, tuple[str, ...]] = {}
    for each in found:
        scope = () if each.item.kind == "macro" else each.scope
        for name in each.item.gives:
            if name not in names or _seen(scope, home) > _seen(names[name], home):
                names[name] = scope
    return {name: "::".join((*scope, name)) for name, scope in names.items()}


def _seen(scope: tuple[str, ...], home: tuple[str, ...]) -> int:
    """How near a scope is to another inside which names of it are looked up; -1 for one that is not around it."""
    return len(scope) if home[: len(scope)] == scope else -1


def _defines(item: Item, name: str) -> bool:
    return (
        item.kind == "function"
        and item.device
        and name in item.gives
        and b"{" in item.document.blanked[item.span.start : item.span.end]
    )


def _find(own: Document, unit: _Unit, name: str) -> tuple[Kernel, Document]:
    try:
        return own.kernel(name), own
    except UnknownKernel:
        for document in unit.documents():
            for kernel in document.kernels:
                if "".join(name.split()) in (kernel.qualified_name, kernel.name):
                    return kernel, document
        raise


def _closure(found: Sequence[Found], roots: frozenset[str]) -> list[Item]:
    """The device items that ``roots`` need, directly or through others."""
    by_name: dict[str, list[int]] = {}
    for place, each in enumerate(found):
        if each.item.device and each.item.kind not in ("operator", "using"):
            for name in each.item.gives:
                by_name.setdefault(name, []).append(place)
    operators = [place for place, each in enumerate(found) if each.item.kind == "operator" and each.item.device]
    chosen: set[int] = set()
    needed: set[str] = set()
    waiting = list(roots)
    while waiting:
        while waiting:
            name = waiting.pop()
            if name in needed:
                continue
            needed.add(name)
            for place in by_name.get(name, ()):
                if place not in chosen:
                    chosen.add(place)
                    waiting += found[place].item.takes | found[place].conditions
        # no use spells an operator's name: one is taken when a type of its operands is in the slice
        for place in operators:
            if place not in chosen and found[place].item.operands & needed:
                chosen.add(place)
                waiting += found[place].item.takes | found[place].conditions
    always = {
        place
        for place, each in enumerate(found)
        if each.item.kind == "pragma" or (each.item.kind == "using" and each.item.device)
    }
    return [found[place].item for place in sorted(chosen | always)]


def _called_on_device(item: Item, chosen: Sequence[Item]) -> bool:
    """True for a ``constexpr`` function of the host that a device function calls: nvcc refuses the call.

    It may still be needed for a constant's value (``constexpr int N = next_power(100);``).
    """
    if not item.host_constexpr:
        return False
    return any(
        other.kind == "function" and not other.host_constexpr and item.gives & (other.free - other.gives)
        for other in chosen
    )


class _Output:
    """Writes the chosen items in the order of their files, on the lines that they have there."""

    def __init__(self, writer: Writer, own: Sequence[Item], words: frozenset[str], relaxed_constexpr: bool) -> None:
        self.relaxed_constexpr = relaxed_constexpr
        # a macro of that name is the user's own business
        self.promotes = "pow" in words and not any(item.kind == "macro" and "pow" in item.gives for item in own)
        self.writer = writer
        self.chosen = {id(item) for item in own}
        self.words = words
        self.symbols: list[str] = []
        self.relaxed: list[str] = []
        self.included: set[str] = set()

    def write(self, unit: _Unit, entries: Sequence[Entry], scope: tuple[str, ...]) -> None:
        for entry in entries:
            if isinstance(entry, Item):
                if id(entry) in self.chosen:
                    self._item(entry, scope)
            elif isinstance(entry, Include):
                self._include(unit, entry, scope)
            elif self._kept(unit, (entry,)):
                if isinstance(entry, Block):
                    self.writer.put(unit.document, entry.head)
                    self.write(unit, entry.children, (*scope, entry.name) if entry.name else scope)
                else:
                    for directive, inside in entry.branches:
                        self.writer.put(unit.document, directive)
                        self.write(unit, inside, scope)
                self.writer.put(unit.document, entry.foot)

    def _item(self, item: Item, scope: tuple[str, ...]) -> None:
        code, relaxed = device_text(item, self.relaxed_constexpr)
        self.relaxed += relaxed
        self.symbols += ("::".join((*scope, name)) for name in symbol_names(item))
        namespace = used_namespace(item)
        if namespace:
            # the directive is kept, what it names may be empty here
            code = f"namespace {namespace} {{}} ".encode() + code
        self.writer.put(item.document, item.span, with_promotion(code) if self.promotes else code)

    def _include(self, unit: _Unit, include: Include, scope: tuple[str, ...]) -> None:
        header = unit.headers.get(include.span.start)
        if header is not None:
            self.write(header, header.entries, scope)
            return
        for name in kept_header(include, self.words) or ():
            if name not in self.included:
                self.included.add(name)
                self.writer.put(unit.document, include.span, f"#include <{name}>".encode())

    def _kept(self, unit: _Unit, entries: Sequence[Entry]) -> bool:
        for entry in entries:
            if isinstance(entry, Item):
                kept = id(entry) in self.chosen
            elif isinstance(entry, Include):
                header = unit.headers.get(entry.span.start)
                kept = self._kept(header, header.entries) if header else bool(kept_header(entry, self.words))
            elif isinstance(entry, Block):
                kept = self._kept(unit, entry.children)
            else:
                kept = any(self._kept(unit, inside) for _, inside in entry.branches)
            if kept:
                return True
        return False
