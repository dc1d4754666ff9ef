"""The GPU child: jobs of one program, then it is killed. Lays out buffers between guard bands, launches, reads back.

Only the CUDA driver and runtime calls of CuPy are used, none of its arrays: no kernel runs here but the job's and ours.
Once the context is there, before anything of a user is loaded, it gives up what it has no more need of: network, other
processes and programs, changes to files, more memory than is good for the machine.
"""

import ctypes
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field

from agent.execution.children import gpu_messages as say
from agent.execution.children import measuring, rights
from agent.execution.children import timing_messages as timing
from agent.execution.children.cuda_errors import fault_kind, in_words, out_of_memory
from agent.execution.children.ground import Ground, open_ground
from agent.execution.children.serve import serve
from agent.execution.children.texture_objects import Shown, show
from agent.execution.nvml import watch
from agent.execution.wire import Channel

# Bytes before and after each buffer that nobody may touch; also what makes buffers start at 256-byte boundaries.
GUARD = 256 << 10
GUARD_BYTE = 0xA5

HOST_MEMORY = 8 << 30
"""Bytes that a runner may take beside those of its context: contents go through it in pieces."""


@define
class Memory:
    """The job on the card: its module, where each region starts, and the allocations with their sizes."""

    module: int = 0
    sizes: dict[str, int] = field(factory=dict)
    addresses: dict[str, int] = field(factory=dict)
    guarded: dict[str, tuple[int, int]] = field(factory=dict)  # region -> (allocation, its size)
    digests: dict[str, bytes] = field(factory=dict)
    ground: Ground | None = None


def main() -> None:
    try:
        from cupy.cuda import driver, runtime

        card = _card(runtime)
    except Exception as error:
        driver = runtime = None
        card = say.Card("", 0, 0, 0, 0, missing=f"{type(error).__name__}: {error}")
    memory = Memory()
    job: list[say.Job] = []
    fewer: list[rights.Fewer] = []

    def handle(channel: Channel) -> None:
        request = channel.receive(
            say.AskCard, say.Warm, say.Job, say.Go, say.Read,
            timing.Look, timing.Calibrate, timing.Measure, timing.Recompute,
        )  # fmt: skip
        if not fewer and _loads(request):
            _warm(runtime, card)
            watch(card.address)  # the driver's libraries open what they need while they may
            # Landlock would keep it from the shared memory that outputs go through.
            fewer.append(rights.give_up(HOST_MEMORY, landlocked=False))
        if isinstance(request, say.AskCard):
            channel.send(card)
        elif isinstance(request, timing.Calibrate):
            channel.send(measuring.calibrate(driver, runtime, request))
        elif isinstance(request, timing.Measure):
            channel.send(measuring.measure(driver, runtime, request, channel))
        elif isinstance(request, timing.Recompute):
            channel.send(measuring.recompute(driver, runtime, request, channel))
        elif isinstance(request, timing.Look):
            channel.send(_look(driver, runtime, job[0], memory, request))
        elif isinstance(request, say.Warm):
            channel.send(_warm(runtime, card))
        elif isinstance(request, say.Job):
            job[:] = [request]
            channel.send(_prepare(driver, runtime, request, memory, channel))
        elif isinstance(request, say.Go):
            channel.send(_run(driver, runtime, card, job[0], memory))
        else:
            channel.send(_read(runtime, memory.addresses[request.region] + request.start, request))

    serve(handle)


def _loads(request: object) -> bool:
    """Whether it brings a user's code into this process. Not where compute-sanitizer (``exact``) has it in hand, which
    listens to it by a socket of its own."""
    if isinstance(request, say.Job):
        return not request.exact
    return isinstance(request, timing.Measure | timing.Recompute)


