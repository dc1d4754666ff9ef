"""The rules over files from the command line: what is printed, in which order, and the exit code."""

import json
import os
from pathlib import Path

import click
import jsonschema
import pytest

from cuda_lsp.terminal.hints import form
from tests.cli.hinting import FINE, LINE, SLOW, TREE, Hints, hints, put
from tests.cli.running import run

__all__ = ["hints"]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema.json").read_text())


def test_a_finding_is_a_line_and_an_exit_code(tmp_path: Path) -> None:
    put(str(tmp_path / "src" / "slow.cu"))
    done = run("hints", "src", "--select", "A1", cwd=tmp_path)
    assert done.stdout.startswith(f"src{os.sep}slow.cu:{LINE}")
    assert done.stdout.count("\n") == 1
    assert done.returncode == 1
    assert "1 warning" in done.stderr


def test_errors_of_either_json_are_json(tmp_path: Path) -> None:
    for told in (("--json",), ("--format", "json")):
        done = run("hints", ".", "--baseline", "none.json", *told, cwd=tmp_path)
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["exit"], "none.json" in answer["error"]) == (3, 3, True)


def test_files_come_in_one_order_and_each_once(hints: Hints) -> None:
    for name in ("b/z.cu", "a/y.cuh", "m.cu", "a/b/c.cu"):
        put(name)
    code, out, _ = hints(".", "a", "m.cu")
    found = [line.split(":")[0].replace(os.sep, "/") for line in out.splitlines()]
    assert (code, found) == (1, ["m.cu", "a/y.cuh", "a/b/c.cu", "b/z.cu"])


@pytest.mark.parametrize(
    ("text", "fail_on", "code"),
    [
        (SLOW, "warning", 1),
        (SLOW, "error", 0),
        (SLOW, "hint", 1),
        (SLOW, "never", 0),
        (TREE, "warning", 0),
        (TREE, "information", 0),
        (TREE, "hint", 1),
        (FINE, "hint", 0),
    ],
)
def test_the_exit_code_follows_the_severity(hints: Hints, text: str, fail_on: str, code: int) -> None:
    put("k.cu", text)
    assert hints("k.cu", "--fail-on", fail_on)[0] == code


def test_rules_are_selected_ignored_and_silenced(hints: Hints) -> None:
    put("k.cu", SLOW + TREE)
    rules = lambda *told: [line.split()[2] for line in hints("k.cu", *told)[1].splitlines()]  # noqa: E731
    assert rules() == ["A1", "W6"]
    assert {name[0] for name in rules("--select", "W")} == {"W"}
    assert "A1" in rules("--select", "W,A", "--ignore", "W6")
    assert "W6" not in rules("--select", "W,A", "--ignore", "W6")
    assert rules("--ignore", "A1") == ["W6"]
    put("k.cu", SLOW.replace("0.1;", "0.1;  // cuda-lsp: ignore[A1]") + TREE)
    assert rules() == ["W6"]


def test_a_wrong_command_line_is_refused(hints: Hints) -> None:
    for told, words in (
        (("k.cu", "--select", "Q77"), "'Q77' is no rule"),
        (("k.cu", "--exclude", "/"), "excludes nothing"),
        (("k.cu", "--baseline", "a", "--write-baseline", "b"), "leave --baseline out"),
        ((), "PATHS"),
    ):
        with pytest.raises(click.UsageError) as refused:
            hints(*told)
        assert words in refused.value.format_message()


def test_a_project_says_which_rules_run_and_what_is_left_out(hints: Hints) -> None:
    put("k.cu", SLOW + TREE)
    put("gen/k.cu")
    put(".cuda-lsp.toml", '[hints]\nignore = ["W6"]\nexclude = ["gen/"]\nseverities = { A1 = "error" }\n')
    code, out, _ = hints(".", "--fail-on", "error")
    assert (code, out.count("\n"), ": error A1 " in out) == (1, 1, True)
    assert "W6" in hints(".", "--select", "W6", "--ignore", "A1")[1]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[hints]\nselekt = ["A"]\n', "hints.selekt"),
        ('[hints]\nselect = ["Q77"]\n', "Q77"),
        ("[hints]\nexclude = 3\n", "hints.exclude"),
        ("hints = 3\n", "as in [hints]"),
        ('[hints]\nexclude = ["/"]\n', "excludes nothing"),
    ],
)
def test_wrong_settings_are_said_once_and_are_no_success(hints: Hints, table: str, words: str) -> None:
    put("a.cu", FINE)
    put("b.cu", FINE)
    put(".cuda-lsp.toml", table)
    code, out, err = hints(".")
    assert (code, out, err.count(words)) == (3, "", 1)


def test_json_holds_against_the_published_schema(hints: Hints) -> None:
    put("k.cu", SLOW + TREE)
    put("bad.cu", b"\x7fELF\0")
    code, out, _ = hints(".", "--json")
    answer = json.loads(out)
    jsonschema.validate(answer, SCHEMA)
    assert (code, answer["exit"], answer["command"]) == (1, 1, "hints")
    first, second = answer["findings"]
    assert (first["rule"], first["place"]) == ("A1", {"line": 3, "column": 30, "end_line": 3, "end_column": 33})
    assert first["source"] == {"before": "if (i < n) y[i] = x[i] * ", "marked": "0.1", "after": ";"}
    assert (second["rule"], second["place"]["line"]) == ("W6", 4 + 6)
    assert (answer["files"], answer["kernels"], answer["damaged"], len(answer["problems"])) == (1, 2, 0, 1)


def test_json_of_nothing_is_json(hints: Hints) -> None:
    put("k.cu", FINE)
    answer = json.loads(hints("k.cu", "--format", "json")[1])
    jsonschema.validate(answer, SCHEMA)
    assert (answer["exit"], answer["findings"]) == (0, [])


def test_a_terminal_shows_the_line_with_the_place_marked(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    put("k.cu", SLOW.replace("y[i] = ", "\t/* \x1b[2J 日 */ y[i] = "))
    monkeypatch.setattr(form.sys.stdout, "isatty", lambda: True)
    _, source, mark = click.unstyle(hints("k.cu")[1]).splitlines()
    assert "\x1b" not in source
    # 日 is two cells wide: count them as a terminal does
    assert mark.index("^") == source.index("0.1") + 1
    assert mark.count("^") == 3


def test_a_kernel_that_cannot_be_read_is_counted(hints: Hints) -> None:
    put("k.cu", SLOW + "__global__ void broken(float* x) { x[0] = ; }\n")
    code, out, err = hints("k.cu")
    assert (code, out.count("\n")) == (1, 1)
    assert "were not looked at: 1" in err
