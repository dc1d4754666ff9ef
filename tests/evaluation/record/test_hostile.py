"""Records whose maker knows the seal: they end with a message, and reach nothing of the machine's."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.evaluation.record.files import read
from agent.evaluation.record.replaying import reopened, rerun
from agent.evaluation.record.sources import text_hash
from agent.evaluation.record.values import RecordError
from agent.execution.emulator import Emulator
from tests.evaluation.record.samples import golden, leaves, put, save, sealed

_PARTS = ("workload", "plan", "settings", "original", "candidate", "secrets", "kernel")
_LEAVES = [place for place in leaves(golden()) if place[0] in _PARTS]
_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, "inf", "nan", "", "x", "n" * 50, "../x", "f32x4", "f99", "b-1",
    "(", "1/0", "1<<400", "9" * 300, "rows*cols*rows*cols", "rows%0", "\0", "\ud800", "repeat", "1e999", [], {}, ["x"],
]  # fmt: skip


def _open(data: dict[str, Any], folder: Path) -> None:
    with reopened(read(save(sealed(data), folder))):
        pass


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(_LEAVES), st.sampled_from(_VALUES))
def test_any_value_anywhere_is_taken_or_refused_in_words(tmp_path: Path, place: tuple[object, ...], value: Any) -> None:
    try:
        _open(put(golden(), place, value), tmp_path)
    except RecordError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("settings", "flags"), ["-I/etc"], "compiler flag"),
        (("settings", "flags"), ["-include", "/etc/passwd"], "compiler flag"),
        (("settings", "flags"), ["-ccbin=/tmp/evil"], "compiler flag"),
        (("settings", "flags"), ["--options-file=/tmp/evil"], "compiler flag"),
        (("settings", "flags"), ['-DA=1\n#include "/etc/passwd"'], "compiler flag"),
        (("settings", "arch"), "sm_90 -I/etc", "no architecture"),
        (("settings", "architectures"), ["/etc/passwd"], "no architecture"),
        (("settings", "depth"), "shallow", "settings.depth"),
        (("settings", "target"), "ABACUS", "no figures for a card"),
        (("secrets", "candidate"), "00", "32 hexadecimal digits"),
        (("candidate", "text"), "int x;", "not the text that its hash is of"),
        (("workload", "buffers", 0, "extent"), "1 << 36", "too much to replay"),
        (("workload", "buffers", 0, "extent"), "1 << 62", "cannot be run"),
        (("workload", "sizes", 0, "value"), -5, "cannot be run"),
    ],
)
def test_what_a_replay_does_not_do_is_said(place: tuple[object, ...], value: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=words):
        _open(put(golden(), place, value), tmp_path)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a(1) b.cu", "a_1_ b.cu"), ("../../etc/cron.d/x.cu", "_etc_cron.d_x.cu"), ("-G", "_G"), ("", "kernel.cu"),
        ("/dev/sda", "_dev_sda"), ("..", "_"), ("x\0y\n.cu", "x_y_.cu"), ("\u00fc.cu", "\u00fc.cu"),
        ("y" * 500, "y" * 100),
    ],
)  # fmt: skip
def test_a_file_s_name_is_neither_option_nor_path(file: str, name: str, tmp_path: Path) -> None:
    with reopened(read(save(sealed(put(golden(), ("candidate", "file"), file)), tmp_path))) as found:
        path = Path(found.candidate.document.path)
        assert (path.name, path.parent) == (name, Path(found.original.document.path).parent)


def test_a_source_that_is_too_large_is_refused(tmp_path: Path) -> None:
    text = golden()["candidate"]["text"] + "/" * (5 << 20)
    data = put(put(golden(), ("candidate", "text"), text), ("candidate", "sha256"), text_hash(text))
    with pytest.raises(RecordError, match="larger than 4 MB"):
        _open(data, tmp_path)


@pytest.mark.parametrize("depth", [20, 200, 5000])
def test_a_plan_that_is_too_deep_is_refused(depth: int, tmp_path: Path) -> None:
    """Whoever reads it would run out of stack, the reader of JSON first."""
    inside = '{"step": "swap", "first": "x", "second": "y"}'
    empty = ", ".join(f'"{name}": null' for name in ("variable", "start", "update", "condition"))
    around = f'{{"step": "repeat", "count": "1", {empty}, "body": ['
    path = tmp_path / "deep.json"
    text = json.dumps(golden()["plan"])
    deep = text.replace('"steps": [', f'"steps": [{around * depth}{inside}{"]}" * depth}, ')
    raw = json.dumps(golden()).replace(f'"plan": {text}, "settings"', f'"plan": {deep}, "settings"')
    assert raw != json.dumps(golden())
    path.write_text(raw)
    with suppress(RecursionError):  # then nobody can seal it either
        path.write_text(json.dumps(sealed(json.loads(raw))))
    with pytest.raises(RecordError), reopened(read(path)):
        pass


def test_a_workload_with_too_many_parts_is_refused(tmp_path: Path) -> None:
    many = [{**golden()["workload"]["sizes"][0], "name": f"n{i}"} for i in range(100)]
    with pytest.raises(RecordError, match="more than 32 sizes"):
        _open(put(golden(), ("workload", "sizes"), many), tmp_path)


@pytest.mark.parametrize("file", ["/etc/passwd", "../../../../../../etc/passwd", "secret.h"])
def test_no_header_of_the_machine_reaches_a_source(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a path nor because it lies in the folder where the command was called."""
    monkeypatch.chdir(tmp_path)
    Path("secret.h").write_text("#error my secret\n")
    text = f'#include "{file}"\n' + golden()["candidate"]["text"]
    data = put(put(golden(), ("candidate", "text"), text), ("candidate", "sha256"), text_hash(text))
    data = put(put(data, ("settings", "depth"), "screen"), ("settings", "prepared"), "screen")
    with reopened(read(save(sealed(data), tmp_path))) as found:
        again = rerun(found, Emulator(), "sm_90", 60.0, lambda: False, fresh=True)
    told = repr(again.judged)
    assert again.judged is not None
    assert "my secret" not in told and "root:" not in told
