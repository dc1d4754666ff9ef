"""Results that add up over several runs of minutes each, in a file bound to the code that they are about.

``CUDA_LSP_SHARDS`` names a folder; each benchmark that resumes keeps ``NAME.json`` there (without it nothing is kept).
``CUDA_LSP_SECONDS`` is how long one run may take: what is begun by then is ended, the rest is left to the next run.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.conftest import code_hash

Row = dict[str, Any]


@define
class Shard:
    """``rows`` by key: what was found so far, in this run or in earlier ones of the same code."""

    code: str
    ends: float
    file: Path | None = None
    rows: dict[str, Row] = field(factory=dict)

    @property
    def over(self) -> bool:
        return time.monotonic() > self.ends

    def add(self, key: str, row: Row) -> None:
        """Keep a row at once: the next one may be the end of this process."""
        self.rows[key] = row
        if self.file is not None:
            part = self.file.with_suffix(".part")
            part.write_text(json.dumps({"code": self.code, "rows": self.rows}, indent=1), encoding="utf-8")
            part.replace(self.file)


def opened(name: str, folders: Iterable[str]) -> Shard:
    """The rows of this benchmark that were made by the same code: that in ``folders``."""
    code = code_hash(folders)
    found = Shard(code, time.monotonic() + float(os.environ.get("CUDA_LSP_SECONDS", "inf")))
    folder = os.environ.get("CUDA_LSP_SHARDS")
    if folder:
        found.file = Path(folder) / f"{name}.json"
        found.file.parent.mkdir(parents=True, exist_ok=True)
        found.rows = _kept(found.file, code)
    return found


def _kept(file: Path, code: str) -> dict[str, Row]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        rows: dict[str, Row] = told["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if told.get("code") == code:
        return rows
    print(f"{file.name} is about other code: begun anew")
    return {}
