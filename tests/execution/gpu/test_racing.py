"""Races as the runner's messages."""

import numpy as np
import pytest
from attrs import evolve

from agent.execution.children import timing_messages as say
from agent.execution.compiler.result import Build
from agent.execution.gpu import racing
from agent.execution.gpu.jobs import BadRequest
from agent.execution.timing import Entry, Race, Timed
from agent.workload.binding import Bound, BoundBuffer, BoundFill, BoundLaunch, PointerArgument
from agent.workload.generators import recipe
from agent.workload.workload import Access, Domain

BUILD = Build("", b"\x7fELF", {"k": "_Z1kPf"}, {}, {"table": "_table"}, "sm_90", "NVRTC", (), "key")
PTX = ".version 9.0\n.visible .entry k()\n{\n  ld.global.f32 %f1, [%rd1];\n}\n"


def buffer(name: str, dtype: str, access: Access, kind: str = "normal", **more: object) -> BoundBuffer:
    plain = BoundBuffer(name, dtype, 8, 32, access, Domain(kind), None, None)
    return evolve(plain, **more) if more else plain


BUFFERS = (
    buffer("x", "f32", Access.IN),
    buffer("s", "b4", Access.IN, "unknown"),
    buffer("table", "f32", Access.IN, symbol=True),
    buffer("y", "f32", Access.OUT),
    buffer("q", "i32x4", Access.INOUT, "integers", nbytes=128),
)
LAUNCH = BoundLaunch("k", (1, 1, 1), (32, 1, 1), 0, (PointerArgument("x"), PointerArgument("y", 4)))
SCRATCH = (buffer("t", "f32", Access.OUT, scratch=True), buffer("z", "i32", Access.OUT, scratch=True, zeroed=True))
OLD = Entry(BUILD, Bound({}, BUFFERS, (LAUNCH,)))
NEW = Entry(evolve(BUILD, ptx=PTX), Bound({}, (*BUFFERS, *SCRATCH), (BoundFill("t", 3), LAUNCH)))
RACE = Race((OLD, NEW), "normal", 99, frozenset({"q"}))


def test_what_is_shared_and_what_is_a_side_s_own() -> None:
    asked = racing.measure(evolve(RACE, sides=(OLD, NEW)), BUILD, 64, 1024)
    assert [(space.name, space.role, space.follows) for space in asked.spaces] == [
        ("x", "in", False), ("s", "in", True), ("table", "in", False), ("y", "out", False), ("q", "inout", False),
    ]  # fmt: skip
    assert asked.spaces[2].symbols == ("_table", "_table")
    assert [side.spaces for side in asked.sides] == [
        (), (say.Space("t", 32, "scratch"), say.Space("z", 32, "zeroed")),
    ]  # fmt: skip
    assert (asked.digested, asked.seed, asked.flush, asked.memory) == (1, 99, 64, 1024)


def test_outputs_lane_by_lane_or_element_by_element() -> None:
    asked = racing.measure(RACE, BUILD, 64, 1024)
    assert asked.outputs == (say.Output("y", 8, 4, 2, False), say.Output("q", 8, 16, -1, True))


def test_contents_without_a_form_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    known = buffer("s", "b4", Access.IN, "bytes")
    monkeypatch.setattr(racing, "form", lambda item, family: None)
    race = evolve(RACE, sides=(Entry(BUILD, Bound({}, (known,), ())), NEW))
    (chunk,) = racing.chunks(race)
    assert chunk.region == "s" and chunk.data == recipe(known, "normal", 99)(0, 32).tobytes()


def test_a_module_without_the_variable_is_refused() -> None:
    bare = Entry(evolve(BUILD, symbols={}), NEW.bound)
    with pytest.raises(BadRequest, match="table"):
        racing.measure(evolve(RACE, sides=(OLD, bare)), BUILD, 64, 1024)


def test_a_kernel_that_the_build_lacks_is_refused() -> None:
    other = Entry(evolve(BUILD, entries={}), NEW.bound)
    with pytest.raises(BadRequest, match="no kernel k"):
        racing.measure(evolve(RACE, sides=(OLD, other)), BUILD, 64, 1024)


@pytest.mark.parametrize(
    ("ptx", "stateful"),
    [
        (PTX, False),
        (".global .align 4 .u32 calls;\n" + PTX, True),
        (".visible .const .align 4 .b8 table[32];\n" + PTX, True),
    ],
)
def test_modules_with_variables_are_loaded_anew_for_each_run(ptx: str, stateful: bool) -> None:
    last = Entry(evolve(BUILD, ptx=ptx), NEW.bound)
    asked = racing.recompute(evolve(RACE, sides=(OLD, last)), BUILD, Timed("ok", calls=(3, 4), sets=2))
    assert asked.stateful is stateful and (asked.calls, asked.sets) == ((3, 4), 2)
    assert asked.spaces[2].symbols == ("_table",)


def test_an_answer_as_values() -> None:
    table = np.zeros((2, 3, 2), [("hash", "<u8"), ("sum", "<f8", (16,)), ("magnitude", "<f8", (16,))])
    table["hash"] = np.arange(12).reshape(2, 3, 2)
    answer = say.Measured(
        "", "", sets=3, cold=((1.0,) * 4,), calls=(5, 6), digests=table.tobytes(), reasons=0x04, fixed=("s",)
    )
    found = racing.timed(answer, RACE, 2)
    assert found.status == "ok" and found.digests is not None and found.digests.shape == (2, 3, 2)
    assert found.digests["hash"].tolist() == table["hash"].tolist()
    assert (found.throttled, found.fixed, found.foreign) == (("power cap",), ("s",), 2)


def test_a_fault_keeps_its_kind_and_side() -> None:
    found = racing.timed(say.Measured("illegal address", "says CUDA", side=1), RACE, 0)
    assert (found.status, found.side, found.message) == ("fault", 1, "illegal address: says CUDA")
    assert racing.timed(say.Measured("refused", "no room"), RACE, 0).status == "refused"
