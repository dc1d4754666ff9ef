"""Text from elsewhere, made fit for one line of ours."""

import re
import unicodedata

_SPACE = re.compile(r"\s+")


def one_line(text: str, most: int = 300) -> str:
    """``text`` on one line of at most ``most`` characters, without what could steer a terminal or turn its direction
    (control, format and surrogate characters)."""
    kept = "".join(" " if char.isspace() else char for char in text[: 8 * most] if char.isspace() or _shown(char))
    joined = _SPACE.sub(" ", kept).strip()
    return joined if len(joined) <= most else joined[: most - 1].rstrip() + "…"


def _shown(char: str) -> bool:
    return unicodedata.category(char)[0] != "C"
