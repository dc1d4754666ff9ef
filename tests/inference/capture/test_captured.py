"""The benchmark that compares inference with captures: over a folder of two programs, and a STAND-IN for the card."""

import struct
from pathlib import Path

import pytest
from attrs import asdict, evolve

from agent.inference.capture.building import recorder
from agent.inference.capture.cupti import find_cupti
from agent.inference.capture.driver import find_driver
from agent.inference.capture.launches import Argument, Launch, Memory
from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.static import infer
from tests.benchmarks import captured
from tests.gpu import programs
from tests.gpu.shards import Shard

PROGRAM = """\
__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
int main() {
    const int n = COUNT;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
    return 0;
}
"""
MAKEFILE = "main: main.cu\n\tcp '{app}' main\nrun: main\n\t./main saxpy\n"


def test_right_and_wrong_are_told_apart(
    machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The stand-in's program launches saxpy of 1000 elements; of one that builds nothing there is no capture."""
    root = tmp_path / "src"
    for name, text, make in (
        ("right-cuda", PROGRAM.replace("COUNT", "1000"), MAKEFILE.format(app=machine["APP"])),
        ("unbuilt-cuda", PROGRAM.replace("COUNT", "1000"), "main:\n\techo 'error: no such thing' && false\n"),
        ("wrong-cuda", PROGRAM.replace("COUNT", "1025"), MAKEFILE.format(app=machine["APP"])),
    ):
        (root / name).mkdir(parents=True)
        (root / name / "main.cu").write_text(text)
        (root / name / "Makefile").write_text(make)
    for name in ("CUDA_PATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, machine[name])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # the benchmark names another
    monkeypatch.setenv("CUDA_LSP_INFERENCE", str(root))
    monkeypatch.setenv("CUDA_LSP_SHARDS", str(tmp_path / "shards"))
    library = str(Path(machine["CUDA_PATH"]).parent / "libcuda.so.1")
    find = captured.find_driver
    monkeypatch.setattr(captured, "find_driver", lambda: find(library))
    captured.main()
    told = capfd.readouterr().out
    assert "right-cuda/main.cu:saxpy  sure; 9 values right" in told
    assert "unbuilt-cuda/main.cu:saxpy  sure; not captured: not built: " in told
    assert "wrong-cuda/main.cu:saxpy  sure; WRONG: grid: (5, 1, 1) inferred, (4, 1, 1) captured; n: 1025" in told
    assert "not on the list, as they do not run here or are beyond it: unbuilt-cuda\n" in told
    assert "2 kernels of 2 programs: 2 captured, 2 of these can be stated as directives" in told
    assert "inference is sure of 2: 1 right (18 values compared), 1 wrong (4 values), 0 not captured" in told
    assert not (root / "right-cuda" / "main").exists()
    captured.main()  # all of it is there already
    again = capfd.readouterr().out
    assert "WRONG" not in again and "1 right (18 values compared), 1 wrong (4 values)" in again


def launch(**more: object) -> Launch:
    place = Memory(0x7000, 4000, 0, "device", False, 0, "too large")
    made = Launch(
        1, 1, 1, "_Z5saxpyifPKfPf", "saxpy(int, float, float const*, float*)", 0, 1, False, "driver", (4, 1, 1),
        (256, 1, 1), (1, 1, 1), 0,
        (
            Argument(0, struct.pack("<i", 1000)), Argument(4, struct.pack("<f", 2.0)), Argument(8, bytes(8), place),
            Argument(16, bytes(8), evolve(place, base=0x9000)),
        ),
    )  # fmt: skip
    return evolve(made, **more) if more else made


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({}, ()),
        ({"grid": (4, 2, 1)}, ("grid: (4, 1, 1) inferred, (4, 2, 1) captured",)),
        ({"block": (128, 1, 1)}, ("block: (256, 1, 1) inferred, (128, 1, 1) captured",)),
        ({"shared": 64}, ("shared bytes: 0 inferred, 64 captured",)),
        ({"arguments": ()}, ("arguments: 4 inferred, 0 captured",)),
    ],
)
def test_each_value_counts(more: dict[str, object], wrong: tuple[str, ...]) -> None:
    document = parse(PROGRAM.replace("COUNT", "1000").encode())
    kernel = document.kernels[0]
    workload = infer(document, kernel)
    compared, found = captured.compare(bind(workload, workload.plan, None, document), launch(**more), kernel)
    assert (compared, found) == (4 if "arguments" in more else 9, wrong)


@pytest.mark.parametrize(
    ("at", "argument", "wrong"),
    [
        (0, Argument(0, struct.pack("<i", 999)), "n: 1000 inferred, 999 captured"),
        (1, Argument(4, struct.pack("<f", -2.0)), "a: 2.0 inferred, -2.0 captured"),
        (2, Argument(8, bytes(8)), "x: a buffer of 4000 bytes inferred, no allocation captured"),
        (
            2,
            Argument(8, bytes(8), Memory(1, 8000, 0, "device", False, 0, "")),
            "bytes of x: 4000 inferred, 8000 captured",
        ),
        (3, Argument(8, bytes(8), Memory(1, 4000, 8, "device", False, 0, "")), "offset of y: 0 inferred, 8 captured"),
    ],
)
def test_each_argument_counts(at: int, argument: Argument, wrong: str) -> None:
    document = parse(PROGRAM.replace("COUNT", "1000").encode())
    kernel = document.kernels[0]
    workload = infer(document, kernel)
    bound = bind(workload, workload.plan, None, document)
    made = launch()
    changed = evolve(made, arguments=(*made.arguments[:at], argument, *made.arguments[at + 1 :]))
    assert captured.compare(bound, changed, kernel)[1] == (wrong,)


def test_of_several_lines_the_next_is_run_when_nothing_new_comes(
    machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line launches saxpy and then waits for ever; the second launches both kernels."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.cu").write_text(PROGRAM.replace("COUNT", "1000") + "__global__ void plain() {}\n")
    (folder / "Makefile").write_text(
        f"main: main.cu\n\tcp '{machine['APP']}' main\n"
        "run: main\n\t@echo begun\n\t./main wait\n\tMODE=x ./main \\\n\t\tkinds\n\t./main crash\n"
    )
    for name in ("CUDA_PATH", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, machine[name])
    monkeypatch.setattr(programs, "STALLED", 0.5)
    found = find_cupti(find_driver(str(Path(machine["CUDA_PATH"]).parent / "libcuda.so.1")).version)
    kit = programs.Recorder(recorder(found), found, seconds=300, arch="sm_90")
    kernels = [("main.cu", "saxpy"), ("main.cu", "plain")]
    capture, _ = programs.captured(folder, tmp_path / "recorded", kernels, kit)
    names = [{one.name for one in process.launches} for process in capture.processes]
    assert sorted(names, key=len) == [{"_Z5saxpyifPKfPf"}, {"_Z5saxpyifPKfPf", "plain"}], "the third line is not run"


def test_the_list_is_settled_as_far_as_programs_before_it_have_ended() -> None:
    """Programs end in any order; what is left out and what is the hundredth is told by the order of the list."""
    shard = Shard("", 0.0)
    for name in ("c", "a"):
        shard.add(name, {"rows": [{**asdict(captured.Row(name, "f", "k", "sure", 0, True)), "wrong": []}]})
    assert [one.program for one in captured._rows(shard, "abc")] == ["a", "c"]
    assert [one.program for one in captured._ahead(shard, "abc")] == ["a"]
