"""A card that falls ill: the real device of the local card, whose runners run in the emulator and die, fail or vanish
as real ones do, in CUDA's own words."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from agent.execution.children import gpu_messages as say
from agent.execution.children import runner
from agent.execution.children.cuda_errors import fault_kind
from agent.execution.device import Answer, Request
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu, device
from agent.execution.gpu.jobs import make_job
from agent.execution.process import ChildDied, ChildTimeout
from agent.execution.timing import Figures

CARD = say.Card("Test card", 90, 13000, 80 << 30, 232448, address="test")
ROOM = 1 << 20
"""Bytes of memory that a small card has."""

Illness = Callable[[Request], Answer | None]
"""What becomes of a run; None: it runs."""


def killed(request: Request) -> Answer | None:
    raise ChildDied("it was ended by SIGKILL", True)


def crashed(request: Request) -> Answer | None:
    raise ChildDied("it was ended by SIGSEGV")


def endless(request: Request) -> Answer | None:
    raise ChildTimeout


def in_the_kernel(said: str) -> Illness:
    """The launch fails so."""
    error = RuntimeError(said)
    step = say.LaunchStep("", "scale", (1, 1, 1), (256, 1, 1), 0, ())
    return lambda request: device._failed(
        say.Ran(fault_kind(error), runner._launch_words(error, step, CARD), "scale", 0.1)
    )


def before_it(said: str) -> Illness:
    """Buffers cannot be laid out."""
    return lambda request: device._answer("refused", runner._words(RuntimeError(said), make_job(request)))


def small(request: Request) -> Answer | None:
    if sum(image.nbytes for image in request.images) <= ROOM:
        return None
    return before_it("cudaErrorMemoryAllocation: out of memory")(request)


OF_THE_REWRITE: dict[str, Illness] = {
    "killed": killed,
    "crashed": crashed,
    "endless": endless,
    "memory": before_it("cudaErrorMemoryAllocation: out of memory"),
    "address": in_the_kernel("cudaErrorIllegalAddress: an illegal memory access was encountered"),
    "misaligned": in_the_kernel("cudaErrorMisalignedAddress: misaligned address"),
    "driver": before_it("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: unsupported display driver / cuda driver combination"),
}  # fmt: skip
OF_THE_CARD: dict[str, Illness] = {
    "gone": before_it("cudaErrorNoDevice: no CUDA-capable device is detected"),
    "small": small,
}


class Child:
    usable = True

    def close(self) -> None: ...


class Lent:
    """Runners that are never started."""

    count = 0

    def of(self, key: str) -> tuple[Child, bool]:
        return Child(), False

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


class Ailing(Gpu):
    """Ill as its name says; an illness of the rewrite leaves the original and its float64 twin alone, and ``gone``
    takes the card away once it has run the rewrite, when the original is run at a further size."""

    reads_parts = False

    def __init__(self, illness: str) -> None:
        super().__init__(CARD)
        self.illness = illness
        self.first = ""
        self.rewritten = False
        self.sizes = set[int]()
        self.gone = False
        self.runners: Any = Lent()

    def figures(self, cancelled: object = None) -> Figures | str:
        return "this card has no clock"

    def _in_child(self, child: object, request: Request) -> Answer:
        self.first = self.first or request.build.key
        rewritten = request.build.key != self.first and ".f64" not in request.build.ptx
        ill = OF_THE_REWRITE.get(self.illness) if rewritten else None
        size = sum(image.nbytes for image in request.images)
        self.gone |= self.illness == "gone" and self.rewritten and not rewritten and size not in self.sizes
        self.rewritten |= rewritten
        self.sizes.add(size)
        if self.illness == "small" or self.gone:
            ill = OF_THE_CARD[self.illness]
        answer = ill(request) if ill is not None else None
        return answer if answer is not None else emulated(request)


def emulated(request: Request) -> Answer:
    """As a card runs it: whole, and saying nothing of what was written."""
    answer = Emulator().run(evolve(request, blocks=None, checks=frozenset(), count=False))
    return evolve(answer, written=None, counters=())
