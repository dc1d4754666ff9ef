"""What accepting a proposal may do to a text, by plain replacement."""

import re
from typing import Any

_COMMENTS = re.compile(r"(?:[ \t\r\f\v]*(?://[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)?[ \t\r\f\v]*(?:\n|\Z))*")


def fits(before: str, after: str, anchors: dict[str, Any]) -> bool:
    """Whether the one text is the other with the proposal in it: each piece that it replaces replaced where it stands,
    its helpers in front of the kernel or of the comments above it, and nothing else."""
    if not all(old in before for old, _ in replaced(anchors)):
        return False
    old, new = anchors["kernel"]
    for found in re.finditer(re.escape(old), before):
        head, tail = before[: found.start()], before[found.end() :]
        for one, other in anchors["others"]:
            head, tail = head.replace(one, other), tail.replace(one, other)
        for at in (len(head), *(line.end() for line in re.finditer("\n", head)), 0):
            if head[:at] + anchors["above"] + head[at:] + new + tail == after and _COMMENTS.fullmatch(head, at):
                return True
    return False


def replaced(anchors: dict[str, Any]) -> list[tuple[str, str]]:
    return [(old, new) for old, new in (anchors["kernel"], *anchors["others"])]
