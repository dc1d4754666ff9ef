"""What is not looked at, by patterns as a ``.gitignore`` has them."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

SKIPPED = (
    *(".*/", "build/", "cmake-build-*/", "CMakeFiles/", "_deps/", "bazel-*/"),
    *("node_modules/", "__pycache__/", "site-packages/"),
)
"""Folders that are not gone into unless a pattern such as ``!build/`` says so; one that is named always is."""

_TOKEN = re.compile(r"\*\*/|/\*\*\Z|\*+|\?|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)


@frozen
class Pattern:
    """``anchored``: matched against the whole path from ``root`` on, else against the last part of it."""

    root: str
    expression: re.Pattern[str]
    anchored: bool
    folders_only: bool
    negated: bool


def patterns(globs: Iterable[str], root: str) -> tuple[Pattern, ...]:
    """Patterns that count from the folder ``root``. Raises ValueError for one that means nothing."""
    return tuple(_pattern(glob.strip(), os.path.abspath(root)) for glob in globs)  # noqa: PTH100 (links stay links)


def _pattern(glob: str, root: str) -> Pattern:
    negated = glob.startswith("!")
    bare = glob.removeprefix("!").removeprefix("./").rstrip("/")
    if not bare.strip("/"):
        raise ValueError(f"`{glob}` excludes nothing: write a pattern as in .gitignore, such as `gen/` or `*_test.cu`")
    try:
        with warnings.catch_warnings():
            # of sets that may mean more one day
            warnings.simplefilter("ignore", FutureWarning)
            expression = re.compile("".join(_translated(bare.removeprefix("/"))), re.DOTALL)
    except re.error as error:
        raise ValueError(f"`{glob}` is no pattern: {error}") from None
    return Pattern(root, expression, "/" in bare, glob.endswith("/"), negated)


def _translated(glob: str) -> Iterator[str]:
    for token in _TOKEN.findall(glob):
        if token == "**/":
            yield "(?:.*/)?"
        elif token == "/**":
            yield "/.*"
        elif token.startswith("*"):
            yield "[^/]*"
        elif token == "?":
            yield "[^/]"
        elif len(token) > 1:
            yield "[" + ("^" if token[1] in "!^" else "") + token[1:].lstrip("!^").replace("\\", "\\\\")
        else:
            yield re.escape(token)


def excluded(path: str, is_folder: bool, patterns: Sequence[Pattern]) -> bool:
    """Whether the absolute ``path`` itself is meant, by the last pattern that meets it."""
    for pattern in reversed(patterns):
        if (is_folder or not pattern.folders_only) and _meets(path, pattern):
            return not pattern.negated
    return False


def excluded_within(path: str, is_folder: bool, patterns: Sequence[Pattern]) -> bool:
    """Whether the absolute ``path`` or a folder that it lies in is excluded, as far up as the patterns' roots."""
    below = [pattern for pattern in patterns if path.startswith(_folder(pattern.root))]
    top = min((len(_folder(pattern.root)) for pattern in below), default=len(path))
    ends = [at for at in range(top, len(path)) if path[at] == os.sep]
    return excluded(path, is_folder, patterns) or any(excluded(path[:end], True, below) for end in ends)


def _meets(path: str, pattern: Pattern) -> bool:
    if not pattern.anchored:
        return pattern.expression.fullmatch(path.rpartition(os.sep)[2]) is not None
    root = _folder(pattern.root)
    return path.startswith(root) and pattern.expression.fullmatch(path[len(root) :].replace(os.sep, "/")) is not None


def _folder(path: str) -> str:
    return path.rstrip(os.sep) + os.sep
