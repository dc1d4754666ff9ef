"""A baseline: what is known stays known when lines move, and what is new is told."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import parse
from cuda_lsp.settings import Settings
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.hints.baseline import new_baseline, read_baseline
from cuda_lsp.terminal.hints.reported import Reported, found_in
from tests.cli.hinting import FINE, RULES, SLOW, TREE, Hints, hints, put

__all__ = ["hints"]


def test_known_findings_do_not_count_and_new_ones_do(hints: Hints) -> None:
    put("src/k.cu", SLOW + TREE)
    code, out, err = hints("src", "--write-baseline", "known.json")
    assert (code, out, "2 written" in err) == (0, "", True)
    assert hints("src", "--baseline", "known.json")[:2] == (0, "")
    put("src/k.cu", "// above\n\n" + SLOW.replace("    if", "\t  if").replace("\n", "\r\n") + TREE)
    assert hints("src", "--baseline", "known.json")[:2] == (0, "")
    put("src/k.cu", SLOW + SLOW.replace("relax", "again") + TREE)
    code, out, err = hints("src", "--baseline", "known.json")
    assert (code, out.count("\n"), out.split(":")[1], "2 known" in err) == (1, 1, "7", True)
    put("src/other.cu")
    assert hints("src", "--baseline", "known.json")[1].count("\n") == 2


def test_where_the_command_is_run_does_not_matter(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    put("src/k.cu")
    hints(".", "--write-baseline", "known.json")
    (entry,) = json.loads(Path("known.json").read_text())["known"]
    assert entry["path"] == "src/k.cu"
    monkeypatch.chdir("src")
    assert hints("k.cu", "--baseline", "../known.json")[0] == 0


def test_json_tells_how_many_are_known(hints: Hints) -> None:
    put("k.cu")
    hints("k.cu", "--write-baseline", "known.json")
    answer = json.loads(hints("k.cu", "--baseline", "known.json", "--json")[1])
    assert (answer["exit"], answer["findings"], answer["known"]) == (0, [], 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"schema": 2, "known": []}',
        b'{"schema": 1, "known": [{"path": "a"}]}',
        b"\xff\xfe",
        b'{"schema": 1}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(hints: Hints, content: bytes) -> None:
    put("k.cu", FINE)
    put("known.json", content)
    with pytest.raises(CommandError, match="--write-baseline") as refused:
        hints("k.cu", "--baseline", "known.json")
    assert refused.value.code is Exit.INPUT


def test_a_baseline_that_cannot_be_written_leaves_no_trace(hints: Hints) -> None:
    put("k.cu")
    with pytest.raises(CommandError, match="cannot be written"):
        hints("k.cu", "--write-baseline", "none/known.json")
    Path("folder").mkdir()
    code, out, err = hints("k.cu", "--write-baseline", "folder", "--json")
    assert (code, json.loads(out)["exit"]) == (3, 3)
    assert "folder cannot be written" in err
    assert sorted(file.name for file in Path().iterdir()) == ["folder", "k.cu"]


def test_an_old_baseline_stays_where_a_new_one_is_not_finished(tmp_path: Path) -> None:
    old = put(str(tmp_path / "known.json"), "old")
    with pytest.raises(KeyboardInterrupt), new_baseline(str(old)) as new:
        new.add(_findings(SLOW.encode())[0])
        raise KeyboardInterrupt
    assert (old.read_text(), [file.name for file in tmp_path.iterdir()]) == ("old", ["known.json"])


def _findings(text: bytes) -> tuple[Reported, ...]:
    return found_in(parse(text, "k.cu"), Settings(select=RULES)).findings


_BLANKS = st.text(alphabet=" \t", max_size=3)
_BETWEEN = st.lists(st.sampled_from(["", "// a remark", "int unused;"]), max_size=5)


@given(between=_BETWEEN, indent=_BLANKS, crlf=st.booleans(), twins=st.integers(1, 3), more=st.integers(0, 2))
@settings(max_examples=25, deadline=None)
def test_lines_that_move_stay_known_and_each_new_twin_is_new(
    between: list[str], indent: str, crlf: bool, twins: int, more: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def text(count: int) -> str:
        return "".join(SLOW.replace("relax", f"relax{number}") for number in range(count))

    file = str(tmp_path_factory.mktemp("baseline") / "known.json")
    with new_baseline(file) as new:
        for finding in _findings(text(twins).encode()):
            new.add(finding)
        new.commit()
    moved = "\n".join([*between, text(twins + more).replace("    ", indent + " ")])
    found = _findings(moved.replace("\n", "\r\n" if crlf else "\n").encode())
    known = read_baseline(file)
    assert len(found) == twins + more
    assert sum(not known(finding) for finding in found) == more
