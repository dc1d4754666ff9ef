"""A trace of all messages, one JSON object a line, fit to be attached to a bug report.

Unless it is asked for, no text of the user's gets in: every string is replaced by its length, except where the protocol
itself, and not the user, says what stands there.
"""

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

from agent.source.lexing import word_set
from cuda_lsp.transport import Tracer

log = logging.getLogger(__name__)

# values of these keys are words of the protocol or of ours
_PLAIN = word_set(
    "jsonrpc id method languageId kind command token encoding positionEncoding positionEncodings trace valueSet "
    "contentFormat properties section registerOptions registrations documentChanges version"
)
_KEY = re.compile(r"[A-Za-z][\w$/.-]{0,40}")
_WORD = re.compile(r"[\w$./-]{0,80}")


def open_trace(file: Path, with_source: bool) -> Tracer:
    """A function that takes ``in`` or ``out`` and a message as plain JSON, and writes it down at once. A disk that is
    full ends the trace and nothing else."""
    stream = file.open("a", encoding="utf-8")
    began = time.monotonic()
    full = False

    def write(direction: str, message: Any) -> None:
        nonlocal full
        if full:
            return
        told = message if with_source else without_text(message)
        line = {"ms": round((time.monotonic() - began) * 1e3, 3), "direction": direction, "message": told}
        try:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
        except OSError as error:
            full = True
            log.warning("the trace ends here: %s", error)

    return write


def without_text(value: Any, key: str = "") -> Any:
    """``value`` with its strings replaced by their lengths."""
    if isinstance(value, dict):
        return {_key(name): without_text(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_text(inner, key) for inner in value]
    if isinstance(value, str) and not (key in _PLAIN and _WORD.fullmatch(value)):
        return f"<{len(value)} characters>"
    return value


def _key(name: str) -> str:
    """Keys are the protocol's, but for those of maps by URI."""
    return name if _KEY.fullmatch(name) else f"<{len(name)} characters>"
