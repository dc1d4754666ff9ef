"""JSON out of a model's answer, however it is wrapped."""

import json
import re
from typing import Any

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCE = re.compile(
    r"^[ \t]*(?:```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ \t]*(?:```+|~~~+)[ \t]*$|\Z)", re.DOTALL | re.M
)
_STARTS = 64


def without_thoughts(text: str) -> str:
    """The answer without the thinking that some servers leave in front of it."""
    return _THOUGHTS.sub("", text).strip()


def fenced(text: str) -> tuple[tuple[str, str], ...]:
    """Every fenced block as (language, content); one that is never closed runs to the end."""
    return tuple((match[1].lower(), match[2]) for match in _FENCE.finditer(text))


def json_object(text: str) -> dict[str, Any] | None:
    """The answer's JSON object: the whole of it, a fenced block, or the first that stands anywhere. None where there
    is none. Strings may hold raw line ends, as small models write them."""
    plain = without_thoughts(text)
    for piece in (plain, *(content for language, content in fenced(plain) if language in ("", "json", "json5"))):
        found = _loads(piece)
        if found is not None:
            return found
    decoder = json.JSONDecoder(strict=False)
    at = plain.find("{")
    for _ in range(_STARTS):
        if at < 0:
            break
        try:
            found, _ = decoder.raw_decode(plain, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found:
            return found
        at = plain.find("{", at + 1)
    return None


def _loads(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
