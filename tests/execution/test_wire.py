"""Messages survive the pipe, and damaged ones are refused."""

import io

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from agent.execution import wire
from agent.execution.children.gpu_messages import Argument, Chunk, CopyStep, FillStep, Job, LaunchStep, Region
from agent.execution.children.messages import Compile, Compiled


@frozen
class Numbers:
    exact: int
    either: int | float


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts, st.lists(st.tuples(texts, texts)).map(tuple), st.floats(0, 1e9))
def test_text_survives(source: str, headers: tuple[tuple[str, str], ...], seconds: float) -> None:
    message = Compile(source, "k.cu", ("-G",), ("k",), headers, seconds)
    assert wire.decode(wire.encode(message), Compile) == message


@given(st.binary(), st.binary())
def test_bytes_survive(ptx: bytes, cubin: bytes) -> None:
    message = Compiled("", "log", ptx, cubin, ("a", "b"))
    assert wire.decode(wire.encode(message), Chunk, Compiled) == message


@given(st.integers(-(2**64), 2**64), st.one_of(st.integers(), st.floats(allow_nan=False)))
def test_numbers_keep_their_kind(exact: int, either: int | float) -> None:
    got = wire.decode(wire.encode(Numbers(exact, either)), Numbers)
    assert got == Numbers(exact, either)
    assert type(got.either) is type(either)


def test_unions_of_steps_survive() -> None:
    steps = (
        LaunchStep("_Z1k", "k", (1, 2, 3), (4, 5, 6), 7, (Argument("x", 8, b""), Argument(None, 0, b"\0\1"))),
        FillStep("x", 9),
        CopyStep("x", "y"),
    )
    job = Job(b"\0cubin", (Region("x", 1, 2, None, None, 3, False), Region("y", 1, 0, "x", "s", None, True)), steps)
    assert wire.decode(wire.encode(job), Job) == job


def test_several_frames_in_a_row() -> None:
    stream = io.BytesIO(wire.encode(FillStep("a", 1)) + wire.encode(Chunk("b", 2, b"three")))
    channel = wire.Channel(lambda: wire.read_frame(stream), io.BytesIO())
    assert channel.receive(FillStep) == FillStep("a", 1)
    assert channel.receive(Chunk) == Chunk("b", 2, b"three")
    with pytest.raises(EOFError):
        channel.receive(Chunk)


def test_what_was_not_expected_is_refused() -> None:
    with pytest.raises(wire.WireError, match="unexpected message: FillStep"):
        wire.decode(wire.encode(FillStep("a", 1)), Chunk)
    with pytest.raises(wire.WireError):
        wire.decode(b"", Chunk)


@given(st.data())
def test_damage_is_an_error_of_ours_and_nothing_else(data: st.DataObject) -> None:
    whole = bytearray(wire.encode(Chunk("region", 12, b"data" * 10)))
    if data.draw(st.booleans()):
        damaged = bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    else:
        whole[data.draw(st.integers(0, len(whole) - 41))] ^= data.draw(st.integers(1, 255))
        damaged = bytes(whole)
    try:
        got = wire.decode(damaged, Chunk)
    except wire.WireError:
        return
    assert isinstance(got, Chunk)
