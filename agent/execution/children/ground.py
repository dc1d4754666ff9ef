"""The ground that timed calls run on, in a GPU runner: our own kernels, sets of buffers, a blocker, events, digests."""

import contextlib
import ctypes
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, field, frozen

from agent.execution.children import timing_messages as say
from agent.execution.children.gpu_messages import Argument, Chunk, CopyStep, FillStep, LaunchStep
from agent.execution.children.texture_objects import Shown, show
from agent.execution.wire import Channel
from agent.workload import forms, random

ENTRY = 8 + 16 * say.GROUPS
"""Bytes of one digest."""

QUEUE = 400
"""Launches that are queued behind the blocker: well inside the 1024 that a stream holds before it makes us wait."""

_HOLD_NANOSECONDS = 2_000_000_000
_THREADS = 256
_DIGEST_BLOCKS = 1024
_SLOTS = 64
"""Digests that the card holds before they are fetched, all with one copy: a call has up to 32 sets of outputs."""

_MARGIN = 1024
"""Bytes between allocations beyond their size, so that a stray access next to a buffer meets nobody else's."""

_PARTIAL = np.dtype([("hash", "<u8"), ("sum", "<f8"), ("magnitude", "<f8")])


class Launch:
    """A kernel launch packed once. The driver copies the arguments each time it is made."""

    def __init__(
        self, driver: Any, function: int, grid: Sequence[int], block: Sequence[int], shared: int, values: list[bytes]
    ) -> None:
        self._held = [ctypes.create_string_buffer(value, len(value)) for value in values]
        self._pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(item) for item in self._held))
        self._call = driver.launchKernel
        self._arguments = (function, *grid, *block, shared, 0, ctypes.addressof(self._pointers), 0)

    def put(self, argument: int, value: bytes) -> None:
        """Another value from here on, in the place of the first bytes of an argument."""
        ctypes.memmove(self._held[argument], value, len(value))

    def __call__(self) -> None:
        self._call(*self._arguments)


@frozen
class Fill:
    runtime: Any
    address: int
    byte: int
    nbytes: int

    def __call__(self) -> None:
        self.runtime.memsetAsync(self.address, self.byte, self.nbytes, 0)


@frozen
class Copy:
    runtime: Any
    target: int
    source: int
    nbytes: int

    def __call__(self) -> None:
        self.runtime.memcpyAsync(self.target, self.source, self.nbytes, self.runtime.memcpyDeviceToDevice, 0)


Step = Launch | Fill | Copy


@define(eq=False)
class Held:
    """One set of buffers: addresses of the shared ones and of each side's own, each side's steps over them, and the
    texture objects that these use."""

    shared: dict[str, tuple[int, ...]]
    own: tuple[dict[str, int], ...]
    steps: tuple[tuple[Step, ...], ...] = ()
    shown: list[Shown] = field(factory=list)


