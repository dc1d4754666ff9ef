"""Proof records through the command line: written, replayed, tampered with."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent.evaluation.record.values import plain
from tests.cli.running import COMMAND, ROW_SUMS, run, run_json
from tests.evaluation.record.samples import GOLDEN, golden, put, save, sealed
from tests.evaluation.record.test_replaying import measured

SCHEMAS = Path(__file__).resolve().parents[2] / "docs"
ADD = """
// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   add<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + 1.0f;
}
"""


def _pair(folder: Path, new: str) -> tuple[str, str]:
    (folder / "old.cu").write_text(ADD)
    (folder / "new.cu").write_text(ADD.replace("x[i] + 1.0f", new))
    return str(folder / "old.cu"), str(folder / "new.cu")


def test_a_verdict_is_recorded_and_replayed(tmp_path: Path) -> None:
    proof = tmp_path / "records" / "proof.json"
    done = run("verify", *_pair(tmp_path, "1.0f + x[i]"), "--record", str(proof))
    assert done.returncode == 0 and f"the proof record is in {proof}" in done.stderr
    data = json.loads(proof.read_text())
    jsonschema.validate(data, json.loads((SCHEMAS / "record.schema.json").read_text()))
    assert str(tmp_path) not in proof.read_text()
    (tmp_path / "old.cu").unlink()
    (tmp_path / "new.cu").unlink()
    code, answer = run_json("verify", "--replay", str(proof))
    jsonschema.validate(answer, json.loads((SCHEMAS / "schema.json").read_text()))
    found = answer["replay"]
    assert (code, found["confirmed"], found["against"]) == (0, True, [])
    counts = found["compared"]["counts"]
    assert counts["inputs"] == counts["runs"] > 10
    assert counts["original"] == counts["candidate"] == counts["hashed"] > 10
    assert found["compared"]["same_place"] and found["compared"]["environment"] == []
    for side in ("then", "now", "fresh"):
        assert found[side]["correctness"]["state"] == "right"


def test_a_wrong_verdict_is_recorded_and_confirmed_too(tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    assert run("verify", *_pair(tmp_path, "x[i] + 1.5f"), "--record", str(proof)).returncode == 1
    assert json.loads(proof.read_text())["verdict"]["correctness"]["state"] == "wrong"
    done = run("verify", "--replay", str(proof))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("wrong (y[") == 3 and "the record is confirmed here" in done.stdout
    # somebody who knows how to seal it says otherwise
    claimed = put(json.loads(proof.read_text()), ("verdict", "correctness", "state"), "right")
    done = run("verify", "--replay", str(save(sealed(claimed), tmp_path)))
    assert done.returncode == 1
    assert "against    correctness: right then, wrong now" in done.stdout
    assert "the record is not confirmed" in done.stdout


def test_a_card_s_record_is_replayed_without_one(tmp_path: Path) -> None:
    done = run("verify", "--replay", str(save(sealed(plain(measured())), tmp_path)), "--device", "emulator")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "timing not replayed: no GPU here" in done.stdout
    assert "device: Test card then, emulated now" in done.stdout
    assert "faster, 2.0" in done.stdout or "faster, 1.9" in done.stdout


def _without_source(data: dict[str, Any]) -> dict[str, Any]:
    del data["candidate"]
    return sealed(data)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: put(golden(), ("verdict", "speed", "ratio"), 381.0), "was changed after it was written"),
        (lambda: sealed({**golden(), "schema": 99}), "a newer cuda-lsp wrote it"),
        (lambda: _without_source(golden()), "candidate"),
        (lambda: sealed(put(golden(), ("settings", "flags"), ["-I/etc"])), "compiler flag '-I/etc'"),
    ],
)
def test_a_bad_record_is_a_message(made: Any, words: str, tmp_path: Path) -> None:
    done = run("verify", "--replay", str(save(made(), tmp_path)))
    assert done.returncode == 3 and words in done.stderr and not done.stdout.startswith("then")


def test_missing_and_cut_short(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(GOLDEN.read_bytes()[:5000])
    assert "cut short" in run("verify", "--replay", str(cut)).stderr
    code, answer = run_json("verify", "--replay", str(tmp_path / "none.json"))
    assert code == 3 and "cannot be read" in answer["error"]


def test_what_a_replay_needs_is_named(tmp_path: Path) -> None:
    """Neither a GPU nor a compiler here."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise ImportError('no CuPy here')\n")
    bare = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = run("verify", "--replay", str(GOLDEN), "--device", "emulator", env=bare)
    assert done.returncode == 4 and "no CUDA compiler" in done.stderr
    done = run("verify", "--replay", str(GOLDEN), "--device", "gpu", env=bare)
    assert done.returncode == 4 and "no GPU can be used here" in done.stderr


