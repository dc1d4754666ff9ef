"""Requests as jobs, and scalars as the bytes that a kernel's parameters hold."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.compiler.result import Build
from agent.execution.device import Image, Poison, Recipe, Request
from agent.execution.gpu.jobs import BadRequest, contents, make_job, pack
from agent.workload.binding import BoundCopy, BoundFill, BoundLaunch, PointerArgument, ValueArgument

BUILD = Build("", b"\x7fELF", {"k": "_Z1kPf"}, {}, {"table": "_table"}, "sm_90", "NVRTC", (), "key")


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("f32", 1.5, struct.pack("<f", 1.5)),
        ("f64", 0.1, struct.pack("<d", 0.1)),
        ("f16", 1.0, b"\x00\x3c"),
        ("f32", 1e300, struct.pack("<f", float("inf"))),
        ("bf16", 1.0, b"\x80\x3f"),
        # 1 + 2^-8 lies half-way between two bf16 values: to even, 1.0; 1 + 3 * 2^-8 goes up to 1 + 2^-6.
        ("bf16", 1 + 2**-8, b"\x80\x3f"),
        ("bf16", 1 + 3 * 2**-8, b"\x82\x3f"),
        ("bf16", float("-inf"), b"\x80\xff"),
        ("i32", -1, b"\xff" * 4),
        ("u8", 257, b"\x01"),
        ("i64", 2**40, (2**40).to_bytes(8, "little")),
        ("bool", 7, b"\x01"),
    ],
)
def test_scalars_as_bytes(dtype: str, value: float, expected: bytes) -> None:
    assert pack(ValueArgument(dtype, value)) == expected


def test_nan_stays_nan_in_bf16() -> None:
    for bits in (0x7F800001, 0xFFC00000, 0x7FFFFFFF):
        value = float(np.uint32(bits).view(np.float32))
        assert int.from_bytes(pack(ValueArgument("bf16", value)), "little") & 0x7FFF > 0x7F80


@given(st.integers(-(2**31), 2**31 - 1), st.sampled_from(["8", "16", "32"]))
def test_integers_wrap_as_in_c(value: int, width: str) -> None:
    with np.errstate(over="ignore"):
        expected = np.int64(value).astype(f"i{int(width) // 8}").tobytes()
    assert pack(ValueArgument(f"i{width}", value)) == expected == pack(ValueArgument(f"u{width}", value))


def test_a_type_that_no_parameter_has() -> None:
    with pytest.raises(BadRequest, match="b12"):
        pack(ValueArgument("b12", 0))


def request(**changes: object) -> Request:
    images = (
        Image("x", 16, np.arange(16, dtype=np.uint8), offset=4),
        Image("y", 16, Poison(0xCB)),
        Image("same", 16, Poison(), alias="x"),
        Image("table", 8, np.zeros(8, np.uint8), symbol=True),
    )
    launch = BoundLaunch("k", (1, 1, 1), (32, 1, 1), 0, (PointerArgument("x", 8), ValueArgument("i32", 3)))
    given = {"build": BUILD, "steps": (launch,), "images": images, "outputs": ("y",), **changes}
    return Request(**given)  # type: ignore[arg-type]


def test_a_job_carries_layout_and_arguments() -> None:
    job = make_job(request())
    x, y, same, table = job.regions
    assert (x.offset, x.fill, x.follows) == (4, None, True)
    assert (y.fill, y.follows) == (0xCB, False)
    assert (same.alias, same.fill, same.follows) == ("x", None, False)
    assert (table.symbol, table.follows) == ("_table", True)
    (step,) = job.steps
    assert step.entry == "_Z1kPf" and step.arguments[0].offset == 8  # type: ignore[union-attr]
    assert step.arguments[1].value == b"\x03\x00\x00\x00"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outputs": ("z",)}, "an output names z"),
        ({"steps": (BoundFill("z", 0),)}, "a fill names z"),
        ({"steps": (BoundCopy("x", "z"),)}, "a copy names z"),
        ({"steps": (BoundLaunch("j", (1, 1, 1), (1, 1, 1), 0, ()),)}, "no kernel j"),
        ({"images": (Image("y", 4, Poison(), symbol=True),)}, "no variable y"),
    ],
)
def test_names_that_nothing_has(changes: dict[str, object], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        make_job(request(**changes))


def test_contents_come_in_pieces_from_arrays_and_recipes() -> None:
    data = np.arange(100, dtype=np.uint8)
    recipe = Recipe(100, lambda start, stop: data[start:stop])
    for source in (data, recipe):
        chunks = list(contents(Image("x", 100, source), chunk=33))
        assert [chunk.start for chunk in chunks] == [0, 33, 66, 99]
        assert b"".join(chunk.data for chunk in chunks) == data.tobytes()
    assert list(contents(Image("x", 100, Poison()))) == []
