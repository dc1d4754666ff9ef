"""Candidates that compile to the same code are one candidate."""

import hashlib
import re

from agent.execution.compiler.result import Build
from agent.workload.binding import Bound

_NOISE = re.compile(r"//[^\n]*|^[ \t]*\.(loc|file)\b[^\n]*$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_NAME = re.compile(r"(?<![\w$.])_Z\w+")


def machine_key(build: Build, bound: Bound) -> str:
    """A hash of what the card would do: the PTX without lines, comments and mangled names, and the launches."""
    text = build.ptx
    for number, entry in enumerate(build.entries.values()):
        text = re.sub(rf"(?<![\w$]){re.escape(entry)}(?=[\W_])", f"entry{number}", text)
    names: dict[str, str] = {}
    text = _NAME.sub(lambda match: names.setdefault(match[0], f"name{len(names)}"), text)
    digest = hashlib.sha256(_SPACE.sub(" ", _NOISE.sub("", text)).encode())
    kernels = {kernel: f"entry{number}" for number, kernel in enumerate(build.entries)}
    digest.update(re.sub(r"kernel='([^']*)'", lambda m: kernels.get(m[1], m[1]), repr(bound.steps)).encode())
    return digest.hexdigest()
