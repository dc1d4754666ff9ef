"""Records on disk: written whole or not at all, and sealed by a hash, so that a changed one is noticed."""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any, NoReturn

from agent.evaluation.record.form import Record
from agent.evaluation.record.values import RecordError, opened, plain

LARGEST = 32 << 20
"""Bytes of a record that is read."""

SEAL = "digest"


class Unwritable(Exception):
    """A record that could not be written; the message says where and why."""


def seal(data: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON (sorted keys, no blanks, ASCII) of everything but the seal."""
    told = {name: value for name, value in data.items() if name != SEAL}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def write(record: Record, path: str | Path) -> None:
    """Write a record through a file beside it and a rename: a full disk leaves what was there before. Raises
    Unwritable."""
    data = plain(record)
    text = json.dumps({**data, SEAL: seal(data)}, indent=1, allow_nan=False) + "\n"
    place = Path(path)
    beside = place.with_name(f".{place.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        if place.is_dir():
            raise IsADirectoryError(0, "it is a folder; name a file in it")
        place.parent.mkdir(parents=True, exist_ok=True)
        _put(beside, place, text)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise Unwritable(f"the record cannot be written to {path} ({reason}): there is none") from error


def _put(beside: Path, place: Path, text: str) -> None:
    try:
        with beside.open("x", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read(path: str | Path) -> Record:
    """The record in a file. Raises RecordError for one that is missing, too large, cut short, changed after it was
    written, of another version, or no record at all."""
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST:
            raise RecordError(f"{path} is larger than {LARGEST >> 20} MB: this is no proof record")
        raw = place.read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise RecordError(f"{path} cannot be read ({reason})") from error
    try:
        data = json.loads(raw.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is no JSON, or cut short: {type(error).__name__}. Write the record again") from None
    if not isinstance(data, dict):
        raise RecordError(f"{path} is no proof record: it holds no object")
    return _checked(data, path)


def _checked(data: dict[str, Any], path: str | Path) -> Record:
    try:
        sealed = data.get(SEAL)
        if type(data.get("schema")) is int and sealed != seal(data):
            what = "was changed after it was written" if isinstance(sealed, str) else f"has no `{SEAL}`"
            raise RecordError(f"it {what}, so it proves nothing: replay the record as it was, or judge anew")
        return opened(data)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise RecordError(f"{path}: the record cannot be read: too deep, or no numbers") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
