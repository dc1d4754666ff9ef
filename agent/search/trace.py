"""The trace of a search on disk: every event in order, and every verdict under its program's fingerprint.

An interrupted search goes on from it: candidates judged before are not judged again. A finished one is kept as a
record and the next search starts anew, since its seeds are spent.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cattrs
import platformdirs
from attrs import define, field

from agent.evaluation.plain import structure, unstructure
from agent.evaluation.verdict import Verdict
from agent.search.events import Event, Finished

SCHEMA = 1


@define
class Trace:
    """Appends to ``path`` line by line. A disk that cannot be written costs the trace, never the search:
    ``problem`` then says what happened."""

    path: Path
    verdicts: dict[str, Verdict] = field(factory=dict)
    problem: str = ""

    def event(self, event: Event) -> None:
        self._append({"event": type(event).__name__, "data": unstructure(event)})

    def judged(self, fingerprint: str, verdict: Verdict) -> None:
        self.verdicts[fingerprint] = verdict
        self._append({"judged": fingerprint, "verdict": unstructure(verdict)})

    def _append(self, record: Mapping[str, Any]) -> None:
        if self.problem:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            self.problem = (
                f"the search's trace cannot be written to {self.path} ({error.strerror}): "
                "the search goes on, but could not go on after an interruption"
            )


def folder() -> Path:
    """Where traces live: the user's state folder."""
    return Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "traces"


def open_trace(key: str, fresh: bool) -> Trace:
    """The trace for a search; with the verdicts of an earlier, interrupted search of the same key unless ``fresh``."""
    path = folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.jsonl"
    records = [] if fresh else _read(path)
    interrupted = records and not any(
        record.get("event") == Finished.__name__ and _is_end(record) for record in records
    )
    trace = Trace(path)
    if interrupted:
        trace.verdicts = _verdicts(records)
        return trace
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        trace.problem = f"the old trace {path} cannot be replaced ({error.strerror})"
    trace._append({"schema": SCHEMA, "key": key})
    return trace


def _verdicts(records: list[dict[str, Any]]) -> dict[str, Verdict]:
    """What was judged before. A verdict in the form of another version is left out: its candidate is judged again."""
    found: dict[str, Verdict] = {}
    for record in records:
        if "judged" in record:
            try:
                found[record["judged"]] = structure(record["verdict"], Verdict)
            except cattrs.errors.BaseValidationError:
                continue
    return found


def _is_end(record: Mapping[str, Any]) -> bool:
    return record["data"].get("reason") not in ("cancelled", "budget")


def _read(path: Path) -> list[dict[str, Any]]:
    """Every whole line; a line cut off by a crash, or a file that another version wrote, ends the reading."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    records: list[dict[str, Any]] = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            break
        if not isinstance(record, dict):
            break
        records.append(record)
    return records if records and records[0].get("schema") == SCHEMA else []
