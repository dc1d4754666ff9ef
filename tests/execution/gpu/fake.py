"""A card made of ordinary memory and a clock of its own, for the timing's state machine: what is queued takes the time
that it says it takes, events read that clock."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from agent.execution.children import ground, measuring

Kernel = Callable[[list[bytes]], float]
"""A kernel: does its work on the addresses among its arguments and says how many seconds it takes."""


class FakeCard:
    """Driver and runtime in one: only what the timing uses. ``kernels`` by entry name; ours are built in."""

    memcpyHostToDevice = memcpyDeviceToHost = memcpyDeviceToDevice = 0
    hostAllocMapped = 2
    cudaDevAttrMultiProcessorCount, cudaDevAttrL2CacheSize = 16, 38
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    def __init__(self, kernels: dict[str, Kernel], bandwidth: float = 1e12) -> None:
        self.kernels: dict[str, Kernel] = {
            "make": self._make, "sweep": self._sweep, "stain": self._sweep, "copy": self._copy,
            "hold": lambda values: 0.0, "idle": lambda values: 0.0, "digest": self._digest, **kernels,
        }  # fmt: skip
        self.bandwidth = bandwidth
        self.clock = 0.0
        self.held: list[Any] = []
        self.events: dict[int, float] = {}
        self.log: list[str] = []
        self.names: list[str] = []
        self.capacity = 1 << 40
        self.variables: dict[tuple[int, str], int] = {}

    # ours

    def _make(self, values: list[bytes]) -> float:
        """Any bytes that hang on the form with its key, as the real one's do."""
        address, count = _number(values[2]), _number(values[4])
        seed = int.from_bytes(values[0][:8], "little") % 2**32
        data = np.random.default_rng(seed).random(count, np.float32).tobytes()
        ctypes.memmove(address, data, len(data))
        return 1e-6

    def _sweep(self, values: list[bytes]) -> float:
        return 16 * _number(values[1]) / self.bandwidth

    def _copy(self, values: list[bytes]) -> float:
        return 16 * _number(values[2]) / self.bandwidth

    def _digest(self, values: list[bytes]) -> float:
        data, count, width = _number(values[0]), _number(values[1]), _number(values[2])
        partial = np.zeros(1024, ground._PARTIAL)
        held = ctypes.string_at(data, count * width)
        partial["hash"][0] = hash((held, values[5])) % 2**64
        partial["sum"][0] = float(np.frombuffer(held, np.uint8).sum())
        ctypes.memmove(_number(values[6]), partial.ctypes.data, partial.nbytes)
        return 1e-6

    # the runtime

    def setDevice(self, number: int) -> None: ...

    def free(self, address: int) -> None: ...

    def deviceSynchronize(self) -> None: ...

    def malloc(self, size: int) -> int:
        self.capacity -= size
        if self.capacity < 0:
            raise RuntimeError("cudaErrorMemoryAllocation: out of memory")
        self.held.append(ctypes.create_string_buffer(size + 256))
        return (ctypes.addressof(self.held[-1]) + 255) // 256 * 256

    def hostAlloc(self, size: int, flags: int) -> int:
        return self.malloc(size)

    def memset(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def memsetAsync(self, address: int, byte: int, size: int, stream: int) -> None:
        self.log.append(f"fill {byte:#x}")
        self.clock += size / self.bandwidth
        ctypes.memset(address, byte, size)

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        ctypes.memmove(target, source, size)

    def memcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        self.log.append("copy bytes")
        ctypes.memmove(target, source, size)

    def memGetInfo(self) -> tuple[int, int]:
        return 1 << 20, 1 << 20

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        return {16: 2, 38: 1 << 16}[attribute]

    def deviceGetPCIBusId(self, device: int) -> str:
        return "0000:00:00.0"

    def eventCreate(self) -> int:
        self.events[len(self.events) + 1] = 0.0
        return len(self.events)

    def eventRecord(self, event: int, stream: int) -> None:
        self.log.append("event")
        self.clock += 1e-6
        self.events[event] = self.clock

    def eventSynchronize(self, event: int) -> None: ...

    def eventElapsedTime(self, start: int, stop: int) -> float:
        return (self.events[stop] - self.events[start]) * 1e3

    # the driver

    def moduleLoadData(self, cubin: bytes) -> int:
        self.names.append(cubin.decode())
        return len(self.names)

    def moduleGetFunction(self, module: int, name: str) -> int:
        self.names.append(name)
        return len(self.names)

    def moduleGetGlobal(self, module: int, name: str) -> int:
        """One place for each variable of each module, as on a card."""
        if (module, name) not in self.variables:
            self.variables[module, name] = self.malloc(1024)
        return self.variables[module, name]

    def variable(self, name: str) -> int:
        """Where it lies in the module that was loaded last of those that have it."""
        return next(address for (_, own), address in reversed(self.variables.items()) if own == name)

    def moduleUnload(self, module: int) -> None:
        self.log.append("unload")

    def funcSetAttribute(self, function: int, attribute: int, value: int) -> None: ...

    def launchKernel(self, function: int, *rest: int) -> None:
        name = self.names[function - 1]
        self.log.append(name)
        count = {"make": 5, "sweep": 3, "stain": 3, "copy": 3, "hold": 3, "digest": 7, "idle": 0}.get(name, 2)
        sizes = {"make": [128, 24, 8, 8, 8], "digest": [8, 8, 4, 4, 4, 8, 8], "hold": [8, 4, 8]}
        pointers = (ctypes.c_void_p * max(1, count)).from_address(rest[8])
        widths = sizes.get(name, [8] * count)
        values = [ctypes.string_at(pointer, width) for pointer, width in zip(pointers, widths, strict=False) if pointer]
        self.clock += self.kernels[name](values)


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little")


def quick(monkeypatch: Any) -> None:
    """No time is spent on clocks that need not settle; the host's clock says nothing of a made-up one."""
    monkeypatch.setattr(measuring, "_SETTLE", (0.0, 0.0))
    monkeypatch.setattr(measuring, "_HOST_SLACK", 1e9)
