"""Findings as SARIF 2.1.0, the exchange format of static analysis that code hosts show beside changes.

Field names and their meaning: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cuda_lsp
from agent.analysis.rules import Rule, rules
from agent.analysis.rules.pages import section
from cuda_lsp.terminal.exits import Exit
from cuda_lsp.terminal.hints.baseline import path_from
from cuda_lsp.terminal.hints.form import Form, Tally
from cuda_lsp.terminal.hints.reported import Place, Reported

BASE = "%SRCROOT%"
"""What paths count from: the folder that the command ran in."""
_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_SUCCESSFUL = (Exit.OK, Exit.NEGATIVE)


def sarif_form() -> Form:
    return Form(lambda found: json.dumps(as_result(found)), _begin, _end, ",\n")


def _begin() -> str:
    driver = {"name": "cuda-lsp", "version": cuda_lsp.__version__, "rules": [_descriptor(rule) for rule in rules()]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that the command ran in."}}},
    }
    head = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
    }
    return f'{json.dumps(head)[:-1]}, "runs": [{json.dumps(run)[:-1]}, "results": [\n'


def _end(tally: Tally, code: Exit) -> str:
    invocation = {
        "executionSuccessful": code in _SUCCESSFUL,
        "exitCode": int(code),
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": _message(f"{problem.path}: {problem.message}"),
                "locations": [{"physicalLocation": {"artifactLocation": _artifact(problem.path)}}],
            }
            for problem in tally.problems
        ],
    }
    return f'\n], "invocations": [{json.dumps(invocation)}]}}]}}\n'


def _descriptor(rule: Rule) -> dict[str, Any]:
    """A rule's page goes along whole: a `helpUri` must be absolute, and what works offline is the text."""
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.why, "markdown": section(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity.value], "enabled": rule.default},
        "properties": {"tags": [rule.cost.value], "page": f"docs/rules.md#{rule.id.lower()}-{rule.name}"},
    }


def as_result(found: Reported) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "ruleIndex": _indices()[found.rule],
        "level": _LEVELS[found.severity],
        "message": _message(found.message),
        "locations": [_location(found.path, found.place)],
        "partialFingerprints": {"ruleAndLine/v1": f"{found.rule}:{found.line_hash}:{found.occurrence}"},
    }
    if found.counted:
        result["properties"] = {"counted": True}
    if found.related:
        result["relatedLocations"] = [
            {"id": number, "message": _message(other.words), **_location(found.path, other.place)}
            for number, other in enumerate(found.related, 1)
        ]
    return result


def _message(text: str) -> dict[str, str]:
    """Brackets followed by parentheses would be a link, and the text quotes the file."""
    return {"text": text.replace("](", "] (")}


@cache
def _indices() -> dict[str, int]:
    return {rule.id: index for index, rule in enumerate(rules())}


def _location(path: str, place: Place) -> dict[str, Any]:
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    return {"physicalLocation": {"artifactLocation": _artifact(path), "region": region}}


def _artifact(path: str) -> dict[str, str]:
    """Relative where the file lies below the folder that the command runs in."""
    seen = path_from(os.getcwd(), path)  # noqa: PTH109
    if seen.startswith("../") or os.path.isabs(seen):  # noqa: PTH117
        return {"uri": Path(os.path.abspath(path)).as_uri()}  # noqa: PTH100
    return {"uri": quote(os.fsencode(seen)), "uriBaseId": BASE}
