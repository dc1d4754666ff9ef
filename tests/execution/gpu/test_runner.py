"""The runner's own arithmetic (layout, guards, steps), on host memory in place of a card's."""

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from agent.execution.children import gpu_messages as say
from agent.execution.children import runner

Kernel = Callable[[list[bytes]], object]
CARD = say.Card("a card", 90, 13000, 1 << 30, 232448)


class HostRuntime:
    """The CUDA calls that the runner uses, over ordinary memory."""

    memcpyHostToDevice = memcpyDeviceToHost = memcpyDeviceToDevice = 0

    def __init__(self) -> None:
        self.held: list[ctypes.Array[ctypes.c_char]] = []
        self.failure: str | None = None

    def malloc(self, size: int) -> int:
        self.held.append(ctypes.create_string_buffer(size + 256))
        return (ctypes.addressof(self.held[-1]) + 255) // 256 * 256

    def free(self, address: int) -> None:
        self.freed = [*getattr(self, "freed", []), address]

    def memset(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        ctypes.memmove(target, source, size)

    def deviceSynchronize(self) -> None:
        if self.failure:
            raise RuntimeError(self.failure)


class HostDriver:
    """A module of one kernel, a Python function of its parameters' bytes."""

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    def __init__(self, kernel: "Kernel", parameters: int = 2) -> None:
        self.kernel, self.parameters = kernel, parameters
        self.variable = ctypes.create_string_buffer(64)

    def moduleLoadData(self, image: bytes) -> int:
        return 7

    def moduleGetGlobal(self, module: int, name: str) -> int:
        return ctypes.addressof(self.variable)

    def moduleGetFunction(self, module: int, name: str) -> int:
        return 8

    def funcSetAttribute(self, function: int, attribute: int, value: int) -> None:
        if value > CARD.shared_optin:
            raise RuntimeError("CUDA_ERROR_INVALID_VALUE: invalid argument")

    def launchKernel(self, function: int, *rest: int) -> None:
        pointers = (ctypes.c_void_p * self.parameters).from_address(rest[8])
        self.kernel([ctypes.string_at(pointer, 8) for pointer in pointers if pointer])


def region(name: str, nbytes: int, **changes: object) -> say.Region:
    plain = {"offset": 0, "alias": None, "symbol": None, "fill": 0xCB, "follows": False}
    return say.Region(name, nbytes, **(plain | changes))  # type: ignore[arg-type]


def launch(*arguments: say.Argument, shared: int = 0) -> say.LaunchStep:
    return say.LaunchStep("_Z1k", "k", (2, 1, 1), (32, 1, 1), shared, arguments)


def run(job: say.Job, kernel: Kernel) -> tuple[say.Ran, runner.Memory, HostRuntime, HostDriver]:
    runtime, memory = HostRuntime(), runner.Memory()
    driver = HostDriver(kernel, len(job.steps[0].arguments) if isinstance(job.steps[0], say.LaunchStep) else 0)
    runner._allocate(driver, runtime, job, memory)
    return runner._run(driver, runtime, CARD, job, memory), memory, runtime, driver


def pointer(argument: bytes) -> int:
    return int.from_bytes(argument, "little")


def test_arguments_arrive_and_buffers_start_where_they_should() -> None:
    seen: list[list[bytes]] = []
    job = say.Job(
        b"", (region("x", 100, offset=4), region("same", 50, alias="x"), region("v", 8, symbol="v")),
        (launch(say.Argument("x", 12, b""), say.Argument("same", 0, b""), say.Argument(None, 0, b"\x05\0\0\0")),),
    )  # fmt: skip
    ran, memory, _, driver = run(job, lambda arguments: seen.append(arguments))
    assert ran.kind == "" and ran.guards == ()
    x, same, five = seen[0]
    assert pointer(x) % 256 == 16 and pointer(same) == pointer(x) - 12
    assert five[:4] == b"\x05\0\0\0"
    assert ctypes.string_at(memory.addresses["x"], 100) == b"\xcb" * 100
    assert driver.variable.raw[:9] == b"\xcb" * 8 + b"\0"


def write(at: int, arguments: list[bytes]) -> None:
    ctypes.memset(pointer(arguments[0]) + at, 1, 1)


def test_a_write_past_the_end_or_before_the_start_is_found() -> None:
    job = say.Job(b"", (region("x", 100), region("y", 100)), (launch(say.Argument("x", 0, b"")),))
    for at in (100, 103, -1, -8, 100 + runner.GUARD - 1, -runner.GUARD):
        ran, _, _, _ = run(job, functools.partial(write, at))
        assert ran.guards == (("x", at),)
    ran, _, _, _ = run(job, lambda arguments: ctypes.memset(pointer(arguments[0]), 1, 100))
    assert ran.guards == ()


def test_fill_and_copy() -> None:
    job = say.Job(b"", (region("x", 10), region("y", 10)), (say.FillStep("x", 3), say.CopyStep("y", "x")))
    ran, memory, runtime, _ = run(job, lambda arguments: None)
    assert ran.kind == ""
    assert runner._copy_out(runtime, memory.addresses["y"], 10).tolist() == [3] * 10


def test_errors_get_our_names_and_the_kernel() -> None:
    job = say.Job(b"", (region("x", 10),), (launch(say.Argument("x", 0, b"")),))
    runtime, memory = HostRuntime(), runner.Memory()
    driver = HostDriver(lambda arguments: None, 1)
    runner._allocate(driver, runtime, job, memory)
    runtime.failure = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    ran = runner._run(driver, runtime, CARD, job, memory)
    assert (ran.kind, ran.kernel) == ("illegal address", "k")
    runtime.failure = None
    job = say.Job(b"", (region("x", 10),), (launch(say.Argument("x", 0, b""), shared=300_000),))
    ran = runner._run(driver, runtime, CARD, job, memory)
    assert ran.kind == "refused"
    assert "300000 bytes" in ran.message and "232448" in ran.message


def test_chunks_land_where_they_belong_and_problems_do_not_block_the_sender() -> None:
    class Sent:
        def __init__(self, chunks: list[say.Chunk]) -> None:
            self.chunks = chunks

        def receive(self, *_: type) -> say.Chunk:
            return self.chunks.pop(0)

    class Contexts(HostRuntime):
        def setDevice(self, number: int) -> None:
            pass

        def free(self, address: int) -> None:
            pass

    data = np.arange(10, dtype=np.uint8).tobytes()
    job = say.Job(b"", (region("x", 10, fill=None, follows=True),), ())
    for broken in (False, True):
        runtime, memory = Contexts(), runner.Memory()
        if broken:
            runtime.failure = "cudaErrorMemoryAllocation: out of memory"
        sent = Sent([say.Chunk("x", 0, data[:6]), say.Chunk("x", 6, data[6:])])
        prepared = runner._prepare(HostDriver(lambda _: None), runtime, job, memory, sent)  # type: ignore[arg-type]
        assert sent.chunks == []
        if broken:
            assert "not enough memory" in prepared.problem
        else:
            assert prepared.problem == ""
            assert ctypes.string_at(memory.addresses["x"], 10) == data
