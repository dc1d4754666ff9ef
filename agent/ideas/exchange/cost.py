"""What a kernel's accesses cost a warp before and after an exchange of indices."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from agent.analysis.accesses import Access
from agent.analysis.coalescing import sectors, wavefronts
from agent.ideas.rewriting import source_text
from agent.ideas.view import AXES, View, evaluate

LOOP_WEIGHT = 16
"""How much more an access counts for each loop around it (the trip count need not be known)."""

WORTH = 0.75
"""The exchange must bring the sum to this fraction or below."""

BADLY = 4
"""An access that becomes this many times dearer, and is then a quarter of the former sum, loses badly; unless it is
then as cheap as neighbouring elements are."""

Lanes = Sequence[Mapping[str, int]]


@frozen(eq=False)
class Moved:
    """One access: sectors (or passes, in shared memory) before and after, the fewest that 32 neighbouring elements
    take, and how much it counts."""

    access: Access
    before: int
    after: int
    ideal: int
    weight: int


@frozen(eq=False)
class Balance:
    moved: tuple[Moved, ...]

    @property
    def before(self) -> int:
        return sum(one.before * one.weight for one in self.moved)

    @property
    def after(self) -> int:
        return sum(one.after * one.weight for one in self.moved)

    @property
    def factor(self) -> float:
        return self.after / self.before if self.before else 1.0

    def best(self) -> Moved:
        """The access that gains most."""
        return max(self.moved, key=lambda one: (one.before - one.after) * one.weight)

    def verdict(self, view: View) -> str | None:
        """Why the exchange is not worth it, or None where it is."""
        worst = max(self.moved, key=lambda one: (one.after - one.before) * one.weight, default=None)
        if worst is None:
            return "it makes no access whose cost depends on the thread index"
        if self.factor > WORTH and self.best().before > self.best().after and worst.after > worst.before:
            gains, loses = self.best(), worst
            return (
                f"`{_spelled(view, gains)}` would gain ({gains.before} sectors to {gains.after}) but "
                f"`{_spelled(view, loses)}` would lose ({loses.before} to {loses.after}); a tile in shared "
                "memory serves both"
            )
        if self.factor > WORTH:
            return "neighbouring threads touch neighbouring elements already, or would not after an exchange either"
        heavy = worst.after * worst.weight * BADLY > self.before
        if worst.after >= BADLY * worst.before and worst.after > worst.ideal and heavy:
            return f"`{_spelled(view, worst)}` would become {worst.after // worst.before} times dearer"
        return None


def _spelled(view: View, moved: Moved) -> str:
    return source_text(view.document, moved.access.node)


def balance(view: View, before: Lanes, after: Lanes) -> Balance | str:
    """The cost of every global and shared access for both sets of lanes, or why it cannot be told."""
    found: list[Moved] = []
    for access in view.facts.accesses:
        if access.space not in ("global", "shared", "unknown"):
            continue
        spelled = source_text(view.document, access.node)
        size = view.element_bytes(access)
        if access.index is None or size is None:
            return f"where `{spelled}` points cannot be followed"
        loops = view.facts.loops_around(access.node)
        measure = wavefronts if access.space == "shared" else sectors
        one, two = measure(access.index, before, size), measure(access.index, after, size)
        if one is None or two is None:
            return f"where `{spelled}` points cannot be told from the thread indices and the launch's numbers"
        ideal = 1 if access.space == "shared" else size
        found.append(Moved(access, one, two, ideal, LOOP_WEIGHT ** len(loops)))
    return Balance(tuple(found))


def lanes(view: View, threads: Sequence[tuple[int, int, int]]) -> Lanes:
    """The names of index expressions for each lane: its thread indices; parameters, block and grid of the first
    launch at the declared sizes; the block in the middle of the grid (far from borders, where indices are clamped);
    and each loop's variable in its first turn."""
    launch = view.launches[0]
    common: dict[str, int] = dict(view.parameters(launch))
    for at, axis in enumerate(AXES):
        for name, extents in (("blockDim", launch.block), ("gridDim", launch.grid)):
            value = evaluate(extents[at], view.sizes)
            if isinstance(value, int):
                common[f"{name}.{axis}"] = value
        common[f"blockIdx.{axis}"] = common.get(f"gridDim.{axis}", 1) // 2
    return [_lane(view, common, thread) for thread in threads]


def _lane(view: View, common: Mapping[str, int], thread: tuple[int, int, int]) -> Mapping[str, int]:
    lane = {**common, **{f"threadIdx.{axis}": index for axis, index in zip(AXES, thread, strict=True)}}
    for loop in view.facts.loops:
        start = loop.start.relative(lane)
        if start is not None:
            lane[loop.atom.name] = start
    return lane
