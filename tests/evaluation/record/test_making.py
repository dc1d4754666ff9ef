"""What a record holds, and what it never holds."""

import json
import tempfile
from pathlib import Path

import jsonschema
import pytest
from attrs import evolve

from agent.evaluation.judge import Judged, examine
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.record.files import seal
from agent.evaluation.record.form import Record
from agent.evaluation.record.making import record
from agent.evaluation.record.replaying import reopened, rerun
from agent.evaluation.record.scrub import scrubbed
from agent.evaluation.record.sources import text_hash, told
from agent.evaluation.record.values import plain
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from agent.execution.emulator import Emulator
from agent.source.document import parse, read
from agent.workload.directive import read_directive
from agent.workload.plan import Launch
from agent.workload.program import Program
from cuda_lsp.terminal.record_schema import record_schema
from tests.evaluation.kernels import setting

HEADER = "#pragma once\n__device__ inline float more(float x) { return x + STEP; }\n"
TEXT = """#include <cstdio>
#include "more.cuh"
static const char* token = "sk-this-is-a-key";

// cuda-lsp: workload
//   size     n = 300
//   buffer   x: f32[n] in
//   buffer   y: f32[n] out
//   launch   add<<<(n + 127) / 128, 128>>>(x, y, n)
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = more(x[i]);
}

int main() { std::puts(token); }
"""


def _program(folder: Path, text: str = TEXT) -> Program:
    (folder / "more.cuh").write_text(HEADER)
    (folder / "add.cu").write_text(text)
    document = read(str(folder / "add.cu"))
    workload = read_directive(document, document.kernels[-1])
    assert workload is not None
    return Program(document, workload.plan, "original")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Path]:
    """A screen's record of a file with a local header, found through a folder with a telling name."""
    folder = tmp_path_factory.mktemp("home_of_jane") / "secret project"
    folder.mkdir()
    original = _program(folder)
    workload = read_directive(original.document, original.document.kernels[-1])
    assert workload is not None
    options = Options(flags=("-DSTEP=2.0f", f"-I{folder}", "-O3"))
    prepared = prepare(original, workload, setting(options=options))
    assert isinstance(prepared, Prepared), prepared
    text = original.document.text.replace(b"more(x[i])", b"more(x[i]) /* as before */")
    candidate = Program(parse(text, original.document.path), original.plan, "rewrite")
    judged = examine(prepared, candidate)
    assert judged.verdict.correctness.state == "right", judged.verdict.correctness.reason
    talking = evolve(
        judged.verdict,
        correctness=evolve(judged.verdict.correctness, reason=f"{folder}/add.cu:3: and {Path.home()}/.ssh/id"),
    )
    return record(prepared, candidate, Judged(talking, judged.secret, judged.runs)), folder


def test_it_holds_against_its_schema(made: tuple[Record, Path]) -> None:
    data = plain(made[0])
    jsonschema.validate({**data, "digest": seal(data)}, record_schema())


def test_the_published_schema_is_up_to_date() -> None:
    """Mend with: python -m cuda_lsp.terminal.record_schema > docs/record.schema.json"""
    published = Path(__file__).resolve().parents[3] / "docs" / "record.schema.json"
    assert json.loads(published.read_text()) == record_schema()


def test_no_key_and_no_folder_is_in_it(made: tuple[Record, Path]) -> None:
    text = json.dumps(plain(made[0]))
    for secret in ("sk-this-is-a-key", "jane", "secret project", tempfile.gettempdir() + "/"):
        assert secret not in text, secret
    assert made[0].verdict.correctness.reason == "add.cu:3: and id"


