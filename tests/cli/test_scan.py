"""``cuda-lsp scan``, as a user sees it: one code base, scanned once."""

import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent.execution.children.messages import CompilerIs
from cuda_lsp.cli import scan as module
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.schema import schema
from tests.cli.running import TRANSPOSED, run, run_json
from tests.cli.scanning import ASKING, HOSTILE_NAME, code_base


class Scan:
    """One scan with everything that it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = code_base(folder / "project")
        self.env = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": ""}
        self.command = ("scan", "src", "--jobs", "2")
        page = folder / "page.html"
        self.code, answer = run_json(*self.command, "--html", str(page), cwd=self.folder, env=self.env)
        self.answer: dict[str, Any] = answer
        self.report = answer["report"]
        self.page = page.read_text()

    def again(self, *options: str) -> "subprocess.CompletedProcess[str]":
        return run(*self.command, *options, cwd=self.folder, env=self.env)

    def without(self) -> dict[str, tuple[str, str]]:
        """The cause and the words by the name of the kernel."""
        return {
            one["kernel"]: (group["cause"], group["words"])
            for group in self.report["groups"]
            for one in group["kernels"]
        }


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scan]:
    yield Scan(tmp_path_factory.mktemp("scan"))


def test_kernels_are_ranked_by_what_the_floor_would_save(scan: Scan) -> None:
    assert scan.code == 0
    ranked = scan.report["ranked"]
    assert ranked[0]["scanned"]["kernel"] == "scale"
    assert {one["scanned"]["kernel"] for one in ranked} == {"scale", "row_sums", "copy", "cop1"}
    saved = [one["scanned"]["cost"]["seconds"] - one["scanned"]["cost"]["floor_seconds"] for one in ranked]
    assert saved == sorted(saved, reverse=True)
    total = sum(one["scanned"]["cost"]["seconds"] for one in ranked)
    assert scan.report["seconds"] == pytest.approx(total)
    for one, much in zip(ranked, saved, strict=True):
        cost = one["scanned"]["cost"]
        assert one["headroom"] == pytest.approx(cost["seconds"] / cost["floor_seconds"])
        assert one["share"] == pytest.approx(cost["seconds"] / total)
        assert one["gain"] == pytest.approx(much / total) == pytest.approx(one["share"] * (1 - 1 / one["headroom"]))


def test_the_floor_is_what_is_touched_over_the_cards_bandwidth(scan: Scan) -> None:
    cost = scan.report["ranked"][0]["scanned"]["cost"]
    # x and y of 4096 by 6144 floats, once each, at the 4.8 TB/s of an H200
    assert cost["floor"] == "memory floor"
    assert cost["floor_seconds"] == pytest.approx(2 * 4 * 4096 * 6144 / 4.8e12, rel=1e-3)
    assert "not measured" in cost["counted"] and "9 of 98,304 blocks" in cost["counted"]


def test_findings_and_counted_lines_are_told_with_the_kernel(scan: Scan) -> None:
    first = scan.report["ranked"][0]["scanned"]
    assert first["hints"] and {hint["line"] for hint in first["hints"]} == {4}
    assert [hot["line"] for hot in first["cost"]["hot"]] == [4] * len(first["cost"]["hot"]) != []
    assert sum(scan.report["rules"].values()) >= len(first["hints"])


def test_what_is_in_the_way_of_others_is_grouped_by_cause(scan: Scan) -> None:
    without = scan.without()
    assert without["torn"][0] == "parse errors"
    assert without["strange"][0] == "does not compile" and "no_such_function" in without["strange"][1]
    assert without["copy"][0] == "shares its name"
    assert without["fill"][0] == without["lonely"][0] == "the workload is not known"
    asked = {one["kernel"]: one["asks"] for group in scan.report["groups"] for one in group["kernels"]}
    assert asked["lonely"] == ["launch of `lonely`?"]
    assert any("n" in question for question in asked["fill"])


def test_what_cannot_be_read_is_said_once_and_links_are_not_followed(scan: Scan) -> None:
    problems = {Path(one["path"]).name: one["message"] for one in scan.report["problems"]}
    assert set(problems) == {"binary.cu", "wide.cu"}
    assert "binary file" in problems["binary.cu"] and "UTF-16" in problems["wide.cu"]
    assert [reason for reason in scan.report["left"] if "symbolic links" in reason]
    assert not [one for one in scan.report["ranked"] if "loop" in one["scanned"]["path"]]


def test_the_json_holds_against_the_schema(scan: Scan) -> None:
    jsonschema.validate(scan.answer, schema())
    assert scan.answer["schema"] == 1 and scan.answer["command"] == "scan"


def test_the_same_text_is_not_counted_twice_and_another_is(scan: Scan) -> None:
    done = scan.again("--top", "1")
    assert done.returncode == 0, done.stderr
    kept = re.search(r"(\d+) of them known from before", done.stdout)
    # all but torn and one of each pair of twins, of which the list says all there is
    assert kept and int(kept[1]) == scan.report["kernels"] - 3
    (scan.folder / "src" / "rows.cu").write_text((scan.folder / "src" / "rows.cu").read_text() + "\n// more\n")
    changed = re.search(r"(\d+) of them known", scan.again("--top", "1").stdout)
    assert changed and int(changed[1]) == int(kept[1]) - 1


def test_the_table_says_what_its_figures_are(scan: Scan) -> None:
    done = scan.again("--top", "1")
    said = done.stdout
    assert "nothing was measured" in said and "Ranked by what reaching the floor would save" in said
    row = next(line for line in said.splitlines() if line.startswith("1 "))
    assert row.split()[-2:] == ["scale", "src/deep/scale.cu:1"] and "41.94 us" in row
    assert "and 3 more, which would save" in said
    assert "no estimate of" in said and "asks: launch of `lonely`?" in said and "not read: 2 paths" in said


class Page(HTMLParser):
    """Tags that close as they open, and every attribute."""

    VOID = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_in_itself_and_hostile_text_stays_text(scan: Scan) -> None:
    page = Page(scan.page)
    assert page.open == []
    assert not {"script", "img", "link", "iframe", "object", "base", "form"} & set(page.tags)
    assert {"svg", "table", "details"} <= set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "action", "srcdoc")
        if name == "href":
            assert re.fullmatch(r"#k\d+", value or "")
    said = " ".join(page.text)
    assert HOSTILE_NAME in said and "<script>alert(3)</script>" in said
    assert "nothing was measured" in said and "prefers-color-scheme: dark" in said
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


def test_every_link_of_the_page_leads_to_a_row(scan: Scan) -> None:
    page = Page(scan.page)
    rows = {value for name, value in page.attributes if name == "id"}
    assert {(value or "")[1:] for name, value in page.attributes if name == "href"} <= rows
    assert rows == {f"k{one['rank']}" for one in scan.report["ranked"]}


# --- what the command does without a scan -----------------------------------------------------------------------------


def test_no_kernels_at_all_is_said_with_what_was_not_read(tmp_path: Path) -> None:
    (tmp_path / "plain.cu").write_text("int main() { return 0; }\n")
    (tmp_path / "binary.cu").write_bytes(b"__global__\0")
    done = run("scan", str(tmp_path))
    assert done.returncode == 3 and done.stdout == ""
    assert "no kernel" in done.stderr and "binary.cu" in done.stderr
    missing = run("scan", str(tmp_path / "none"))
    assert missing.returncode == 3 and "does not exist" in missing.stderr


def test_a_page_goes_only_where_a_page_belongs(tmp_path: Path) -> None:
    source = tmp_path / "scale.cu"
    source.write_text(TRANSPOSED)
    done = run("scan", str(source), "--html", str(source))
    assert done.returncode == 2 and "ends in .html" in done.stderr
    assert source.read_text() == TRANSPOSED
    nowhere = run("scan", str(source), "--html", str(tmp_path / "none" / "page.html"))
    assert nowhere.returncode == 3 and "cannot be written" in nowhere.stderr and nowhere.stdout == ""


def test_without_a_compiler_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cu").write_text(ASKING)
    monkeypatch.setattr(module.compiler, "identity", lambda: CompilerIs((0, 0), (), "no libnvrtc"))
    with pytest.raises(CommandError, match=r"no CUDA compiler: pip install.*no libnvrtc.*Nothing can be") as error:
        module.command.main([str(tmp_path)], standalone_mode=False)
    assert error.value.code is Exit.MACHINE


def test_an_unknown_card_is_a_wrong_command_line(tmp_path: Path) -> None:
    done = run("scan", str(tmp_path), "--target", "no such card")
    assert done.returncode == 2 and "no figures for a card named" in done.stderr


def test_flags_reach_every_file(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        "__global__ void k(float* x) { x[threadIdx.x] = SIZE; }\n"
        "int main() { float* x; cudaMalloc(&x, 1024); k<<<1, 256>>>(x); return 0; }\n"
    )
    code, answer = run_json("scan", str(tmp_path), "--flag", "-DSIZE=3")
    assert code == 0 and [one["scanned"]["kernel"] for one in answer["report"]["ranked"]] == ["k"]


def test_wrong_settings_are_said_before_anything_is_begun(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(TRANSPOSED)
    (tmp_path / ".cuda-lsp.toml").write_text("tarket = 'H200'\n")
    done = run("scan", str(tmp_path))
    assert done.returncode == 3 and "did you mean `target`" in done.stderr and done.stdout == ""
