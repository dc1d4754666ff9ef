"""Records on disk: written whole or not at all, and a changed one is noticed."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.evaluation.record.files import LARGEST, Unwritable, read, seal, write
from agent.evaluation.record.values import RecordError, opened
from tests.evaluation.record.samples import GOLDEN, get, golden, leaves, put, save

_ANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_LEAVES = list(leaves(golden()))


def test_written_and_read(tmp_path: Path) -> None:
    record = opened(golden())
    place = tmp_path / "new folder" / "proof.json"
    write(record, place)
    assert read(place) == record
    assert [file.name for file in place.parent.iterdir()] == ["proof.json"]


def test_the_seal_is_over_the_canonical_json() -> None:
    data = {"b": [1, 2.5, "é"], "a": None, "digest": "whatever"}
    assert seal(data) == hashlib.sha256(b'{"a":null,"b":[1,2.5,"\\u00e9"]}').hexdigest()


def test_layout_is_no_change(tmp_path: Path) -> None:
    """Another order of keys or other blanks are the same record."""
    turned = dict(reversed(golden().items()))
    assert read(save(turned, tmp_path)) == read(GOLDEN)


@_ANY
@given(st.sampled_from(_LEAVES), st.sampled_from([None, True, 0, -1, 2.5, "", "x"]))
def test_whatever_was_edited_is_noticed(tmp_path: Path, place: tuple[object, ...], value: object) -> None:
    old = get(golden(), place)
    if json.dumps(value) == json.dumps(old):
        return
    with pytest.raises(RecordError):
        read(save(put(golden(), place, value), tmp_path))


def test_an_edit_is_called_one(tmp_path: Path) -> None:
    changed = put(golden(), ("verdict", "speed", "ratio"), 381.0)
    with pytest.raises(RecordError, match="changed after it was written"):
        read(save(changed, tmp_path))
    unsealed = {name: value for name, value in golden().items() if name != "digest"}
    with pytest.raises(RecordError, match="has no `digest`"):
        read(save(unsealed, tmp_path))


@_ANY
@given(st.integers(0, GOLDEN.stat().st_size - 3))
def test_a_record_that_was_cut_short_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(GOLDEN.read_bytes()[:length])
    with pytest.raises(RecordError, match="cut short"):
        read(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[]", "no object"),
        (b"{}", "no proof record"),
        (b'{"schema": 2, "digest": ""}', "changed after"),
        (b'{"schema": NaN}', "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "no JSON"),
        (b'{"schema": 1, "digest": "\xf0\x9f\x98\x80"}', "changed after"),
    ],
)
def test_what_is_no_record_is_called_so(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=words):
        read(path)


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    data = {**golden(), "schema": 2}
    with pytest.raises(RecordError, match="newer cuda-lsp wrote it"):
        read(save({**data, "digest": seal(data)}, tmp_path))


def test_missing_too_large_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        read(tmp_path / "none.json")
    with pytest.raises(RecordError, match="cannot be read"):
        read(tmp_path)
    with pytest.raises(RecordError, match="cannot be read"):
        read("a\0b")
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(RecordError, match="larger than"):
        read(large)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    record = opened(golden())
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file" / "proof.json", tmp_path / "a\0b"):
        with pytest.raises(Unwritable, match="the record cannot be written"):
            write(record, place)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


_FULL_DISK = """
import resource, sys
from agent.evaluation.record.files import Unwritable, read, write
record = read(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(record, sys.argv[2])
except Unwritable as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX")
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """The kernel refuses to write more than 4 KB to any file, as a full disk would."""
    place = tmp_path / "proof.json"
    place.write_text("the old one")
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(GOLDEN), str(place)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "the record cannot be written" in done.stdout and "File too large" in done.stdout
    assert place.read_text() == "the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["proof.json"]
