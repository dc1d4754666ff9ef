"""The JSON Schema of every ``--json``, derived from the values: ``python -m cuda_lsp.terminal.schema``."""

import enum
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from agent.evaluation.record.comparing import Replayed
from agent.evaluation.verdict import Verdict
from agent.execution.machine import Capability
from agent.search import events
from agent.search.proposal import Proposal
from agent.workload.expression import Expression
from cuda_lsp.cli.hints import FIELDS as HINTS
from cuda_lsp.cli.kernels import Listed
from cuda_lsp.cli.profile import FIELDS as PROFILE
from cuda_lsp.cli.scan import FIELDS as SCAN
from cuda_lsp.terminal.capture import FIELDS as CAPTURE
from cuda_lsp.terminal.output import HIDDEN, SCHEMA

_PLAIN = {str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, bytes: {"type": "null"}}
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}


def schema() -> dict[str, Any]:
    """The schema of the envelope, with one branch of fields per command."""
    definitions: dict[str, Any] = {}

    def of(kind: Any) -> dict[str, Any]:
        return schema_of(kind, definitions)

    event = {"anyOf": [_event(of(kind), kind) for kind in typing.get_args(events.Event)]}
    outcome = {
        "type": "object",
        "properties": {"reason": of(str), "message": of(str), "proposals": {"type": "array", "items": of(Proposal)}},
        "required": ["reason", "message", "proposals"],
    }
    commands: tuple[tuple[str, dict[str, Any]], ...] = (
        ("optimize", {"events": {"type": "array", "items": event}, "outcome": outcome}),
        ("verify", {"kernel": of(str), "verdict": of(Verdict)}),
        ("verify", {"replay": of(Replayed)}),
        ("kernels", {"file": of(str), "target": of(str), "kernels": {"type": "array", "items": of(Listed)}}),
        ("hints", {name: of(kind) for name, kind in HINTS.items()}),
        ("profile", {name: of(kind) for name, kind in PROFILE.items()}),
        ("scan", {name: of(kind) for name, kind in SCAN.items()}),
        ("capture", {name: of(kind) for name, kind in CAPTURE.items()}),
        ("doctor", {"capabilities": {"type": "array", "items": of(Capability)}}),
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cuda-lsp --json",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "tool": of(str),
            "command": of(str),
            "exit": of(int),
            "error": of(str),
        },
        "required": ["schema", "tool", "command", "exit"],
        "anyOf": [
            {"required": ["error"]},
            *[
                {"properties": {"command": {"const": name}, **fields}, "required": list(fields)}
                for name, fields in commands
            ],
        ],
        "$defs": definitions,
    }


def _event(reference: dict[str, Any], kind: type) -> dict[str, Any]:
    return {"allOf": [reference, {"properties": {"type": {"const": kind.__name__}}, "required": ["type"]}]}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value of ``kind``; classes go to ``definitions``. Raises TypeError for what has no JSON form."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if kind is float:
        return dict(_NUMBER)
    if kind is type(None):
        return {"type": "null"}
    if kind is Expression:
        return {"type": "string"}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(argument, definitions) for argument in arguments]}
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return {"type": "array", "prefixItems": [schema_of(argument, definitions) for argument in arguments]}
    if origin in (tuple, list, Sequence, frozenset):
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if attrs.has(kind):
        return _class(kind, definitions)
    raise TypeError(f"{kind} has no JSON form: hide the field that holds it")


def _class(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        attrs.resolve_types(kind)
        shown = [field for field in attrs.fields(kind) if (kind, field.name) not in HIDDEN]
        definitions[kind.__name__] = {
            "type": "object",
            "properties": {field.name: schema_of(field.type, definitions) for field in shown},
            "required": [field.name for field in shown],
        }
    return reference


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
