"""Device slices: the smallest translation unit that NVRTC compiles for some kernels of a file."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

from agent.source.document import Document
from agent.source.errors import SliceError, UnknownKernel
from agent.source.includes import kept_header, local_header
from agent.source.instances import name_expression
from agent.source.items import Block, Conditional, Entry, Include, Item, entries, symbol_names, used_namespace
from agent.source.kernel import Kernel
from agent.source.names import names_in
from agent.source.stripping import device_text
from agent.source.substitutes import prologue
from agent.source.writing import Writer

_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_DEPTH = 32


@frozen
class Slice:
    """``text`` compiles alone. ``names`` are NVRTC's name expressions for the kernels asked for, in that order.

    ``headers`` are (name, text) pairs that ``text`` includes and no folder holds. ``symbols`` are the
    ``__constant__``, ``__device__`` and ``__managed__`` variables in it, qualified. ``dropped`` says which local
    headers could not be read and why. ``relaxed`` names ``constexpr`` functions that got a ``__device__``: nvcc
    evaluates these at compile time only, NVRTC does not take them at all.
    """

    text: str
    names: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    symbols: tuple[str, ...]
    path: str
    dropped: tuple[str, ...] = ()
    relaxed: tuple[str, ...] = ()


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


def device_slice(document: Document, names: Sequence[str], folders: Sequence[str] = ()) -> Slice:
    """The slice for kernels given by name (``softmax``, ``ns::scan<float, 256>``). ``folders`` are include folders.

    Raises UnknownKernel, and SliceError for a kernel that the parser lost or a template without known arguments.
    """
    dropped: list[str] = []
    unit = _load(document, folders, dropped, {str(Path(document.path).resolve())}, 0)
    items = list(_items(unit, unit.entries, frozenset()))
    expressions = tuple(_expression(unit, name, items) for name in names)
    roots = frozenset().union(*(names_in(name.encode()) for name in expressions))
    chosen = _closure(items, roots)
    words = roots.union(*(item.takes for item in chosen))
    writer = Writer()
    output = _Output(writer, {id(item) for item in chosen}, words)
    output.write(unit, unit.entries, ())
    body = writer.text()
    given = frozenset().union(*(item.gives for item in chosen))
    includes = frozenset(
        include.name for part in _units(unit) for include in _includes(part.entries) if not include.quoted
    )
    unknown = frozenset(["an unknown header"] if dropped else [])
    return Slice(
        text=prologue(words, frozenset(_STD.findall(body)), given, includes | unknown) + body,
        names=expressions,
        headers=(),
        symbols=tuple(dict.fromkeys(output.symbols)),
        path=document.path,
        dropped=tuple(dropped),
        relaxed=tuple(dict.fromkeys(output.relaxed)),
    )


def _load(document: Document, folders: Sequence[str], dropped: list[str], seen: set[str], depth: int) -> _Unit:
    unit = _Unit(document, entries(document))
    for include in _includes(unit.entries):
        if kept_header(include, frozenset()) is not None or not (include.quoted or folders):
            continue
        header = local_header(include, document, folders)
        if isinstance(header, str):
            if include.quoted:
                line = document.line(include.span.start)
                dropped.append(f'{document.path or "text"}:{line}: #include "{include.name}": {header}')
            continue
        place = str(Path(header.path).resolve())
        if place not in seen and depth < _DEPTH:
            seen.add(place)
            unit.headers[include.span.start] = _load(header, folders, dropped, seen, depth + 1)
    return unit


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


def _items(unit: _Unit, entries: Sequence[Entry], conditions: frozenset[str]) -> Iterator[tuple[Item, frozenset[str]]]:
    """Every item with the names that the ``#if`` lines around it read."""
    for entry in entries:
        if isinstance(entry, Item):
            yield entry, conditions
        elif isinstance(entry, Block):
            yield from _items(unit, entry.children, conditions)
        elif isinstance(entry, Conditional):
            for _, inside in entry.branches:
                yield from _items(unit, inside, conditions | entry.takes)
        elif (header := unit.headers.get(entry.span.start)) is not None:
            yield from _items(header, header.entries, conditions)


def _expression(unit: _Unit, name: str, items: Sequence[tuple[Item, frozenset[str]]]) -> str:
    base, bracket, arguments = name.partition("<")
    kernel, home = _find(unit, base)
    given = frozenset().union(*(item.gives for item, _ in items))
    if kernel.damage is not None and not kernel.parameters and kernel.name not in given:
        raise SliceError(f"{kernel.qualified_name} cannot be compiled alone: {kernel.damage}")
    if bracket:
        return f"{kernel.qualified_name}<{arguments}"
    return name_expression(unit.document, home, kernel, given)


def _find(unit: _Unit, name: str) -> tuple[Kernel, Document]:
    try:
        return unit.document.kernel(name), unit.document
    except UnknownKernel:
        for document in unit.documents():
            for kernel in document.kernels:
                if "".join(name.split()) in (kernel.qualified_name, kernel.name):
                    return kernel, document
        raise


def _closure(items: Sequence[tuple[Item, frozenset[str]]], roots: frozenset[str]) -> list[Item]:
    """The device items that ``roots`` need, directly or through others."""
    by_name: dict[str, list[int]] = {}
    for place, (item, _) in enumerate(items):
        if item.device and item.kind not in ("operator", "using"):
            for name in item.gives:
                by_name.setdefault(name, []).append(place)
    operators = [place for place, (item, _) in enumerate(items) if item.kind == "operator" and item.device]
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
                    waiting += items[place][0].takes | items[place][1]
        # no use spells an operator's name: one is taken when a type of its operands is in the slice
        for place in operators:
            item, conditions = items[place]
            if place not in chosen and (item.operands & needed):
                chosen.add(place)
                waiting += item.takes | conditions
    always = {
        place
        for place, (item, _) in enumerate(items)
        if item.kind == "pragma" or (item.kind == "using" and item.device)
    }
    return [items[place][0] for place in sorted(chosen | always)]


class _Output:
    """Writes the chosen items in the order of their files, on the lines that they have there."""

    def __init__(self, writer: Writer, chosen: set[int], words: frozenset[str]) -> None:
        self.writer = writer
        self.chosen = chosen
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
        code, relaxed = device_text(item)
        self.relaxed += relaxed
        self.symbols += ("::".join((*scope, name)) for name in symbol_names(item))
        namespace = used_namespace(item)
        if namespace:
            # the directive is kept, what it names may be empty here
            code = f"namespace {namespace} {{}} ".encode() + code
        self.writer.put(item.document, item.span, code)

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
