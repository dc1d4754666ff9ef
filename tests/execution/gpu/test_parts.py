"""Parts and digests of large outputs, from the runner's memory to values."""

import ctypes
from typing import Any

import numpy as np
import pytest

from agent.execution.children import gpu_messages as say
from agent.execution.children import runner
from agent.execution.children import timing_messages as timing
from agent.execution.children.ground import ENTRY, fold
from agent.execution.compiler.result import Build
from agent.execution.device import Image, Parts, Poison, ReadsParts, Request
from agent.execution.gpu import Gpu, device, racing
from agent.execution.gpu.jobs import make_job
from agent.execution.wire import decode, encode
from tests.execution.gpu.fake import FakeCard

BUILD = Build("", b"\x7fELF", {}, {}, {}, "sm_90", "NVRTC", (), "key")
PIECES = ((0, 8), (96, 100), (396, 400))


def test_the_runner_gives_the_pieces_in_order_and_digests_all() -> None:
    card, data = FakeCard({}), np.arange(100, dtype=np.float32)
    memory = runner.Memory(addresses={"y": card.malloc(400)})
    ctypes.memmove(memory.addresses["y"], data.tobytes(), 400)
    job = say.Job(b"", (), (), b"support")
    look = timing.Look(racing.lanes_of("y", 400, "f32"), PIECES, 9)
    found = runner._look(card, card, job, memory, look)
    assert np.frombuffer(found.data, np.float32).tolist() == [0.0, 1.0, 24.0, 99.0]
    assert len(found.digest) == ENTRY
    ctypes.memset(memory.addresses["y"] + 200, 0, 1)  # outside the pieces
    ctypes.memset(memory.addresses["y"] + 202, 1, 1)
    again = runner._look(card, card, job, memory, look)
    assert again.data == found.data and again.digest != found.digest


def test_outputs_with_parts_are_never_fetched_whole() -> None:
    asked: list[Any] = []

    class Scripted:
        def send(self, request: Any) -> None:
            asked.append(request)

        def receive(self, *kinds: type) -> Any:
            if isinstance(asked[-1], timing.Look):
                return timing.Looked(b"abcd", fold(np.zeros(1024, device_layout())))
            return say.Chunk(asked[-1].region, 0, b"xy")

    request = Request(
        BUILD, (), (Image("y", 1 << 30, Poison()), Image("z", 2, Poison())), ("y", "z"),
        parts={"y": Parts(((0, 4),), "f32x4", 7)},
    )  # fmt: skip
    outputs, digests = device._fetched(Scripted(), request, {"y": 1 << 30, "z": 2})  # type: ignore[arg-type]
    assert {name: data.tobytes() for name, data in outputs.items()} == {"y": b"abcd", "z": b"xy"}
    assert digests["y"].hash == 0 and len(digests["y"].sums) == timing.GROUPS
    assert asked[0] == timing.Look(timing.Output("y", 1 << 28, 4, 2), ((0, 4),), 7)


def device_layout() -> "np.dtype[np.void]":
    return np.dtype([("hash", "<u8"), ("sum", "<f8"), ("magnitude", "<f8")])


def test_our_kernels_travel_with_a_job_whose_outputs_are_digested() -> None:
    images = (Image("y", 64, Poison()),)
    assert make_job(Request(BUILD, (), images, ("y",)), b"support").support == b""
    wanted = {"y": Parts(((0, 4),), "f32")}
    assert make_job(Request(BUILD, (), images, ("y",), parts=wanted), b"support").support == b"support"


@pytest.mark.parametrize(("dtype", "width", "number"), [("f32x4", 4, 2), ("i64", 8, -1), ("u8", 1, -1), ("f64", 8, 3)])
def test_lanes_by_type(dtype: str, width: int, number: int) -> None:
    assert racing.lanes_of("y", 64, dtype) == timing.Output("y", 64 // width, width, number)


def test_the_messages_survive_the_wire_and_a_card_says_that_it_can() -> None:
    look = timing.Look(racing.lanes_of("y", 64, "f32"), PIECES, 2**63 - 1)
    assert decode(encode(look), timing.Look) == look
    looked = timing.Looked(b"ab", b"cd")
    assert decode(encode(looked), timing.Looked) == looked
    assert isinstance(Gpu(say.Card("a card", 90, 13000, 1 << 30, 232448)), ReadsParts)
