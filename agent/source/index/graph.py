"""Which file sees which: by the ``#include`` lines, without a compiler's include folders.

A name such as ``common/util.cuh`` means the file there beside the includer; where there is none, the file whose path
ends so, and of several the one that shares the most folders with the includer.
"""

import os
import posixpath
from collections.abc import Callable, Iterable

from attrs import define, field

_REMEMBERED = 4096


@define(eq=False)
class Graph:
    _includes: dict[str, tuple[str, ...]] = field(factory=dict)
    _named: dict[str, set[str]] = field(factory=dict)
    _seen: dict[str, frozenset[str]] = field(factory=dict)
    _includers: dict[str, set[str]] | None = None

    def put(self, key: str, includes: tuple[str, ...]) -> None:
        if self._includes.get(key) != includes:
            self._includes[key] = includes
            self._named.setdefault(_last(key), set()).add(key)
            self._forget()

    def drop(self, key: str) -> None:
        if self._includes.pop(key, None) is not None:
            self._named[_last(key)].discard(key)
            self._forget()

    def seen_from(self, key: str) -> frozenset[str]:
        """The file and all that it includes, and what that includes."""
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            found = self._seen[key] = _reached(key, self._included)
        return found

    def seen_around(self, key: str) -> frozenset[str]:
        """What is seen from the files that include this one: a part of a file that was put into one of its own."""
        if self._includers is None:
            self._includers = {}
            for one in self._includes:
                for other in self._included(one):
                    self._includers.setdefault(other, set()).add(one)
        above = self._includers
        if not above.get(key):
            return self.seen_from(key)
        around = _reached(key, lambda one: above.get(one, ()))
        return frozenset().union(*(self.seen_from(one) for one in around))

    def _forget(self) -> None:
        self._seen.clear()
        self._includers = None

    def _included(self, key: str) -> list[str]:
        found = (self._meant(name, key) for name in self._includes.get(key, ()))
        return [one for one in found if one is not None]

    def _meant(self, name: str, includer: str) -> str | None:
        place = name.replace("\\", "/").replace("/", os.sep)
        beside = os.path.normpath(os.path.join(os.path.dirname(includer), place))  # noqa: PTH118, PTH120
        if beside in self._includes:
            return beside
        ending = os.sep + place.lstrip("." + os.sep)
        ends = [key for key in self._named.get(_last(place), ()) if key.endswith(ending) and key != includer]
        return min(ends, key=lambda key: (-nearness(key, includer), key), default=None)


def nearness(one: str, other: str) -> int:
    """How many folders two files share, from the top."""
    return os.path.commonprefix([one, other]).count(os.sep)  # noqa: RUF071 (whole folders are counted)


def nearest(keys: Iterable[str], to: str) -> list[str]:
    """Those of the files that share the most folders with one."""
    ranked = [(nearness(key, to), key) for key in keys]
    most = max((rank for rank, _ in ranked), default=0)
    return [key for rank, key in ranked if rank == most]


def _last(key: str) -> str:
    return posixpath.basename(key.replace(os.sep, "/"))


def _reached(start: str, further: Callable[[str], Iterable[str]]) -> frozenset[str]:
    reached = {start}
    waiting = [start]
    while waiting:
        new = [key for key in further(waiting.pop()) if key not in reached]
        reached.update(new)
        waiting += new
    return frozenset(reached)
