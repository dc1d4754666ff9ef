"""Values as JSON and back: traces, `--json`, proof records."""

import enum
import math
from pathlib import Path
from typing import Any, TypeVar

import cattrs
import numpy as np

from agent.workload.expression import Expression

T = TypeVar("T")


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=False)
    converter.register_unstructure_hook(Expression, str)
    converter.register_structure_hook(Expression, lambda text, _: Expression.parse(text))
    converter.register_unstructure_hook(enum.Enum, lambda member: member.value)
    converter.register_unstructure_hook(Path, str)
    converter.register_unstructure_hook(bytes, lambda _: None)
    return converter


_CONVERTER = _converter()


def unstructure(value: object) -> Any:
    """Plain dictionaries, lists, strings and numbers. Infinite and NaN floats become strings: JSON has none."""
    return _finite(_CONVERTER.unstructure(value))


def structure(data: Any, kind: type[T]) -> T:
    return _CONVERTER.structure(data, kind)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if isinstance(data, np.generic):
        data = data.item()
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data
