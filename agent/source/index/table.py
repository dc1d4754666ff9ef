"""The facts of many files, by name: what the lookups stand on."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Hashable
from typing import Any, TypeVar

from attrs import define, field

from agent.source.index.facts import Facts, Found
from agent.source.index.graph import Graph
from agent.source.index.packing import Summary, summary, unpack

T = TypeVar("T")

_OPENED = 64
"""Files whose facts are held unpacked."""
_REMEMBERED = 20_000
"""Answers to questions about the table as it is."""


@define(eq=False)
class Table:
    """Files by key: the path of a file, the URI of a text that has none. Only what the lookups ask of every file is
    held beside the packed facts."""

    graph: Graph = field(factory=Graph)
    _packed: dict[str, bytes] = field(factory=dict)
    _mentioning: defaultdict[str, set[str]] = field(factory=lambda: defaultdict(set))
    _sure: defaultdict[str, set[str]] = field(factory=lambda: defaultdict(set))
    _defining: defaultdict[str, set[str]] = field(factory=lambda: defaultdict(set))
    _usings: dict[str, tuple[str, ...]] = field(factory=dict)
    _opened: OrderedDict[str, Facts] = field(factory=OrderedDict)
    _remembered: dict[Hashable, Any] = field(factory=dict)

    def __len__(self) -> int:
        return len(self._packed)

    def __contains__(self, key: str) -> bool:
        return key in self._packed

    @property
    def names(self) -> Collection[str]:
        """Every name that some file defines or declares."""
        return self._defining.keys()

    def put(self, key: str, packed: bytes) -> None:
        """In place of what was known of this file. Raises ValueError for what is no packed facts."""
        if self._packed.get(key) == packed:
            return
        told = summary(packed)
        self._remove(key)
        self._packed[key] = packed
        for table, names in self._tables(told):
            for name in names:
                table[name].add(key)
        if told.usings:
            self._usings[key] = told.usings
        self.graph.put(key, told.includes)

    def drop(self, key: str) -> None:
        """The file is gone; nothing happens where it is not known."""
        self._remove(key)
        self.graph.drop(key)

    def _remove(self, key: str) -> None:
        packed = self._packed.pop(key, None)
        self._opened.pop(key, None)
        self._usings.pop(key, None)
        self._remembered.clear()
        told = summary(packed) if packed is not None else None
        for table, names in self._tables(told) if told else ():
            for name in names:
                table[name].discard(key)
                if not table[name]:
                    del table[name]

    def _tables(self, told: Summary) -> tuple[tuple[defaultdict[str, set[str]], frozenset[str]], ...]:
        return (self._mentioning, told.mentioned), (self._sure, told.sure), (self._defining, told.defined)

    def facts(self, key: str) -> Facts:
        """Nothing for a file that is not known."""
        found = self._opened.get(key)
        if found is None:
            packed = self._packed.get(key)
            found = self._opened[key] = unpack(packed) if packed is not None else Facts()
        self._opened.move_to_end(key)
        while len(self._opened) > _OPENED:
            self._opened.popitem(last=False)
        return found

    def mentioning(self, name: str) -> list[str]:
        """The files in which a name stands, in order."""
        return sorted(self._mentioning.get(name, ()))

    def is_sure(self, name: str, key: str) -> bool:
        """Whether a name stands in a file where it surely means something."""
        return key in self._sure.get(name, ())

    def used_in(self, key: str) -> frozenset[str]:
        """The using-directives and using-declarations that a file sees."""
        seen = self.graph.seen_from(key)
        return frozenset(one for other, told in self._usings.items() if other in seen for one in told)

    def defined(self, name: str) -> tuple[Found, ...]:
        """What is defined or declared under a name, by file."""
        return self.once(("defined", name), lambda: tuple(self._defined(name)))

    def _defined(self, name: str) -> list[Found]:
        keys = sorted(self._defining.get(name, ()))
        return [Found(key, one) for key in keys for one in self.facts(key).definitions if one.name == name]

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """An answer that holds until some file changes."""
        if question not in self._remembered:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[question] = answer()
        found: T = self._remembered[question]
        return found