@define(eq=False)
class Ground:
    """``modules`` holds each side's module. ``turn`` counts calls; the blocker waits for it. ``packed`` are launches of
    ours that are made over and over, by what they do to which place: only a key changes between two of them."""

    driver: Any
    runtime: Any
    functions: dict[str, int]
    tables: bytes
    flag: int
    scratch: int
    partials: int
    start: int
    stop: int
    blocks: int
    turn: int = 0
    modules: list[int] = field(factory=list)
    masters: dict[str, int] = field(factory=dict)
    sweeper: Launch | None = None
    packed: dict[object, Launch] = field(factory=dict)
    queued: int = 0
    folded: list[bytes] = field(factory=list)

    def launch(self, name: str, blocks: int, *values: bytes) -> Launch:
        return Launch(self.driver, self.functions[name], (blocks, 1, 1), (_THREADS, 1, 1), 0, list(values))

    def make(self, packed: bytes, count: int, address: int) -> None:
        """Contents of ``count`` scalars by a packed form."""
        self.launch("make", self.blocks, packed, self.tables, word(address), word(0), word(count))()

    def renew(self, form: forms.Form, seed: int, address: int) -> None:
        """The contents of a form for this seed, in a place that is filled over and over."""
        launch = self.packed.get((form, address))
        if launch is None:
            values = (form.packed(seed), self.tables, word(address), word(0), word(form.count))
            launch = self.packed[form, address] = self.launch("make", self.blocks, *values)
        launch.put(0, word(form.key(seed)))
        launch()

    def nudge(self, address: int, count: int, dtype: int, seed: int) -> None:
        self.launch(
            "nudge", self.blocks, word(address), word(count), dtype.to_bytes(4, "little"), word(seed & 0xFFFF_FFFF)
        )()

    def widen(self, source: int, target: int, count: int) -> None:
        self.launch("widen", self.blocks, word(source), word(target), word(count))()

    def read(self, address: int, nbytes: int) -> None:
        self.launch("sweep", self.blocks, word(address), word(nbytes // 16), word(self.scratch))()

    def flush(self, nbytes: int) -> None:
        """Read a buffer of our own until nothing else is in the cache."""
        if self.sweeper is None and nbytes:
            address = self.runtime.malloc(nbytes)
            self.runtime.memset(address, 0x5A, nbytes)
            self.sweeper = self.launch("sweep", self.blocks, word(address), word(nbytes // 16), word(self.scratch))
        reset_persisting()
        if self.sweeper is not None:
            self.sweeper()

    def hold(self) -> None:
        """Queue a kernel that waits for :meth:`release`."""
        self.turn += 1
        values = (word(self.flag), self.turn.to_bytes(4, "little"), word(_HOLD_NANOSECONDS))
        Launch(self.driver, self.functions["hold"], (1, 1, 1), (1, 1, 1), 0, list(values))()

    def release(self) -> None:
        ctypes.c_uint32.from_address(self.flag).value = self.turn

    def between(self, steps: Sequence[Step]) -> tuple[float, float, bool]:
        """(seconds between events, seconds on the host, whether the queue was too short) for ``steps``, which start
        only when all of them are queued."""
        self.hold()
        self.runtime.eventRecord(self.start, 0)
        for step in steps[:QUEUE]:
            step()
        begun = time.perf_counter()
        if len(steps) > QUEUE:
            self.release()
            for step in steps[QUEUE:]:
                step()
        self.runtime.eventRecord(self.stop, 0)
        if len(steps) <= QUEUE:
            begun = time.perf_counter()
        self.release()
        self.runtime.eventSynchronize(self.stop)
        host = time.perf_counter() - begun
        return self.runtime.eventElapsedTime(self.start, self.stop) * 1e-3, host, len(steps) > QUEUE

    def idle(self) -> float:
        """Seconds that events show around an empty kernel: what a pair of them takes off."""
        launch = Launch(self.driver, self.functions["idle"], (1, 1, 1), (32, 1, 1), 0, [])
        launch()
        self.runtime.deviceSynchronize()
        seen = sorted(self.between((launch,))[0] for _ in range(21))
        return seen[10]

    def digest(self, output: say.Output, address: int, key: int) -> None:
        """Queue the digest of one output; :meth:`digests` has it."""
        if self.queued == _SLOTS:
            self._fetch()
        launch = self.packed.get((output, address, self.queued))
        if launch is None:
            launch = self.packed[output, address, self.queued] = self.launch(
                "digest", _DIGEST_BLOCKS, word(address), word(output.count), output.width.to_bytes(4, "little"),
                output.dtype.to_bytes(4, "little", signed=True), int(output.unordered).to_bytes(4, "little"), word(key),
                word(self.partials + self.queued * _DIGEST_BLOCKS * _PARTIAL.itemsize),
            )  # fmt: skip
        launch.put(5, word(key))
        launch()
        self.queued += 1

    def digests(self) -> list[bytes]:
        """Those queued since they were last asked for, in order: of each its hash, then the sums and magnitudes of its
        groups."""
        self._fetch()
        found, self.folded = self.folded, []
        return found

    def _fetch(self) -> None:
        if not self.queued:
            return
        partials = np.empty((self.queued, _DIGEST_BLOCKS), _PARTIAL)
        self.runtime.memcpy(partials.ctypes.data, self.partials, partials.nbytes, self.runtime.memcpyDeviceToHost)
        self.folded += map(fold, partials)
        self.queued = 0


def fold(partial: npt.NDArray[Any]) -> bytes:
    """The blocks' partial digests as one: ``ENTRY`` bytes. Always added up in one order."""
    with np.errstate(over="ignore"):
        whole = np.add.reduce(partial["hash"], dtype=np.uint64)
    groups = [partial[name].reshape(-1, say.GROUPS).sum(axis=0) for name in ("sum", "magnitude")]
    return bytes(whole.tobytes() + groups[0].tobytes() + groups[1].tobytes())


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


def seed_of(seed: int, call: int, index: int) -> int:
    """The seed of one set of one call."""
    return random.key(seed, call * say.STREAMS + index)


def prior(seed: int) -> int:
    """What stands in outputs and scratch before the call: one of two bytes, by the seed."""
    return 0xCB if seed & 1 else 0x34


def open_ground(driver: Any, runtime: Any, support: bytes) -> Ground:
    """Load our kernels and make what they need. Raises what CUDA raises."""
    runtime.setDevice(0)
    runtime.free(0)
    module = driver.moduleLoadData(support)
    names = ("make", "sweep", "stain", "nudge", "widen", "copy", "hold", "digest", "idle")
    functions = {name: driver.moduleGetFunction(module, name) for name in names}
    tables = b"".join(word(_upload(runtime, data)) for data in forms.tables())
    flag = runtime.hostAlloc(64, runtime.hostAllocMapped)
    ctypes.memset(flag, 0, 64)
    return Ground(
        driver,
        runtime,
        functions,
        tables,
        flag,
        runtime.malloc(256),
        runtime.malloc(_SLOTS * _DIGEST_BLOCKS * _PARTIAL.itemsize),
        runtime.eventCreate(),
        runtime.eventCreate(),
        8 * runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, 0),
    )


def _upload(runtime: Any, data: bytes) -> int:
    address: int = runtime.malloc(len(data))
    held = np.frombuffer(data, np.uint8)
    runtime.memcpy(address, held.ctypes.data, held.nbytes, runtime.memcpyHostToDevice)
    return address


def take_masters(ground: Ground, spaces: Sequence[say.Space], channel: Channel) -> str:
    """Contents that no kernel makes, each copied once to a buffer of its own. Everything on its way is taken in,
    whatever happens; what went wrong is the answer."""
    problem = ""
    for space in spaces:
        taken = 0 if space.follows else space.nbytes
        while taken < space.nbytes:
            chunk = channel.receive(Chunk)
            taken += len(chunk.data)
            try:
                if chunk.start == 0:
                    ground.masters[space.name] = ground.runtime.malloc(max(16, space.nbytes))
                held = np.frombuffer(chunk.data, np.uint8)
                target = ground.masters[space.name] + chunk.start
                ground.runtime.memcpy(target, held.ctypes.data, held.nbytes, ground.runtime.memcpyHostToDevice)
            except Exception as error:
                problem = problem or str(error)
    return problem


def new_set(ground: Ground, spaces: Sequence[say.Space], sides: Sequence[say.Side]) -> Held:
    """Allocate one set and pack each side's steps over it."""
    shared = {space.name: _place(ground, space) for space in spaces}
    own = tuple({space.name: ground.runtime.malloc(space.nbytes + _MARGIN) for space in side.spaces} for side in sides)
    held = Held(shared, own)
    pack(ground, held, spaces, sides)
    return held


def pack(ground: Ground, held: Held, spaces: Sequence[say.Space], sides: Sequence[say.Side]) -> None:
    """Each side's steps over this set, in the modules that are loaded now."""
    held.shown = []
    held.steps = tuple(_steps(ground, held, spaces, number, side) for number, side in enumerate(sides))


def _place(ground: Ground, space: say.Space) -> tuple[int, ...]:
    """Where each side sees the buffer: one place for all, or each module's own variable."""
    if space.symbols:
        pairs = zip(ground.modules, space.symbols, strict=True)
        return tuple(ground.driver.moduleGetGlobal(module, symbol) for module, symbol in pairs)
    address = ground.runtime.malloc(space.nbytes + _MARGIN)
    return (address,) * max(1, len(ground.modules))


def _steps(ground: Ground, held: Held, spaces: Sequence[say.Space], number: int, side: say.Side) -> tuple[Step, ...]:
    """What is timed: the zeroing of scratch that the plan wants zeroed, then its steps."""
    addresses = {name: places[number] for name, places in held.shared.items()} | held.own[number]
    sizes = {space.name: space.nbytes for space in (*spaces, *side.spaces)}
    found: list[Step] = [
        Fill(ground.runtime, addresses[space.name], 0, space.nbytes) for space in side.spaces if space.role == "zeroed"
    ]
    for step in side.steps:
        if isinstance(step, FillStep):
            found.append(Fill(ground.runtime, addresses[step.region], step.byte, sizes[step.region]))
        elif isinstance(step, CopyStep):
            found.append(Copy(ground.runtime, addresses[step.target], addresses[step.source], sizes[step.target]))
        else:
            found.append(_launch(ground, step, ground.modules[number], addresses, held.shown))
    return tuple(found)


def _launch(ground: Ground, step: LaunchStep, module: int, addresses: dict[str, int], shown: list[Shown]) -> Launch:
    function = ground.driver.moduleGetFunction(module, step.entry)
    if step.shared:
        attribute = ground.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        ground.driver.funcSetAttribute(function, attribute, step.shared)
    values = [_value(argument, addresses, shown) for argument in step.arguments]
    return Launch(ground.driver, function, step.grid, step.block, step.shared, values)


def _value(argument: Argument, addresses: dict[str, int], shown: list[Shown]) -> bytes:
    if argument.region is None or argument.view is None:
        return argument.packed(addresses)
    address = addresses[argument.region]
    known = next((one for one in shown if (one.view, one.address) == (argument.view, address)), None)
    if known is None:
        known = show(argument.view, address)
        shown.append(known)
    return word(known.handle)


def fill_set(
    ground: Ground, held: Held, spaces: Sequence[say.Space], sides: Sequence[say.Side], key: tuple[int, int, int]
) -> None:
    """Fresh inputs, and poison in everything that a call has to write: what another call left there is gone. ``key``:
    the measurement's seed, the call, the set. A module's variable exists once for all sets: it holds what the call's
    first set has, whichever set is filled last, or a set alone would meet other contents than among the others."""
    seed, call, index = key
    alone, common = seed_of(seed, call, index), seed_of(seed, call, 0)
    byte = prior(alone)
    for space in spaces:
        for address in dict.fromkeys(held.shared[space.name]):
            if space.form is not None and space.role in ("in", "inout"):
                ground.renew(space.form, common if space.symbols else alone, address)
            elif space.follows and space.nbytes:
                kind = ground.runtime.memcpyDeviceToDevice
                ground.runtime.memcpyAsync(address, ground.masters[space.name], space.nbytes, kind, 0)
            elif space.nbytes:
                ground.runtime.memsetAsync(address, byte, space.nbytes, 0)
    for side, own in zip(sides, held.own, strict=True):
        for space in side.spaces:
            ground.runtime.memsetAsync(own[space.name], byte, space.nbytes, 0)
    for one in held.shown:
        one.fill()


def read_inputs(ground: Ground, held: Held, spaces: Sequence[say.Space]) -> None:
    for space in spaces:
        if space.role in ("in", "inout"):
            ground.read(held.shared[space.name][0], space.nbytes)


_cuda: Any = None


def reset_persisting() -> None:
    """No line of the cache is kept by an earlier kernel's wish. Cards before Ampere have no such lines."""
    global _cuda
    with contextlib.suppress(OSError, AttributeError):
        if _cuda is None:
            _cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        _cuda.cuCtxResetPersistingL2Cache()
