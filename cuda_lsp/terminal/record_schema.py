"""The JSON Schema of a proof record, derived from its values: ``python -m cuda_lsp.terminal.record_schema``."""

import json
import typing
from typing import Any

from agent.evaluation.record.files import SEAL
from agent.evaluation.record.form import SCHEMA, Record
from agent.workload.plan import Step
from cuda_lsp.terminal.schema import schema_of


def record_schema() -> dict[str, Any]:
    """The schema of one record: its fields, and the seal over them."""
    definitions: dict[str, Any] = {}
    reference = schema_of(Record, definitions)
    for kind in typing.get_args(Step):
        definitions[kind.__name__]["properties"]["step"] = {"const": kind.__name__.lower()}
        definitions[kind.__name__]["required"].append("step")
    definitions[Record.__name__]["properties"]["schema"] = {"const": SCHEMA}
    sealed = {"properties": {SEAL: {"type": "string", "pattern": "^[0-9a-f]{64}$"}}, "required": [SEAL]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "cuda-lsp proof record",
        "allOf": [reference, sealed],
        "$defs": definitions,
    }


if __name__ == "__main__":
    print(json.dumps(record_schema(), indent=1))
