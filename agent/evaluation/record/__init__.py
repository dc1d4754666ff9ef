"""Proof records: a verdict with all that it takes to repeat it, as one JSON file (docs/record.md)."""

from agent.evaluation.record.files import Unwritable, read, write
from agent.evaluation.record.form import SCHEMA, Record
from agent.evaluation.record.making import record
from agent.evaluation.record.values import RecordError

__all__ = ["SCHEMA", "Record", "RecordError", "Unwritable", "read", "record", "write"]
