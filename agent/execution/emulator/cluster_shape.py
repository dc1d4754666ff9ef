"""The shape of a launch's clusters of blocks, what special registers say of them, and addresses in one another's shared
memory.

An address in shared memory says whose it is in its bits from ``RANK_BITS`` on: 0 is the own block, else the rank in the
cluster plus one, as ``mapa`` puts it there.
"""

import math

import numpy as np
from attrs import frozen

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.flow import Refused

Three = tuple[int, int, int]
RANK_BITS = 24
_HALF = 1 << (RANK_BITS - 1)
MOST_BLOCKS = 8  # of a cluster that every card with clusters can run


@frozen
class Clusters:
    """``shape`` of a cluster and of the ``grid``, in blocks by axis."""

    shape: Three
    grid: Three

    @property
    def size(self) -> int:
        """Blocks of a cluster."""
        return math.prod(self.shape)

    @property
    def counts(self) -> Three:
        """Clusters of the grid by axis."""
        x, y, z = (blocks // size for blocks, size in zip(self.grid, self.shape, strict=True))
        return x, y, z

    def of(self, numbers: Array) -> tuple[list[Array], list[Array]]:
        """Of the blocks with those linear ``numbers``: the cluster, and the place in it, by axis."""
        pairs = [np.divmod(index, size) for index, size in zip(_places(numbers, self.grid), self.shape, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def order(self, numbers: Array) -> Array:
        """The ``numbers`` and those of all blocks of their clusters, cluster by cluster, by rank in each."""
        if self.size == 1:
            return numbers
        clusters, _ = self.of(numbers)
        first = _places(np.unique(_linear(clusters, self.counts))[:, None], self.counts)
        within = _places(np.arange(self.size)[None, :], self.shape)
        blocks = [start * size + place for start, size, place in zip(first, self.shape, within, strict=True)]
        ordered: Array = _linear(blocks, self.grid).reshape(-1)
        return ordered

    def special(self, name: str, numbers: Array) -> Array | None:
        """The value of a special register for the blocks of those ``numbers``; None for one that is not of clusters."""
        register, _, axis = name.partition(".")
        index = "xyz".find(axis) if axis else -1
        clusters, places = self.of(numbers[:, None])
        if register in ("clusterid", "cluster_ctaid") and index >= 0:
            return (clusters if register == "clusterid" else places)[index]
        if register in ("nclusterid", "cluster_nctaid") and index >= 0:
            return np.array([[(self.counts if register == "nclusterid" else self.shape)[index]]])
        if name == "cluster_ctarank":
            return _linear(places, self.shape)
        numbers_of_one = {"cluster_nctarank": self.size, "is_explicit_cluster": self.size > 1}
        return np.array([[numbers_of_one[name]]]) if name in numbers_of_one else None


def clusters_of(kernel: str, shape: Three, grid: Three) -> Clusters:
    """Raises Refused for clusters that no card would launch."""
    size = math.prod(shape)
    if not 1 <= size <= MOST_BLOCKS or min(shape) < 1:
        raise Refused(f"{kernel} asks for clusters of {size} blocks: {MOST_BLOCKS} are the most that every card takes")
    if any(blocks % count for blocks, count in zip(grid, shape, strict=True)):
        raise Refused(f"the grid of {kernel}, {grid} blocks, is no multiple of its clusters of {shape} blocks")
    return Clusters(shape, grid)


def _places(numbers: Array, size: Three) -> list[Array]:
    """The place by axis of those linear numbers."""
    x, y, _ = size
    return [numbers % x, numbers // x % y, numbers // (x * y)]


def _linear(places: list[Array], size: Three) -> Array:
    linear: Array = places[0] + size[0] * (places[1] + size[1] * places[2])
    return linear


def parted(addresses: Array) -> tuple[Array, Array]:
    """Signed addresses in shared memory as whose they are (0: the own block's, else the rank plus one) and offsets."""
    owner = (addresses + _HALF) >> RANK_BITS
    return owner, addresses - (owner << RANK_BITS)
