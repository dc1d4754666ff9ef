"""Logs: what is written by hand is read, what is damaged gives what is whole, and nothing hostile is believed."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Count
from agent.inference.capture.log import read_capture, read_log
from tests.inference.capture import writing
from tests.inference.capture.writing import SAXPY, argument, goodbye, kernel, launch, log, memory, record, text

X, Y = bytes(range(250)) * 16, bytes(4000)


def write(folder: Path, *records: bytes, name: str = "42.log") -> Path:
    path = folder / name
    path.write_bytes(log(*records))
    return path


def test_a_launch_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = write(tmp_path, kernel(*SAXPY), writing.saxpy(tmp_path, X, Y), goodbye((SAXPY[0], 5, 1), graphs=2, beyond=4))
    found = read_log(path)
    assert found is not None and not found.torn and found.pid == 42
    (one,) = found.launches
    assert (one.name, one.readable, one.number, one.layout) == (*SAXPY, 1, "driver")
    assert (one.grid, one.block, one.cluster, one.shared) == ((4, 1, 1), (256, 1, 1), (1, 1, 1), 0)
    assert [struct.unpack("<i", one.arguments[0].data), struct.unpack("<f", one.arguments[1].data)] == [(1000,), (2.0,)]
    x, y = one.arguments[2].memory, one.arguments[3].memory
    assert x is not None and y is not None
    assert (x.base, x.extent, x.offset, x.kind, x.managed, x.held) == (0x7000, 4000, 0, "device", False, "kept")
    assert x.file is not None and x.file.read_bytes() == X
    assert y.file == tmp_path / "42-2.raw"
    assert found.counts == {SAXPY[0]: Count(5, 1)} and (found.graphs, found.beyond) == (2, 4)


def test_what_was_after_a_launch_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "42-3.raw").write_bytes(Y)
    body = struct.pack("<QI", 1, 4) + writing.NOWHERE * 3 + memory(0x9000, 4000, file=3)
    found = read_log(write(tmp_path, writing.saxpy(tmp_path, X, Y), record(2, body)))
    assert found is not None
    (one,) = found.launches
    assert [place.file for place in one.after] == [None, None, None, tmp_path / "42-3.raw"]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_torn_or_damaged_log_gives_what_comes_before(tmp_path: Path, data: st.DataObject) -> None:
    records = [kernel(*SAXPY), writing.saxpy(tmp_path, X, Y), launch(serial=2, number=2), goodbye((SAXPY[0], 2, 2))]
    ends = [len(log(*records[:count])) for count in range(len(records) + 1)]
    whole = bytearray(log(*records))
    cut = data.draw(st.integers(0, len(whole)))
    truncated = data.draw(st.booleans())
    if truncated:
        whole = whole[:cut]
    elif cut < len(whole):
        whole[cut] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "42.log"
    path.write_bytes(bytes(whole))
    found = read_log(path)
    sound = sum(end <= cut for end in ends) - 1  # records before the damage
    if found is None:
        assert cut < ends[0]
    elif cut >= ends[0]:
        assert len(found.launches) == max(0, min(sound, 3) - 1)
        assert found.torn == (cut not in ends if truncated else cut < ends[-1])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.integers(0, 7), body=st.binary(max_size=300))
def test_no_body_harms_the_reader(tmp_path: Path, kind: int, body: bytes) -> None:
    found = read_log(write(tmp_path, record(kind, body)))
    assert found is not None and len(found.launches) <= 1


@pytest.mark.parametrize(
    "body",
    [
        struct.pack("<I", 2**32 - 1),
        struct.pack("<QQ", 1, 1) + struct.pack("<I", 2**31) + b"name",
        struct.pack("<QQQQI", 0, 0, 0, 0, 2**32 - 1),
    ],
)
def test_a_length_that_is_not_there_is_not_waited_for(tmp_path: Path, body: bytes) -> None:
    found = read_log(write(tmp_path, *(record(kind, body) for kind in (1, 2, 3, 4, 5))))
    assert found is not None and found.torn and not found.launches


@pytest.mark.parametrize(
    "place",
    [memory(0x7000, 4000, 4000, file=1), memory(2**64 - 8, 4000, file=1), memory(0x7000, 0, file=1)],
    ids=["offset beyond the end", "beyond all addresses", "empty"],
)
def test_impossible_places_are_refused(tmp_path: Path, place: bytes) -> None:
    found = read_log(write(tmp_path, launch(argument(0, bytes(8), place))))
    assert found is not None and found.torn


def test_contents_that_are_not_what_the_log_says_are_not_taken(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(X)
    (tmp_path / "42-1.raw").symlink_to(secret)
    (tmp_path / "42-2.raw").write_bytes(X[:-1])
    (tmp_path / "42-3.raw").mkdir()
    places = [argument(0, bytes(8), memory(0x7000, 4000, file=number)) for number in (1, 2, 3, 4)]
    found = read_log(write(tmp_path, launch(*places)))
    assert found is not None
    for one in found.launches[0].arguments:
        assert one.memory is not None and one.memory.file is None and one.memory.held == "disk"


def test_a_log_that_is_no_file_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.log")  # would never end if it were opened as a file
    (tmp_path / "2.log").symlink_to("/dev/zero")
    (tmp_path / "3.log").write_bytes(b"something else")
    write(tmp_path, launch(), name="4.log")
    assert [len(process.launches) for process in read_capture(tmp_path).processes] == [1]


def test_processes_come_in_order_and_a_program_after_the_one_it_replaced(tmp_path: Path) -> None:
    for name, serial in (("100.1.log", 3), ("100.log", 2), ("20.log", 1)):
        write(tmp_path, launch(serial=serial), name=name)
    assert [one.serial for one in read_capture(tmp_path).launches] == [1, 2, 3]


def test_troubles_are_told(tmp_path: Path) -> None:
    found = read_log(write(tmp_path, record(3, text("CUPTI refused: busy (39)"))))
    assert found is not None and found.troubles == ("CUPTI refused: busy (39)",)


def test_a_folder_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be read: No such file"):
        read_capture(tmp_path / "nowhere")
