"""Why a pointer's extent cannot be probed: an address, or the way to it, hangs on values that were loaded."""

from collections.abc import Iterator, Sequence

from attrs import define, field

from agent.execution.device import Reached
from agent.execution.emulator.influence import Sources
from agent.execution.emulator.memory_use import may_be_shared, writes_to
from agent.inference.probing.outcome import Stop
from agent.inference.probing.subject import Subject


@define(eq=False)
class Reasons:
    """``reached`` are the accesses of all runs."""

    subject: Subject
    reached: Sequence[Reached]
    names: dict[int, dict[str, None]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for one in self.reached:
            self.names.setdefault(one.site, {})[one.buffer] = None

    def stops(self) -> Iterator[Stop]:
        """One for each pointer, the first reason that counts."""
        told: dict[str, Stop] = {}
        lines = {one.site: one.line for one in self.reached}
        for site, buffers in self.names.items():
            for pointer in buffers:
                if (reason := self._reason(site)) and pointer not in told and self._is_pointer(pointer):
                    told[pointer] = Stop(pointer, reason, lines[site])
        yield from told.values()
        yield from self._on_chip(told)

    def _reason(self, site: int) -> str:
        influence = self.subject.influence
        verb = "written" if writes_to(self.subject.code.sites[site].instruction) is not None else "read"
        if holders := self._holders(influence.addresses.get(site, frozenset())):
            return f"where it is {verb} depends on values loaded from {holders}"
        if holders := self._holders(influence.through.get(site, frozenset())):
            return (
                f"how far it is {verb} depends on values loaded from {holders}, which decide a loop or a branch before"
            )
        return ""

    def _on_chip(self, told: "dict[str, Stop]") -> Iterator[Stop]:
        """Values that serve as indices of shared memory: it has an end, so not any value will do."""
        sites = self.subject.code.sites
        for site, sources in self.subject.influence.addresses.items():
            if site in self.names or not may_be_shared(sites[site].instruction):
                continue
            for pointer in self._loaded(sources):
                if pointer not in told and self._is_pointer(pointer):
                    reason = "its values serve as indices of shared memory: which may it hold?"
                    told[pointer] = Stop(pointer, reason, sites[site].line)
                    yield told[pointer]

    def notes(self) -> Iterator[str]:
        """Branches that loaded values decide: what is done for one value need not be done for another."""
        lines: dict[str, dict[int, None]] = {}
        for site, sources in self.subject.influence.branches.items():
            for holder in self._loaded(sources):
                lines.setdefault(holder, {})[self.subject.code.sites[site].line] = None
        for holder, at in lines.items():
            where = ", ".join(str(line) for line in at if line)
            yield (
                f"values of `{holder}` decide a branch or a loop{f' (line {where})' if where else ''}: "
                "what it may hold is not known, and other values may touch more"
            )

    def branches(self) -> str:
        """Words behind a form that was not found, where data may be why."""
        holders = dict.fromkeys(
            holder for sources in self.subject.influence.branches.values() for holder in self._loaded(sources)
        )
        return f"; values of {_listed(list(holders))} decide branches" if holders else ""

    def _holders(self, sources: Sources) -> str:
        loads = [one for one in sources if isinstance(one, int)]
        if not loads:
            return ""
        found = list(self._loaded(sources))
        if not found and all(self._fixed(site) for site in loads):
            return ""
        return _listed(found) if found else "memory"

    def _loaded(self, sources: Sources) -> dict[str, None]:
        """The buffers that these sources were loaded from, tables that the program itself fills left out."""
        found: dict[str, None] = {}
        for site in sorted(one for one in sources if isinstance(one, int)):
            for buffer in self.names.get(site, {}):
                if not self._is_table(buffer):
                    found[self._shown(buffer)] = None
        return found

    def _fixed(self, site: int) -> bool:
        """Whether a load only ever found what the program itself had put there."""
        buffers = self.names.get(site, {})
        return bool(buffers) and all(self._is_table(buffer) for buffer in buffers)

    def _is_pointer(self, name: str) -> bool:
        return any(pointer.name == name for pointer in self.subject.pointers)

    def _is_table(self, buffer: str) -> bool:
        variable = self.subject.loaded.module.variables.get(buffer)
        return variable is not None and variable.space == "const" and bool(variable.initial)

    def _shown(self, buffer: str) -> str:
        return next((name for name, mangled in self.subject.build.symbols.items() if mangled == buffer), buffer)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
