"""Textures in the runner: what is told to CUDA, when arrays are filled and read back, what is not timed."""

import ctypes

import numpy as np
import pytest
from attrs import define, evolve

from agent.execution.children import gpu_messages as gpu
from agent.execution.children import ground, measuring, runner, texture_objects
from agent.execution.children import timing_messages as say
from agent.execution.compiler.result import Build
from agent.execution.gpu import racing
from agent.execution.gpu.jobs import BadRequest, make_step
from agent.execution.timing import Entry, Race
from agent.execution.wire import decode, encode
from agent.workload.binding import Bound, BoundBuffer, BoundLaunch, PointerArgument, TextureArgument
from agent.workload.textures import LINEAR, View
from agent.workload.workload import Access, Domain
from tests.execution.gpu.fake import FakeCard, quick
from tests.execution.gpu.test_measuring import OUTPUTS, SPACES, N, alone, no_channel, side
from tests.execution.gpu.test_runner import launch, region, run

TEXTURE = View("t", "x", "f32", (4, 4), 16, filter="linear")
SURFACE = View("s", "y", "f32", (4, 4), 16, True)


@define(eq=False, slots=False)
class Copied:
    """A CUDA array of ordinary memory: a copy of the buffer at ``address``, and its own address for a handle."""

    view: View
    address: int
    log: list[str]

    def __attrs_post_init__(self) -> None:
        self.array = ctypes.create_string_buffer(self.view.nbytes)

    @property
    def handle(self) -> int:
        return ctypes.addressof(self.array)

    def fill(self) -> None:
        self.log.append(f"fill {self.view.name}")
        ctypes.memmove(self.array, self.address, self.view.nbytes)

    def give(self) -> None:
        if self.view.surface:
            self.log.append(f"give {self.view.name}")
            ctypes.memmove(self.address, self.array, self.view.nbytes)


def test_a_view_survives_the_way_to_the_runner() -> None:
    step = launch(gpu.Argument("x", 0, b"", TEXTURE), gpu.Argument("y", 4, b""))
    job = gpu.Job(b"cubin", (region("x", 64),), (step,))
    assert decode(encode(job), gpu.Job).steps == (step,)


def test_an_argument_names_a_buffer_that_there_is() -> None:
    step = BoundLaunch("k", (1, 1, 1), (1, 1, 1), 0, (TextureArgument(TEXTURE),))
    made = make_step(step, {"k": "_k"}, {"x"})
    assert isinstance(made, gpu.LaunchStep) and made.arguments == (gpu.Argument("x", 0, b"", TEXTURE),)
    with pytest.raises(BadRequest, match="names x, which no buffer has"):
        make_step(step, {"k": "_k"}, {"y"})


def test_arrays_are_filled_before_the_launch_and_surfaces_handed_back_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(runner, "show", lambda view, address: Copied(view, address, log))

    def kernel(values: list[bytes]) -> None:
        source, target = (int.from_bytes(value, "little") for value in values)
        log.append("kernel")
        data = 2 * np.frombuffer(ctypes.string_at(source, 64), np.uint8)
        ctypes.memmove(target, data.tobytes(), 64)

    job = gpu.Job(
        b"", (region("x", 64, fill=3), region("y", 64, fill=9)),
        (launch(gpu.Argument("x", 0, b"", TEXTURE), gpu.Argument("y", 0, b"", SURFACE)),),
    )  # fmt: skip
    ran, memory, runtime, _ = run(job, kernel)
    assert runtime.held and (ran.kind, log) == ("", ["fill t", "fill s", "kernel", "give s"])
    assert set(ctypes.string_at(memory.addresses["y"], 64)) == {6}


def timed_side(view: View) -> say.Side:
    arguments = (gpu.Argument("x", 0, b"", view), gpu.Argument("y", 0, b""))
    return say.Side(b"module", (gpu.LaunchStep("texture", "texture", (1, 1, 1), (32, 1, 1), 0, arguments),))


