"""Kernel parameters as memory: read through an address (a struct indexed at run time), never written."""

from typing import TYPE_CHECKING

import numpy as np
from attrs import define

from agent.execution.device import Bytes
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.buffers import UNSIGNED
from agent.execution.emulator.lanes import Lanes
from agent.execution.emulator.sites import Site

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


@define(eq=False)
class Parameters:
    """``data`` holds all parameters at their offsets."""

    data: Bytes

    def load(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, count: int
    ) -> list[Array]:
        offsets = addresses.astype(np.int64) + shift
        span = width * count
        sound = (offsets >= 0) & (offsets + span <= len(self.data)) & (offsets & (span - 1) == 0)
        if not sound.all():
            wide = np.broadcast_to(offsets, lanes.shape).reshape(-1)
            batch.fault(
                "out-of-bounds read",
                lanes,
                site,
                ~sound,
                lambda lane: f"reads {span} bytes at offset {int(wide[lane])} of {len(self.data)} bytes of parameters",
            )
            offsets = np.where(sound, offsets, 0)
        steps = np.arange(width)
        dtype = UNSIGNED[width]
        padded = np.concatenate((self.data, np.zeros(64, np.uint8)))
        return [
            np.where(sound, padded[(offsets + k * width)[..., None] + steps].view(dtype)[..., 0], dtype(0))
            for k in range(count)
        ]

    def store(
        self, batch: "Batch", lanes: Lanes, site: Site, addresses: Array, shift: int, width: int, values: list[Array]
    ) -> None:
        batch.fault(
            "write to read-only memory",
            lanes,
            site,
            np.ones((1, 1), bool),
            lambda lane: "writes to the kernel's parameters",
        )
