"""A record that was written once by schema 1, and ways to change one as somebody with bad intentions would."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.evaluation.record.files import SEAL, seal

GOLDEN = Path(__file__).parent / "golden" / "row_sums.v1.json"


def golden() -> dict[str, Any]:
    """The golden record as plain values."""
    found = json.loads(GOLDEN.read_text())
    assert isinstance(found, dict)
    return found


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values that are neither objects nor arrays."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if inside is None:
        yield path
        return
    for key, value in inside:
        yield from leaves(value, (*path, key))


def put(data: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at a place."""
    changed = copy.deepcopy(data)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def get(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """With the seal that somebody who knows how to make it would put on it."""
    return {**data, SEAL: seal(data)}


def save(data: dict[str, Any], folder: Path) -> Path:
    path = folder / "record.json"
    path.write_text(json.dumps(data))
    return path
