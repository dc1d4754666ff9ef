"""Findings for code hosts: SARIF 2.1.0, workflow commands, and a hook."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent.analysis.rules import rules
from cuda_lsp.terminal.hints.github import as_command
from cuda_lsp.terminal.hints.reported import Excerpt, Nearby, Place, Reported
from cuda_lsp.terminal.hints.sarif import as_result
from tests.cli.hinting import SLOW, TREE, Hints, hints, put

__all__ = ["hints"]
ROOT = Path(__file__).resolve().parents[2]

_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_NUMBER = {"type": "integer", "minimum": 1}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {"required": ["uri"], "properties": {"uri": {"pattern": "^[!-~]+$"}}},
                "region": {
                    "required": ["startLine", "startColumn", "endLine", "endColumn"],
                    "additionalProperties": _NUMBER,
                },
            },
        }
    },
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "items": {
                "required": ["tool", "results", "columnKind"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": _TEXT,
                                                "fullDescription": _TEXT,
                                                "help": _TEXT,
                                                "defaultConfiguration": {"properties": {"level": _LEVEL}},
                                                # absolute, where it is there
                                                "helpUri": {"pattern": "^[a-z]+:"},
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "items": {
                            "required": ["message", "ruleId", "locations"],
                            "properties": {
                                "message": _TEXT,
                                "level": _LEVEL,
                                "locations": {"items": _LOCATION, "minItems": 1},
                                "relatedLocations": {"items": _LOCATION},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                            },
                        }
                    },
                    "invocations": {
                        "items": {
                            "required": ["executionSuccessful"],
                            "properties": {"toolExecutionNotifications": {"items": {"required": ["message"]}}},
                        }
                    },
                },
            },
        },
    },
}
"""What the standard (OASIS SARIF 2.1.0, sections 3.13 to 3.58) demands of the objects that are written here."""


def _sarif(out: str) -> dict[str, Any]:
    log = json.loads(out)
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    return run


def test_sarif_has_what_the_standard_demands(hints: Hints) -> None:
    put("a dir/ü.cu", SLOW.replace("if (i", "/* 😀 */ if (i") + TREE)
    put("bad.cu", b"\0")
    code, out, _ = hints(".", "--format", "sarif")
    run = _sarif(out)
    first, second = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20dir/%C3%BC.cu", "uriBaseId": "%SRCROOT%"}
    # "/* 😀 */ " is nine UTF-16 units
    assert place["region"] == {"startLine": 3, "startColumn": 39, "endLine": 3, "endColumn": 42}
    assert (first["level"], second["level"]) == ("warning", "note")
    listed = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in listed] == [rule.id for rule in rules()]
    assert all(listed[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (code, True) == (1, True)
    assert len(invocation["toolExecutionNotifications"]) == 1


def test_a_fingerprint_outlives_a_move_and_tells_twins_apart(hints: Hints) -> None:
    def prints() -> list[dict[str, str]]:
        return [one["partialFingerprints"] for one in _sarif(hints("k.cu", "--format", "sarif")[1])["results"]]

    put("k.cu", SLOW + SLOW.replace("relax", "again"))
    before = prints()
    assert before[0] != before[1]
    put("k.cu", "\n// moved\n" + SLOW.replace("    if", "\tif") + SLOW.replace("relax", "again"))
    assert prints() == before


def test_sarif_of_nothing_and_of_a_failure(hints: Hints) -> None:
    put("k.cu", b"\0")
    run = _sarif(hints("k.cu", "--format", "sarif")[1])
    assert (run["results"], run["invocations"][0]["executionSuccessful"]) == ([], False)


def test_every_page_that_sarif_names_is_there(hints: Hints) -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "rules.md").read_text(encoding="utf-8"), re.MULTILINE)
    there = {heading.strip().lower().replace(" ", "-") for heading in headings}
    put("k.cu")
    listed = _sarif(hints("k.cu", "--format", "sarif")[1])["tool"]["driver"]["rules"]
    pages = {rule["id"]: rule["properties"]["page"].partition("#") for rule in listed}
    assert {file for file, _, _ in pages.values()} == {"docs/rules.md"}
    # the page is made from the rules, and may be older than the newest of them
    known = {heading.split("-")[0].upper() for heading in there}
    assert all(anchor in there for identity, (_, _, anchor) in pages.items() if identity in known)


def _finding(message: str, path: str = "k.cu", lines: int = 1) -> Reported:
    place = Place(3, 5, 2 + lines, 9)
    near = (Nearby(place, message),)
    return Reported(
        path, "M1", "strided-access", "information", message, place, near, None, "0" * 16, 1, Excerpt("", "x", "")
    )


def test_a_message_cannot_smuggle_in_another_command_or_a_link(tmp_path: Path) -> None:
    told = as_command(_finding("50 %\r\n::error::x [a](b), c: d"), str(tmp_path))
    assert told.splitlines() == [told]
    assert told.endswith("::50 %25%0D%0A::error::x [a](b), c: d")
    result = as_result(_finding("see [here](https://example.org)"))
    assert "](" not in json.dumps(result)


@pytest.mark.parametrize("severity", ["error", "warning", "information", "hint"])
def test_columns_are_told_where_a_finding_is_on_one_line(severity: str, tmp_path: Path) -> None:
    assert ",col=5,endColumn=9," in as_command(_finding("m"), str(tmp_path))
    assert "ol" not in as_command(_finding("m", lines=2), str(tmp_path)).split("title")[0]


def test_github_counts_paths_from_the_root_of_the_repository(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    put("sub/k.cu")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path.cwd()))
    monkeypatch.chdir("sub")
    assert hints("k.cu", "--format", "github")[1].startswith("::warning file=sub/k.cu,line=3,")


def test_the_hook_names_a_command_and_files_that_it_takes() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    told = dict(re.findall(r"^[- ] (\w+): (.+)$", text, re.MULTILINE))
    assert told["language"] == "python"
    name, command = told["entry"].split()
    assert name == "cuda-lsp"
    assert importlib.import_module(f"cuda_lsp.cli.{command}").command.name == command
    takes = re.compile(told["files"])
    assert [n for n in ("a.cu", "b/c.cuh", "d.hpp", "e.py", "f.cu.txt") if takes.search(n)] == [
        "a.cu",
        "b/c.cuh",
        "d.hpp",
    ]
