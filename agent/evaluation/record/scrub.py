"""What a record must not tell: where somebody's files are."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_REST = r"[^\s:\"'`,;()<>|\[\]{}]*"


def scrubbed(data: Any, paths: Sequence[str]) -> Any:
    """``data`` (plain values) with each path below the folders of ``paths``, the user's home and the temporary folder
    cut down to its last part."""
    folders = {str(Path.home()), tempfile.gettempdir()}
    for path in filter(None, paths):
        folders |= {str(Path(path).resolve().parent), str(Path(path).absolute().parent)}
    found = sorted((folder for folder in folders if len(Path(folder).parts) > 1), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w/])(?:{'|'.join(map(re.escape, found))})(?P<rest>/{_REST})?(?![\w-])")
    return _all(data, pattern) if found else data


def _all(data: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(data, str):
        return pattern.sub(_last, data)
    if isinstance(data, dict):
        return {_all(name, pattern): _all(value, pattern) for name, value in data.items()}
    return [_all(value, pattern) for value in data] if isinstance(data, list) else data


def _last(match: re.Match[str]) -> str:
    return Path(match["rest"] or "").name or "~"
