"""Ranking and grouping by hand, and that nothing in a page can be anything but text."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from agent.execution.targets import find_target
from agent.workload.settings import Settings
from cuda_lsp.scanning import store
from cuda_lsp.scanning.kernel import Asked
from cuda_lsp.scanning.report import SMALLER, TENSOR, WHOLE, general, report
from cuda_lsp.scanning.values import Cause, Cost, Hint, Scanned
from cuda_lsp.settings import Settings as HintSettings
from cuda_lsp.terminal.profile_table import Paper
from cuda_lsp.terminal.scan.markup import element, joined
from cuda_lsp.terminal.scan.page import page
from cuda_lsp.terminal.scan.table import show


def cost(seconds: float, floor: float, **other: object) -> Cost:
    made = Cost(seconds, floor, "memory floor", floor, 0.0, "fp32 throughput", "latency", {"latency": seconds}, "", 1,
                32, 0.5, "counted")  # fmt: skip
    return evolve(made, **other)  # type: ignore[arg-type]


def one(name: str, **other: object) -> Scanned:
    return Scanned("a.cu", name, 1, f"void {name}()", **other)  # type: ignore[arg-type]


def test_a_long_kernel_at_its_floor_comes_after_a_short_one_far_from_it() -> None:
    found = report("H200", ["."], 1, [one("near", cost=cost(8.0, 7.9)), one("far", cost=cost(2.0, 0.5))], (), {}, "")
    assert [(r.rank, r.scanned.kernel) for r in found.ranked] == [(1, "far"), (2, "near")]
    far, near = found.ranked
    assert (far.headroom, far.share, far.gain) == (4.0, 0.2, 0.15)
    assert near.gain == pytest.approx(0.01)
    assert found.seconds == 10.0


def test_what_a_figure_leaves_out_is_noted() -> None:
    hashed = cost(2.0, 0.5, limit="integer throughput")
    kernels = [
        one("cut", cost=cost(2.0, 0.5, sizes="n=4")),
        one("hash", cost=hashed),
        one("fine", cost=cost(2.0, 0.5)),
        one("wmma", cost=cost(2.0, 0.5, tensor=True)),
    ]
    notes = {r.scanned.kernel: r.notes for r in report("H200", ["."], 1, kernels, (), {}, "").ranked}
    assert notes == {"cut": (SMALLER,), "hash": (WHOLE,), "fine": (), "wmma": (TENSOR,)}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("no workload for `k`; not known: size of `x`: `N` is not defined in this file (line 3); and 2 more",
         "`…` is not defined in this file"),
        ("no workload for `k`; not known: range of values in `d`: `k` uses them as indices of `x`",
         "range of values in `…`: `…` uses them as indices of `…`"),
        ('line 138: namespace "std" has no member "limits" (and 5 more)', "namespace `…` has no member `…`"),
        ("the plan has 99 different launches", "the plan has N different launches"),
        ("", ""),
    ],
)  # fmt: skip
def test_messages_of_one_kind_are_one_cause(message: str, words: str) -> None:
    assert general(message) == words


def test_groups_keep_a_message_that_is_everybodys() -> None:
    kernels = [
        one("a", cause=Cause.ASKED, message="no workload for `a`; not known: size of `x`: `N` is not set (line 3)"),
        one("b", cause=Cause.ASKED, message="no workload for `b`; not known: grid of `b`: `M` is not set (line 9)"),
        one("c", cause=Cause.BUILD, message="line 3: no such thing"),
        one("d", cause=Cause.BUILD, message="line 3: no such thing"),
    ]
    groups = report("H200", ["."], 1, kernels, (), {}, "").groups
    assert [(group.cause, group.words, len(group.kernels)) for group in groups] == [
        (Cause.ASKED, "`…` is not set", 2),
        (Cause.BUILD, "line 3: no such thing", 2),
    ]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.said += data


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn"))))
def test_text_stays_text_in_elements_and_attributes(text: str) -> None:
    reader = Reader()
    reader.feed(element("b", text, [text], title=text))
    reader.close()
    assert reader.tags == ["b"] and reader.attributes == {"title": text} and reader.said == text + text


def test_characters_that_turn_text_around_are_not_passed_on() -> None:
    assert joined("a\u202eb\x1bc\nd") == "a\ufffdb\ufffdc d"


@pytest.mark.parametrize("seconds", [1e-9, 2e-6, 1.0, 4000.0])
@pytest.mark.parametrize("floor", [1.0, 0.999, 1e-7])
def test_pictures_hold_at_any_scale(seconds: float, floor: float) -> None:
    hint = Hint("M1", 3, "warning", "<b>")
    text = page(report("H200", ["."], 1, [one("k", cost=cost(seconds, seconds * floor), hints=(hint,))], (), {}, ""))
    assert "nan" not in text and "inf" not in text.replace("information", "") and "<b>&lt;" not in text


def test_a_narrow_terminal_gets_each_row_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    found = report("H200", ["."], 1, [one("k", cost=cost(2.0, 0.5))], (), {}, "")
    show(found, Paper(72, False, False), 10)
    lines = capsys.readouterr().out.splitlines()
    assert "     k  a.cu:1" in lines and all(line.isascii() for line in lines)


# --- what is kept -----------------------------------------------------------------------------------------------------


def asked(**other: object) -> Asked:
    return evolve(Asked(find_target("H200"), 30.0, (), Settings(), HintSettings()), **other)  # type: ignore[arg-type]


def test_a_key_changes_with_all_that_a_result_depends_on(tmp_path: Path) -> None:
    source, header, far = tmp_path / "a.cu", tmp_path / "b.cuh", tmp_path / "inc" / "c.h"
    far.parent.mkdir()
    source.write_text('#include "b.cuh"\n')
    header.write_text("#include <c.h>\n")
    far.write_text("int c;\n")
    kernel = Scanned(str(source), "k", 1, "")
    here = asked(flags=(f"-I{far.parent}",))

    def key(wanted: Asked = here, which: Scanned = kernel) -> str:
        return store.key(source.read_bytes(), which, wanted)

    keys = [key(), key(which=evolve(kernel, kernel="other")), key(asked()), key(evolve(here, seconds=5.0)),
            key(evolve(here, target=find_target("A100"))),
            key(evolve(here, settings=Settings(flags=("-DX",))))]  # fmt: skip
    for file in (far, header, source):
        file.write_text(file.read_text() + "// more\n")
        keys.append(key())
    (tmp_path / "Makefile").write_text("run: a\n\t./a 4096\n")
    keys.append(key())
    assert len(set(keys)) == len(keys) and key() == keys[-1]


def test_a_cycle_of_includes_ends_and_nothing_outside_is_read(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside.h"
    (project / "src").mkdir(parents=True)
    outside.write_text("1\n")
    source = project / "src" / "a.cu"
    both = '#include "../src/b.h"\n#include "../../project/src/c.h"\n#include "../../outside.h"\n'
    source.write_text(both)
    for name in ("b.h", "c.h"):
        (project / "src" / name).write_text(both)
    (project / ".cuda-lsp.toml").write_text("")
    kernel = Scanned(str(source), "k", 1, "")
    before = store.key(source.read_bytes(), kernel, asked())
    outside.write_text("2\n")
    assert store.key(source.read_bytes(), kernel, asked()) == before
    (project / "src" / "c.h").write_text("// changed\n")
    assert store.key(source.read_bytes(), kernel, asked()) != before


def test_what_is_passing_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cause in Cause:
        store.put(cause.name, one("k", cause=cause))
    kept = {cause for cause in Cause if store.get(cause.name, one("k")) is not None}
    assert set(Cause) - kept == {Cause.LEFT, Cause.FAULT}
    assert store.get(Cause.ASKED.name, one("other")) is None


def test_a_store_that_cannot_be_written_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    store.put("a", one("k"))
    store.prune()
    assert store.get("a", one("k")) is None
