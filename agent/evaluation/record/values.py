"""A record as plain JSON values and back. What is read may come from anybody: types are exact, nothing is guessed."""

from typing import Any

import cattrs
from attrs import resolve_types
from cattrs.strategies import configure_tagged_union

from agent.evaluation.plain import converter, finite
from agent.evaluation.record.form import SCHEMA, Record
from agent.workload.expression import Expression
from agent.workload.grammar import MAX_ARGUMENT
from agent.workload.plan import Plan, Repeat, Step


class RecordError(Exception):
    """A record that cannot be used; the message says why, and what to do."""


def _exactly(kind: type) -> Any:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{kind.__name__} expected")
        return value

    return structure


def _number(value: Any, _: Any) -> float:
    if type(value) in (int, float) or value in ("inf", "-inf", "nan"):
        return float(value)
    raise TypeError("number expected")


def _expression(text: Any, _: Any) -> Expression:
    if type(text) is not str or len(text) > MAX_ARGUMENT:
        raise TypeError("expression expected")
    return Expression.parse_argument(text)


def _strict() -> cattrs.Converter:
    made = converter()
    resolve_types(Repeat)
    resolve_types(Plan)
    for kind in (int, str, bool):
        made.register_structure_hook(kind, _exactly(kind))
    made.register_structure_hook(float, _number)
    made.register_structure_hook(Expression, _expression)
    # last: it takes the hooks that are there
    configure_tagged_union(Step, made, tag_name="step", tag_generator=lambda kind: kind.__name__.lower())
    return made


_CONVERTER = _strict()


def plain(record: Record) -> dict[str, Any]:
    """Dictionaries, lists, strings and numbers. Infinite and NaN floats are strings: JSON has none."""
    told = finite(_CONVERTER.unstructure(record))
    assert isinstance(told, dict)
    return told


def opened(data: dict[str, Any]) -> Record:
    """The record that ``data`` tells. Raises RecordError, naming the first field that is none."""
    schema = data.get("schema")
    if type(schema) is not int:
        raise RecordError("this is no proof record: it has no `schema`")
    if schema != SCHEMA:
        newer = "a newer cuda-lsp wrote it; update this one" if schema > SCHEMA else "no cuda-lsp ever wrote that"
        raise RecordError(f"the record is of schema {schema}, and schema {SCHEMA} is read here: {newer}")
    try:
        return _CONVERTER.structure(data, Record)
    except cattrs.errors.BaseValidationError as error:
        first = next(iter(cattrs.transform_error(error)), "it has another form")
        raise RecordError(f"the record cannot be read: {first.replace('@ $.', 'at ')}") from None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise RecordError(f"the record cannot be read: {type(error).__name__}") from None