def test_no_variable_of_the_environment_is_in_it(made: tuple[Record, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-another-key-of-theirs")
    prepared, candidate, judged = _again(made[0])
    assert "another-key-of-theirs" not in json.dumps(plain(record(prepared, candidate, judged)))


def _again(found: Record) -> tuple[Prepared, Program, Judged]:
    with reopened(found) as opened:
        again = rerun(opened, Emulator(), "sm_90", 60.0, lambda: False, fresh=True)
        assert again.prepared is not None and again.judged is not None
        return again.prepared, opened.candidate, again.judged


def test_the_sources_are_the_device_code_on_its_own_lines(made: tuple[Record, Path]) -> None:
    source = made[0].original
    assert (source.file, source.whole) == ("add.cu", False)
    lines = source.text.split("\n")
    assert lines[9].startswith("__global__ void add(")  # line 10 of the file
    assert "puts" not in source.text and "#line" not in source.text and "return x + STEP" in source.text
    assert source.sha256 == text_hash(source.text) != source.file_sha256
    assert "as before" in made[0].candidate.text
    assert made[0].settings.flags == ("-DSTEP=2.0f",)
    assert any("include folders" in note for note in made[0].left_out)


def test_the_sources_compile_alone_to_the_same_code(made: tuple[Record, Path], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    here = _program(tmp_path / "elsewhere")
    alone = Program(parse(made[0].original.text.encode(), ""), here.plan, "alone")
    one, other = (build(program, Options(flags=("-DSTEP=2.0f",))) for program in (here, alone))
    assert isinstance(one, Build) and isinstance(other, Build)
    assert (one.resources, one.entries) == (other.resources, other.entries)
    assert _code(one.ptx) == _code(other.ptx)


def _code(ptx: str) -> list[str]:
    """The instructions, without what says where they come from."""
    return [
        line for line in ptx.splitlines() if line.startswith("\t") and not line.strip().startswith((".loc", ".file"))
    ]


def test_all_of_the_verdict_is_there(made: tuple[Record, Path]) -> None:
    found = made[0]
    assert (found.settings.depth, found.settings.prepared) == ("screen", "screen")
    assert [gate.gate for gate in found.verdict.gates][:3] == ["source", "compile", "instructions"]
    assert all(gate.seconds >= 0 for gate in found.verdict.gates)
    assert {run.family for run in found.runs} == set(found.verdict.correctness.families)
    assert {run.sizes for run in found.runs} == set(found.verdict.correctness.sizes)
    for run in found.runs:
        assert [seen.output for seen in run.outputs] == ["y"]
        assert len(run.inputs) == 64 and len(run.outputs[0].original) == 64
        assert set(run.outputs[0].errors) >= {"candidate max", "original max", "allowed max"}
    assert found.contract.comparators == {"y": "numeric"}
    assert found.contract.rules["n"].multiple == 1
    assert "y: zeros" in found.checker.killed and found.checker.oracle == "original promoted to float64"
    assert found.environment.device == "emulated" and found.environment.card is None
    assert found.environment.compiler.startswith("NVRTC ")
    assert not any("include" in option for option in found.environment.options)
    assert isinstance(found.plan.steps[0], Launch) and found.plan.steps[0].kernel == "add"
    assert found.workload.buffer("x").origin.kind == "directive"
    assert len(found.secrets.original) == len(found.secrets.candidate) == 32
    assert found.secrets.original != found.secrets.candidate


def test_a_text_that_cannot_be_cut_is_kept_whole(tmp_path: Path) -> None:
    broken = Program(parse(b"__global__ void other() {}\n", "a.cu"), _program(tmp_path).plan, "rewrite")
    kept = told(broken, ())
    assert kept.source.whole and kept.source.text == "__global__ void other() {}\n"
    assert "kept whole" in kept.notes[0]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("{home}/a/b.cu:3: no", "b.cu:3: no"),
        ("in '{home}/a/b.cu'", "in 'b.cu'"),
        ("{home}", "~"),
        ("see {home}ly/x", "see {home}ly/x"),
        ("/usr/bin/nvcc", "/usr/bin/nvcc"),
        ("n=3 x/y", "n=3 x/y"),
    ],
)
def test_paths_are_cut_down(text: str, clean: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/jane")
    told_clean = clean.format(home="/home/jane")
    assert scrubbed({"a": [text.format(home="/home/jane")]}, ()) == {"a": [told_clean]}