def test_an_original_that_breaks_its_contract_here_is_said(tmp_path: Path) -> None:
    data = golden()
    text = data["original"]["text"].replace("i < cols", "i <= cols")
    assert text != data["original"]["text"]
    from agent.evaluation.record.sources import text_hash

    data = put(put(data, ("original", "text"), text), ("original", "sha256"), text_hash(text))
    done = run("verify", "--replay", str(save(sealed(data), tmp_path)))
    assert done.returncode == 5 and "breaks its own contract here" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("old.cu", "--replay", "x"), ("--replay", "x", "--record", "y"), ("--replay", "x", "--against", "HEAD"), ()],
)
def test_what_does_not_go_together_is_said(arguments: tuple[str, ...]) -> None:
    done = run("verify", *arguments)
    assert done.returncode == 2 and "--replay" in done.stderr


def test_a_full_disk_costs_the_record_only(tmp_path: Path) -> None:
    """No file may grow past 4 KB: the verdict is shown, the message says why there is no record, none is left half
    written. Compilers and caches of the command need larger files, so the limit holds while the record is written."""
    limited = (
        "import resource, agent.evaluation.record.files as files\n"
        "put = files._put\n"
        "def limited(*args):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "    put(*args)\n"
        "files._put = limited\n"
    )
    proof = tmp_path / "proof.json"
    done = subprocess.run(
        [sys.executable, "-c", limited + COMMAND[2], "verify", *_pair(tmp_path, "1.0f + x[i]"), "--record", str(proof),
         "--json"],
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["exit"], answer["verdict"]["correctness"]["state"]) == (3, "right")
    assert "Traceback" not in done.stderr
    assert "the record cannot be written" in done.stderr and "File too large" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == ["new.cu", "old.cu"]


def test_a_search_records_its_screens_and_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "rows.cu").write_text(ROW_SUMS)
    records = tmp_path / "records"
    few = ("--rounds", "1", "--candidates", "2", "--trials", "0")
    done = run("optimize", str(tmp_path / "rows.cu"), *few, "--records", str(records))
    assert done.returncode == 0, done.stdout + done.stderr
    made = {file.name: json.loads(file.read_text()) for file in records.iterdir()}
    depths = sorted(data["settings"]["depth"] for data in made.values())
    assert depths.count("full") >= 1 and depths.count("screen") == 2
    assert f"{len(made)} proof records in {records}" in done.stderr
    for name, data in made.items():
        assert f"-{data['settings']['depth']}-" in name
        assert data["settings"]["prepared"] == "screen"
        assert data["secrets"]["original"] == next(iter(made.values()))["secrets"]["original"]
    screen = next(name for name in made if "-screen-" in name)
    replayed = run("verify", "--replay", str(records / screen))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_records_of_a_search_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "rows.cu").write_text(ROW_SUMS)
    (tmp_path / "file").write_text("x")
    few = ("--rounds", "1", "--candidates", "1", "--trials", "0", "--proposals", "0")
    done = run("optimize", str(tmp_path / "rows.cu"), *few, "--records", str(tmp_path / "file"))
    assert done.returncode in (1, 3) and "the record cannot be written" in done.stderr
    assert "result" in done.stdout