def _card(runtime: Any) -> say.Card:
    if runtime.getDeviceCount() < 1:
        return say.Card("", 0, 0, 0, 0, missing="the driver shows no CUDA device")
    properties = runtime.getDeviceProperties(0)
    return say.Card(
        properties["name"].decode(),
        properties["major"] * 10 + properties["minor"],
        runtime.driverGetVersion(),
        properties["totalGlobalMem"],
        runtime.deviceGetAttribute(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
        address=runtime.deviceGetPCIBusId(0),
    )


def _warm(runtime: Any, card: say.Card) -> say.Card:
    if card.missing:
        return card
    try:
        runtime.setDevice(0)
        runtime.free(0)  # the customary call that makes the context
    except Exception as error:
        return evolve(card, missing=in_words(error))
    return card


def _prepare(driver: Any, runtime: Any, job: say.Job, memory: Memory, channel: Channel) -> say.Prepared:
    problem = ""
    try:
        runtime.setDevice(0)
        runtime.free(0)
        _forget(driver, runtime, memory)
        _allocate(driver, runtime, job, memory)
    except Exception as error:
        problem = _words(error, job)
    # What is on its way must be taken in all the same, or the parent would wait for us to read it.
    for region in job.regions:
        taken = 0 if region.follows else region.nbytes
        while taken < region.nbytes:
            chunk = channel.receive(say.Chunk)
            taken += len(chunk.data)
            if not problem:
                try:
                    _copy_in(runtime, memory.addresses[chunk.region] + chunk.start, chunk.data)
                except Exception as error:
                    problem = _words(error, job)
    return say.Prepared(problem)


def _forget(driver: Any, runtime: Any, memory: Memory) -> None:
    """Nothing of the last job stays: neither its memory nor what its module kept in variables."""
    for start, _ in memory.guarded.values():
        runtime.free(start)
    if memory.module:
        driver.moduleUnload(memory.module)
    if memory.ground is not None:
        memory.ground.packed.clear()
    memory.module = 0
    for held in (memory.sizes, memory.addresses, memory.guarded, memory.digests):
        held.clear()


def _allocate(driver: Any, runtime: Any, job: say.Job, memory: Memory) -> None:
    module = driver.moduleLoadData(job.cubin)
    memory.module = module
    for region in job.regions:
        memory.sizes[region.name] = region.nbytes
        if region.symbol is not None:
            memory.addresses[region.name] = driver.moduleGetGlobal(module, region.symbol)
        elif region.alias is not None:
            memory.addresses[region.name] = memory.addresses[region.alias] + region.offset
        else:
            before = 0 if job.exact else GUARD + region.offset
            size = before + region.nbytes + (0 if job.exact else GUARD)
            start = runtime.malloc(size)
            if not job.exact:
                runtime.memset(start, GUARD_BYTE, size)
            memory.guarded[region.name] = (start, size)
            memory.addresses[region.name] = start + before
        if region.fill is not None and region.nbytes:
            runtime.memset(memory.addresses[region.name], region.fill, region.nbytes)
        if region.made is not None:
            _make(driver, runtime, job, memory, region.made, memory.addresses[region.name])
    runtime.deviceSynchronize()


def _ours(driver: Any, runtime: Any, job: say.Job, memory: Memory) -> Ground:
    """Our own kernels in this process."""
    if memory.ground is None:
        memory.ground = open_ground(driver, runtime, job.support)
    return memory.ground


def _make(driver: Any, runtime: Any, job: say.Job, memory: Memory, made: say.MadeHere, address: int) -> None:
    ground = _ours(driver, runtime, job, memory)
    target = runtime.malloc(made.nbytes) if made.wide else address
    ground.make(made.form, made.count, target)
    if made.nudge is not None:
        ground.nudge(target, made.count, made.dtype, made.nudge)
    if made.wide:
        ground.widen(target, address, made.count)
        runtime.deviceSynchronize()
        runtime.free(target)


def _watch(driver: Any, runtime: Any, job: say.Job, memory: Memory) -> dict[str, bytes]:
    """A digest of each region that must stay as it is."""
    watched = [region for region in job.regions if region.watched and region.nbytes]
    if not watched:
        return {}
    ground = _ours(driver, runtime, job, memory)
    for region in watched:
        ground.digest(_bytes_of(region), memory.addresses[region.name], 0)
    return dict(zip((region.name for region in watched), ground.digests(), strict=True))


def _bytes_of(region: say.Region) -> timing.Output:
    width = next(width for width in (8, 4, 2, 1) if region.nbytes % width == 0 and region.offset % width == 0)
    return timing.Output(region.name, region.nbytes // width, width)


def _run(driver: Any, runtime: Any, card: say.Card, job: say.Job, memory: Memory) -> say.Ran:
    memory.digests = _watch(driver, runtime, job, memory)
    start = time.perf_counter()
    for step in job.steps:
        try:
            _step(driver, runtime, step, memory)
            runtime.deviceSynchronize()
        except Exception as error:
            label = step.label if isinstance(step, say.LaunchStep) else ""
            kind = fault_kind(error)
            message = _launch_words(error, step, card) if isinstance(step, say.LaunchStep) else in_words(error)
            return say.Ran(kind, message, label, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    now = _watch(driver, runtime, job, memory)
    changed = tuple(name for name, digest in memory.digests.items() if now[name] != digest)
    return say.Ran("", "", "", seconds, _overwritten(runtime, memory), changed)


def _step(driver: Any, runtime: Any, step: say.LaunchStep | say.FillStep | say.CopyStep, memory: Memory) -> None:
    if isinstance(step, say.FillStep):
        runtime.memset(memory.addresses[step.region], step.byte, memory.sizes[step.region])
        return
    if isinstance(step, say.CopyStep):
        size = memory.sizes[step.target]
        kind = runtime.memcpyDeviceToDevice
        runtime.memcpy(memory.addresses[step.target], memory.addresses[step.source], size, kind)
        return
    function = driver.moduleGetFunction(memory.module, step.entry)
    if step.shared:
        driver.funcSetAttribute(function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, step.shared)
    shown = _shown(step, memory)
    values = [
        ctypes.create_string_buffer(_bytes(argument, memory, shown.get(number)))
        for number, argument in enumerate(step.arguments)
    ]
    pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
    driver.launchKernel(function, *step.grid, *step.block, step.shared, 0, ctypes.addressof(pointers), 0)
    for one in shown.values():
        one.give()
    if shown:
        runtime.deviceSynchronize()  # the objects end with this call


def _shown(step: say.LaunchStep, memory: Memory) -> dict[int, Shown]:
    """The texture and surface objects of a launch by the number of their argument, with the buffers' contents."""
    found = {
        number: show(argument.view, memory.addresses[argument.region])
        for number, argument in enumerate(step.arguments)
        if argument.view is not None and argument.region is not None
    }
    for one in found.values():
        one.fill()
    return found


def _bytes(argument: say.Argument, memory: Memory, shown: Shown | None = None) -> bytes:
    return shown.handle.to_bytes(8, "little") if shown is not None else argument.packed(memory.addresses)


def _overwritten(runtime: Any, memory: Memory) -> tuple[tuple[str, int], ...]:
    """The first byte beside each buffer that no longer holds the guard's pattern, counted from the buffer's start."""
    found: list[tuple[str, int]] = []
    for name, (start, size) in memory.guarded.items():
        address, nbytes = memory.addresses[name], memory.sizes[name]
        for low, high in ((start, address), (address + nbytes, start + size)):
            touched = np.flatnonzero(_copy_out(runtime, low, high - low) != GUARD_BYTE)
            if touched.size:
                # Below the buffer the byte nearest to it is the telling one, above it the first.
                nearest = touched[-1] if low == start else touched[0]
                found.append((name, int(low + nearest - address)))
    return tuple(found)


def _copy_in(runtime: Any, address: int, data: bytes) -> None:
    held = np.frombuffer(data, np.uint8)
    runtime.memcpy(address, held.ctypes.data, held.nbytes, runtime.memcpyHostToDevice)


def _copy_out(runtime: Any, address: int, nbytes: int) -> npt.NDArray[np.uint8]:
    data = np.empty(nbytes, np.uint8)
    if nbytes:
        runtime.memcpy(data.ctypes.data, address, nbytes, runtime.memcpyDeviceToHost)
    return data


def _read(runtime: Any, address: int, request: say.Read) -> say.Chunk:
    """The bytes asked for: in the answer, or in the file that both sides see."""
    if not request.path:
        return say.Chunk(request.region, request.start, _copy_out(runtime, address, request.nbytes).tobytes())
    try:
        held = np.memmap(request.path, np.uint8, "r+", shape=(request.nbytes,))
    except OSError as error:
        return say.Chunk(request.region, request.start, b"", str(error))
    runtime.memcpy(held.ctypes.data, address, request.nbytes, runtime.memcpyDeviceToHost)
    return say.Chunk(request.region, request.start, b"")


def _look(driver: Any, runtime: Any, job: say.Job, memory: Memory, request: timing.Look) -> timing.Looked:
    address = memory.addresses[request.output.name]
    data = b"".join(_copy_out(runtime, address + start, stop - start).tobytes() for start, stop in request.pieces)
    ground = _ours(driver, runtime, job, memory)
    ground.digest(request.output, address, request.key)
    return timing.Looked(data, ground.digests()[0])


def _words(error: Exception, job: say.Job) -> str:
    text = str(error)
    if out_of_memory(error):
        total = sum(region.nbytes for region in job.regions) / 1e9
        return f"the card has not enough memory for {total:.2f} GB of buffers; try smaller sizes"
    if "NO_BINARY_FOR_GPU" in text or "INVALID_IMAGE" in text:
        return f"the card cannot load this build ({text})"
    return in_words(error)


def _launch_words(error: Exception, step: say.LaunchStep, card: say.Card) -> str:
    where = f"{step.label}<<<{step.grid}, {step.block}, {step.shared}>>>"
    if step.shared > card.shared_optin > 0:
        return (
            f"{where} asks for {step.shared} bytes of dynamic shared memory; {card.name} gives a block at most "
            f"{card.shared_optin}"
        )
    return f"{where}: {in_words(error)}"


if __name__ == "__main__":
    main()
