"""Values as JSON and back: traces, `--json`, proof records."""

import enum
import math
from pathlib import Path
from typing import Any, TypeVar

import cattrs
import numpy as np

from agent.workload.expression import Expression

T = TypeVar("T")


def converter() -> cattrs.Converter:
    """Expressions as text, enumerations as their values, no bytes; unknown fields are passed over."""
    made = cattrs.Converter(forbid_extra_keys=False)
    made.register_unstructure_hook(Expression, str)
    made.register_structure_hook(Expression, lambda text, _: Expression.parse_argument(text))
    made.register_unstructure_hook(enum.Enum, lambda member: member.value)
    made.register_unstructure_hook(Path, str)
    made.register_unstructure_hook(bytes, lambda _: None)
    return made


_CONVERTER = converter()


def unstructure(value: object) -> Any:
    """Plain dictionaries, lists, strings and numbers. Infinite and NaN floats become strings: JSON has none."""
    return finite(_CONVERTER.unstructure(value))


def structure(data: Any, kind: type[T]) -> T:
    return _CONVERTER.structure(data, kind)


def finite(data: Any) -> Any:
    """Plain values without infinite and NaN floats, and with keys that are strings."""
    if isinstance(data, dict):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    if isinstance(data, np.generic):
        data = data.item()
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data