def test_timed_calls_find_their_own_contents_in_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    log: list[str] = []
    monkeypatch.setattr(ground, "show", lambda view, address: Copied(view, address, log))

    def doubling(values: list[bytes]) -> float:
        source, target = (int.from_bytes(value, "little") for value in values)
        data = 2 * np.frombuffer(ctypes.string_at(source, 4 * N), np.float32)
        ctypes.memmove(target, data.tobytes(), 4 * N)
        return 1e-5

    card = FakeCard({"texture": doubling, "pointer": doubling})
    view = View("t", "x", "f32", (N,), 4 * N)
    pointers = side("pointer")
    plain = {
        "support": b"support", "spaces": SPACES, "outputs": OUTPUTS, "seed": 5, "digested": 1, "flush": 1 << 16,
        "blocks": (4, 4), "warm": 2, "seconds": 10.0, "memory": 1 << 30,
    }  # fmt: skip
    found = measuring.measure(card, card, say.Measure(sides=(pointers, timed_side(view)), **plain), no_channel())
    assert found.kind == "" and log
    # the same seeds through a pointer give the same digests: no call met another's array
    assert alone(found, FakeCard({"pointer": doubling}), "pointer").digests == found.digests


BUILD = Build("", b"\x7fELF", {"k": "_k"}, {}, {}, "sm_90", "NVRTC", (), "key")


def race(view: View, access: Access, scratch: bool = False) -> Race:
    buffers = (
        BoundBuffer("x", "f32", 16, 64, access, Domain("normal"), None, None, scratch=scratch),
        BoundBuffer("y", "f32", 16, 64, Access.OUT, Domain("normal"), None, None),
    )
    step = BoundLaunch("k", (1, 1, 1), (32, 1, 1), 0, (TextureArgument(view), PointerArgument("y")))
    entry = Entry(BUILD, Bound({}, buffers, (step,)))
    return Race((entry, entry), "normal", 1)


def test_what_would_be_copied_while_the_clock_runs_is_not_timed() -> None:
    assert racing.measure(race(TEXTURE, Access.IN), BUILD, 64, 1024).sides
    linear = View("t", "x", "f32", (16,), 64, memory=LINEAR)
    assert racing.measure(race(linear, Access.INOUT), BUILD, 64, 1024).sides
    with pytest.raises(BadRequest, match="shows what the plan writes"):
        racing.measure(race(TEXTURE, Access.INOUT), BUILD, 64, 1024)
    with pytest.raises(BadRequest, match=r"write a surface \('s'\) are not timed"):
        racing.measure(race(evolve(SURFACE, buffer="x"), Access.IN), BUILD, 64, 1024)


def test_what_cuda_is_told_of_reading_a_texture() -> None:
    texture = pytest.importorskip("cupy.cuda.texture")
    view = View("t", "x", "u8x4", (5, 3, 2), 20, layered=True, filter="linear", address=("wrap", "border", "clamp"),
                normalized=True, as_float=True)  # fmt: skip
    told = texture_objects._reading(texture, view).get_texture_desc()
    assert told["addressMode"] == (0, 3, 1)  # cudaAddressModeWrap, Border, Clamp
    assert (told["filterMode"], told["readMode"], told["normalizedCoords"]) == (1, 1, 1)
    plain = texture_objects._reading(texture, View("t", "x", "f32", (5,), 20, address=("mirror",))).get_texture_desc()
    assert plain["addressMode"][0] == 2 and (plain["filterMode"], plain["readMode"]) == (0, 0)
    # cudaArrayLayered; cudaArraySurfaceLoadStore; cudaArrayTextureGather
    assert [texture_objects._flags(one) for one in (view, SURFACE, TEXTURE)] == [1, 2, 8]


def test_layers_of_one_dimension_are_refused_in_words() -> None:
    view = View("t", "x", "f32", (8, 3), 32, layered=True, address=("clamp", "clamp"))
    with pytest.raises(ValueError, match="layers of one dimension"):
        texture_objects._extents(view)
