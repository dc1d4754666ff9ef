"""Findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

Documented at https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

import os
from collections.abc import Mapping

from cuda_lsp.terminal.hints.baseline import path_from
from cuda_lsp.terminal.hints.form import Form
from cuda_lsp.terminal.hints.reported import Reported

_COMMANDS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def github_form() -> Form:
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()  # noqa: PTH109
    return Form(lambda found: as_command(found, root) + "\n")


def as_command(found: Reported, root: str) -> str:
    """One line. ``file`` counts from the repository's root; columns are told only where the finding is on one line,
    as GitHub wants it."""
    place = found.place
    properties = {"file": path_from(root, found.path), "line": place.line, "endLine": place.end_line}
    if place.line == place.end_line:
        properties |= {"col": place.column, "endColumn": place.end_column}
    properties["title"] = f"{found.rule} {found.name}"
    told = ",".join(f"{name}={_escaped(str(value), _PROPERTY)}" for name, value in properties.items())
    return f"::{_COMMANDS[found.severity]} {told}::{_escaped(found.message, _DATA)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(one, one) for one in text.encode("utf-8", "replace").decode())
