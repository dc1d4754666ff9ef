"""Clusters and bulk copies on a card and in the emulator: the same kernels, the same bytes."""

import numpy as np
import pytest
from attrs import frozen

from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.execution.device import Image, Request
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from tests.execution.emulator.building import launch
from tests.execution.emulator.test_bulk import AWAIT, CAST, FOLD, FULL, OUT, REFILL, RING, SEND
from tests.execution.emulator.test_clusters import ARRIVE, HISTOGRAM, PLACES, REMOTE, SYNC
from tests.execution.emulator.test_clusters import RING as NEIGHBOURS
from tests.execution.slices import HandSlice

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(31)


@frozen(eq=False)
class Case:
    """Kernel ``k`` of ``source`` with pointers to ``given`` and to as many words of ``y``, and ``more`` arguments."""

    name: str
    source: str
    grid: int | tuple[int, int, int]
    threads: int
    given: np.ndarray | None
    words: int
    more: tuple[int, ...] = ()


def _ints(*shape: int) -> np.ndarray:
    return RNG.integers(-999, 999, shape).astype(np.int32)


CASES = (
    Case("places", PLACES, (4, 6, 2), 1, None, 48 * 12),
    Case(
        "neighbours", NEIGHBOURS.replace("FIRST", SYNC).replace("LAST", SYNC), 8, 48, _ints(8, 48), 8 * 48
    ),
    Case(
        "a histogram over a cluster", HISTOGRAM, 6, 64, RNG.integers(0, 64, 3000).astype(np.uint8), 64, (3000,)
    ),
    Case("a neighbour's barrier", REMOTE.replace("ARRIVE", ARRIVE), 6, 64, _ints(6, 64), 6 * 64),
    Case(
        "a ring of tiles", RING.replace("REFILL", REFILL).replace("FULL", FULL), 3, 96,
        RNG.standard_normal((7, 64)).astype(np.float32), 3 * 64, (7,),
    ),
    Case("to all of a cluster", CAST.replace("LAST", "sync();"), 8, 128, _ints(8, 64), 8 * 128),
    Case("from block to block", SEND, 4, 64, _ints(4, 64), 4 * 64),
    Case("out of shared memory", OUT.replace("READ", AWAIT).replace("LAST", ""), 2, 64, _ints(3, 64), 2 * 3 * 64),
    *(
        Case(f"folded: {how}", FOLD.replace("TYPE", kind).replace("HOW", how), 5, 64, _ints(5, 64), 64)
        for kind, how in (("int", "add.s32"), ("int", "min.s32"), ("unsigned", "max.u32"), ("unsigned", "xor.b32"))
    ),
)  # fmt: skip


def request(case: Case, arch: str, optimised: bool) -> Request:
    built = compile_slice(HandSlice(case.source, ("k",)), Options(arch=arch, optimised=optimised))
    assert isinstance(built, Build), built
    images = [Image("y", 4 * case.words, np.zeros(4 * case.words, np.uint8))]
    names = ["y"]
    if case.given is not None:
        images.insert(0, Image("x", case.given.nbytes, case.given.reshape(-1).view(np.uint8)))
        names.insert(0, "x")
    step = launch("k", case.grid, case.threads, *names, *case.more)
    return Request(built, (step,), tuple(images), ("y",))


@pytest.fixture(scope="module")
def card(card: Gpu) -> Gpu:
    if int(card.arch.removeprefix("sm_").rstrip("af")) < 90:
        pytest.skip(f"needs a GPU with clusters (sm_90): this is {card.arch}")
    return card


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_clusters_and_bulk_copies_do_the_same_on_a_card(case: Case, optimised: bool, card: Gpu) -> None:
    asked = request(case, card.arch, optimised)
    emulated, real = Emulator().run(asked), card.run(asked)
    for answer in (emulated, real):
        assert answer.status == "ok", (answer.message, answer.faults)
    np.testing.assert_array_equal(emulated.outputs["y"], real.outputs["y"])
