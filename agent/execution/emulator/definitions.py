"""Which instructions may have given a register what it holds where an instruction reads it, in a kernel as laid out."""

from bisect import bisect_left, bisect_right

from attrs import define, field

from agent.execution.emulator.flow import Item
from agent.execution.emulator.uses import Key, registers

_STAYS = ("exit", "trap", "jump", "table")


@define(eq=False)
class Definitions:
    """Reaching definitions, found where they are asked for. ``starts`` are where straight stretches of code begin."""

    items: list[Item]
    starts: list[int] = field(init=False)
    _writers: list[dict[Key, list[int]]] = field(init=False)
    _before: list[list[int]] = field(init=False)
    _known: dict[tuple[int, Key], list[int]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        ends = [index for index, item in enumerate(self.items) if item.kind != "step"]
        targets = {target for item in self.items for target in item.targets}
        self.starts = sorted(at for at in {0, *targets, *(end + 1 for end in ends)} if at < len(self.items))
        self._writers = [{} for _ in self.starts]
        self._before = [[] for _ in self.starts]
        for index, item in enumerate(self.items):
            for key in registers(item, item.instruction.destinations):
                self._writers[self._stretch(index)].setdefault(key, []).append(index)
        for number, stop in enumerate((*self.starts[1:], len(self.items))):
            last = self.items[stop - 1]
            falls = [] if last.kind in _STAYS else [stop]
            for target in {*last.targets, *falls}:
                if target < len(self.items):
                    self._before[self._stretch(target)].append(number)

    def _stretch(self, index: int) -> int:
        return bisect_right(self.starts, index) - 1

    def of(self, index: int, key: Key) -> list[int]:
        """The items whose result ``key`` may hold just before item ``index``."""
        number = self._stretch(index)
        here = self._writers[number].get(key, [])
        found, sure = self._last(here[: bisect_left(here, index)])
        return found if sure else [*found, *self._into(number, key)]

    def _last(self, writers: list[int]) -> tuple[list[int], bool]:
        """The last of them that writes whatever its guard says, those behind it, and whether there is such a one."""
        found: list[int] = []
        for index in reversed(writers):
            found.append(index)
            if self.items[index].guard is None:
                return found, True
        return found, False

    def _into(self, number: int, key: Key) -> list[int]:
        """At the begin of a stretch."""
        if (number, key) not in self._known:
            found: set[int] = set()
            seen: set[int] = set()
            waiting = list(self._before[number])
            while waiting:
                other = waiting.pop()
                if other not in seen:
                    seen.add(other)
                    own, sure = self._last(self._writers[other].get(key, []))
                    found.update(own)
                    waiting += [] if sure else self._before[other]
            self._known[number, key] = sorted(found)
        return self._known[number, key]
