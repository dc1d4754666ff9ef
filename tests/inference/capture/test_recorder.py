"""The recorder and the command, over a STAND-IN for driver and CUPTI (``conftest.py``): no card, none of NVIDIA's code.

Expected contents are computed here, with NumPy.
"""

import json
import os
import pty
import signal
import struct
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from attrs import frozen

from agent.inference.capture import building
from agent.inference.capture.cupti import NEWEST, Cupti, find_cupti
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Capture, Launch, Memory
from agent.inference.capture.log import read_capture
from agent.inference.capture.running import Wanted, folder, record, told_by
from agent.inference.capture.telling import notes
from agent.source.document import parse, read
from agent.workload import data
from agent.workload.find import find_workload
from cuda_lsp.terminal.capture import seen
from cuda_lsp.terminal.schema import schema
from tests.gpu.verified import judged_on_what_was_captured
from tests.inference.capture.conftest import HERE, build

COMMAND = (sys.executable, "-c", "from cuda_lsp.terminal.main import main; main()", "capture")
X = np.float32(1) + np.arange(1000, dtype="<f4") * np.float32(0.5)
Y = np.float32(-20) + np.arange(1000, dtype="<f4") * np.float32(0.5)
AFTER = (2.0 * X.astype("f8") + Y).astype("<f4")
SAXPY = """\
// A file of the user's.
__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def here(machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The machine's environment, and this process in it."""
    found = {**machine, "XDG_STATE_HOME": str(tmp_path / "state")}
    for name in ("CUDA_PATH", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, found[name])
    return found


@frozen
class Run:
    """What a program did under the recorder."""

    code: int
    capture: Capture

    @property
    def launches(self) -> tuple[Launch, ...]:
        return self.capture.launches

    @property
    def shown(self) -> list[tuple[str, ...]]:
        return [seen(launch).arguments for launch in self.launches]


def run(here: dict[str, str], mode: str, place: Path, wanted: Wanted = Wanted()) -> Run:  # noqa: B008
    """As the command does it, in this process."""
    cupti = find_cupti(NEWEST)
    assert str(cupti.library) == str(Path(here["CUDA_PATH"]).parent / "libcuda.so.1")  # the stand-in, and nothing else
    with folder(place / mode, place) as made:
        ended = record([here["APP"], mode], made, wanted, building.recorder(cupti), cupti)
    return Run(ended.code, read_capture(place / mode))


def command(here: dict[str, str], *arguments: str, mode: str = "saxpy") -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([*COMMAND, *arguments, "--", here["APP"], mode], env=here, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "saxpy.cu"
    path.write_text(SAXPY)
    return str(path)


def test_contents_are_those_before_the_launch_and_after_it(
    here: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Work is done late in the stand-in, as on a card: who does not wait for it reads what was there before."""
    found = run(here, "saxpy", tmp_path, Wanted(after=True))
    assert found.code == 0 and capfd.readouterr() == ("out of saxpy\n", "")
    first, second = found.launches
    assert (first.grid, first.block, second.grid) == ((4, 1, 1), (256, 1, 1), (5, 1, 1))
    assert held(*(one.memory for one in first.arguments)) == [X.tobytes(), Y.tobytes()]
    assert held(*first.after) == [X.tobytes(), AFTER.tobytes()]
    assert held(second.arguments[3].memory) == [AFTER.tobytes()]
    out = tmp_path / "saxpy"
    assert out.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in out.iterdir()} == {0}


def held(*places: Memory | None) -> list[bytes]:
    return [place.file.read_bytes() for place in places if place is not None and place.file is not None]


@pytest.mark.parametrize(
    ("mode", "code", "launches", "note"),
    [
        ("exit", 7, 2, ""),
        ("many", 0, 3, "199997 launches beyond the first of each shape"),
        ("crash", 128 + signal.SIGSEGV, 1, "crashed, was killed, or replaced itself"),
        ("fork", 0, 1, ""),
        ("threads", 0, 3, "197 launches beyond"),
        ("graph", 0, 0, "2 launches of captured graphs"),
        ("no-cuda", 0, 0, "the recorder saw no CUDA in the program"),
        ("idle", 0, 0, "launched no kernel"),
        ("exec", 0, 3, "replaced itself"),
    ],
)
def test_programs_of_all_kinds(
    mode: str, code: int, launches: int, note: str, here: dict[str, str], tmp_path: Path
) -> None:
    found = run(here, mode, tmp_path)
    assert (found.code, len(found.launches)) == (code, launches)
    told = notes(found.capture)
    assert any(note in one for one in told) if note else told == ()


def test_launches_into_a_graph_that_is_being_captured_are_left_alone(here: dict[str, str], tmp_path: Path) -> None:
    assert any(
        "1 launch while a graph was being captured" in one for one in notes(run(here, "graph", tmp_path).capture)
    )


def test_pointers_of_all_kinds(here: dict[str, str], tmp_path: Path) -> None:
    found = run(here, "places", tmp_path, Wanted(shapes=9))
    assert [one[2:] for one in found.shown[:2]] == [
        ("device 4000 B at byte 400", "device 4000 B at byte 2400"),
        ("host 4000 B", "managed 4000 B"),
    ]
    assert found.shown[2][2] == "8 B 0000000000000000" and found.launches[2].arguments[3].memory is None
    assert found.shown[3][2:] == ("device 4000 B, contents not recorded (copy failed)", "device 4000 B")
    assert any("the driver could not copy them (CUDA error 700)" in note for note in notes(found.capture))


def test_launches_of_all_kinds(here: dict[str, str], tmp_path: Path) -> None:
    extended, cooperative, bare, by_value = run(here, "kinds", tmp_path).launches
    assert (extended.grid, extended.block, extended.cluster, extended.shared) == (
        (8, 2, 1),
        (64, 1, 1),
        (2, 1, 1),
        4096,
    )
    assert (cooperative.grid, cooperative.block, cooperative.shared) == ((2, 3, 4), (32, 2, 1), 16)
    assert cooperative.cooperative and not extended.cooperative
    assert (bare.name, bare.readable, bare.arguments) == ("plain", "plain", ())
    assert [len(one.data) for one in by_value.arguments] == [16, 8] and by_value.readable == "wide(Pair, float*)"


def test_packed_arguments_are_unpacked(here: dict[str, str], tmp_path: Path) -> None:
    (launch,) = run(here, "packed", tmp_path).launches
    assert [one.data for one in launch.arguments[:2]] == [struct.pack("<i", 1000), struct.pack("<f", 2.5)]
    assert held(*(one.memory for one in launch.arguments)) == [X.tobytes(), Y.tobytes()]


def test_variables_of_the_module_are_recorded(here: dict[str, str], tmp_path: Path) -> None:
    (launch,) = run(here, "symbol", tmp_path, Wanted(symbols=("table", "missing"))).launches
    assert [one.name for one in launch.symbols] == ["table"]
    assert held(launch.symbols[0].memory) == [np.array([1, 2, 3, 4], "<f4").tobytes()]


def test_an_old_driver_and_the_users_file(
    here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 12.4 the driver does not tell the parameters: the file's signature does."""
    monkeypatch.setenv("STANDIN_OLD", "1")
    found = run(here, "saxpy", tmp_path)
    assert found.launches[0].arguments == () and "name the file with --file" in notes(found.capture)[0]
    told = told_by(parse(SAXPY.encode()), Wanted())
    assert told.sizes == {"saxpy": (4, 4, 8, 8)}
    (first, _) = run(here, "saxpy", tmp_path / "again", told).launches
    assert first.layout == "file" and first.arguments[1].data == struct.pack("<f", 2.0)
    assert held(*(one.memory for one in first.arguments)) == [X.tobytes(), Y.tobytes()]


def test_a_name_that_cupti_does_not_tell(here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_NAMELESS", "1")
    assert {launch.name for launch in run(here, "saxpy", tmp_path).launches} == {"_Z5saxpyifPKfPf"}


def test_one_kernel_or_one_launch(here: dict[str, str], tmp_path: Path) -> None:
    only = run(here, "kinds", tmp_path, Wanted(kernels=("wide",)))
    assert [launch.readable for launch in only.launches] == ["wide(Pair, float*)"]
    assert run(here, "saxpy", tmp_path, Wanted(kernels=("axpy",))).launches == ()
    (third,) = run(here, "many", tmp_path, Wanted(launch=3)).launches
    assert (third.number, third.grid) == (3, (3, 1, 1))
    again = run(here, "many", tmp_path / "again", Wanted(shapes=2, per_shape=2)).launches
    assert [launch.number for launch in again] == [1, 2, 8, 9]  # the grids take turns, seven of them


def test_caps_in_bytes(here: dict[str, str], tmp_path: Path) -> None:
    small = run(here, "saxpy", tmp_path / "buffer", Wanted(buffer=3000))
    assert {one.memory.held for one in small.launches[0].arguments[2:] if one.memory} == {"too large"}
    whole = run(here, "saxpy", tmp_path / "total", Wanted(total=6000))
    assert [one.memory.held for one in whole.launches[0].arguments[2:] if one.memory] == ["kept", "over the total"]


def test_another_profiler_in_the_program(here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_BUSY", "1")
    found = run(here, "saxpy", tmp_path)
    assert found.code == 0 and found.launches == ()
    assert "another profiler is at work in it" in notes(found.capture)[0]


def test_another_tools_library_is_not_pushed_aside(
    here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/other.so")
    with pytest.raises(CaptureError, match=r"/opt/other\.so.*unset it first"):
        run(here, "saxpy", tmp_path)


def test_a_program_that_is_not_there(here: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"`\./nowhere.*cannot be started: No such file"):
        run({**here, "APP": "./nowhere"}, "saxpy", tmp_path)


def test_a_folder_that_holds_something_is_not_mixed_with(here: dict[str, str], tmp_path: Path) -> None:
    run(here, "idle", tmp_path)
    with pytest.raises(CaptureError, match="is not empty"):
        run(here, "idle", tmp_path)


# the command itself


def test_the_directive_is_written_once(here: dict[str, str], file: str) -> None:
    done = command(here, "--file", file, "--write")
    assert done.returncode == 0 and done.stdout == "out of saxpy\n"
    assert "this executes the program" in done.stderr and "1 directive written into" in done.stderr
    text = Path(file).read_text()
    first, rest = text.split("// cuda-lsp: workload\n")
    assert first == "// A file of the user's.\n" and rest.endswith(SAXPY.partition("\n")[2])
    document = read(file)
    workload = find_workload(document, document.kernels[0])
    assert data.load(workload.buffer("y").domain.data, "y").tobytes() == Y.tobytes()
    # nothing else stays
    assert list((Path(here["XDG_CACHE_HOME"]) / "cuda-lsp" / "captures").iterdir()) == []
    assert len(list(data.folder().iterdir())) == 2
    again = command(here, "--file", file, "--write")
    assert again.returncode == 1 and "has a directive already, at line 2" in again.stderr
    assert Path(file).read_text() == text


def test_what_out_kept_is_read_again_without_running(here: dict[str, str], file: str, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    done = command(here, "--file", file, "--out", str(out), "--json", mode="exit")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit"] == told["returned"] == 7 and "out of exit" in done.stderr
    jsonschema.validate(told, schema())
    (directive,) = told["directives"]
    assert directive["text"].startswith("// cuda-lsp: workload\n") and len(told["launches"]) == 2
    again = subprocess.run(
        [*COMMAND, "--from", str(out), "--file", file, "--json"], env=here, capture_output=True, text=True
    )
    assert again.returncode == 0 and json.loads(again.stdout)["directives"] == told["directives"]


def test_the_first_launch_is_enough(here: dict[str, str], file: str) -> None:
    """A program that would run for ever ends once its kernel was seen; what was recorded is stated."""
    done = command(here, "--file", file, "--first", "--json", mode="wait")
    told = json.loads(done.stdout)
    assert done.returncode == told["returned"] == 0
    assert [one["kernel"] for one in told["launches"]] == ["saxpy"]
    assert told["directives"][0]["text"].startswith("// cuda-lsp: workload\n")
    assert "the program was ended as soon as what was asked for had been recorded" in told["notes"]
    nobody = command(here, "--first", mode="wait")
    assert nobody.returncode == 2 and "--first needs --file or --kernel" in nobody.stderr


@pytest.mark.parametrize("stop", ["ctrl-c", "seconds"])
def test_a_program_that_runs_for_ever(stop: str, here: dict[str, str]) -> None:
    """What was recorded until then is there. Its session has no terminal, so Ctrl-C is passed on to the program."""
    limit = ["--seconds", "1"] if stop == "seconds" else []
    with subprocess.Popen(
        [*COMMAND, *limit, "--", here["APP"], "wait"], env=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.readline() == "out of wait\n"
        if stop == "ctrl-c":
            assert running.stdout.readline() == "waiting\n"
            os.kill(running.pid, signal.SIGINT)
        told = running.stderr.read()
    assert running.returncode == 128 + (signal.SIGINT if stop == "ctrl-c" else signal.SIGTERM)
    assert "recorded 1 launch of 1 kernel" in told or stop == "seconds"
    assert ("the program was ended after 1 s, as asked" in told) == (stop == "seconds")


def test_a_key_of_the_terminal_reaches_the_program_once(here: dict[str, str]) -> None:
    """In a terminal's foreground the program gets Ctrl-C by itself."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [*COMMAND, "--", here["APP"], "count"], here)
    seen_there, pressed = b"", False
    while True:
        try:
            got = os.read(terminal, 4096)
        except OSError:  # how a terminal ends on Linux
            break
        if not got:
            break
        seen_there += got
        if b"waiting" in seen_there and not pressed:
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 101, seen_there


def test_sanitizers_find_nothing(compiler: str, headers: Cupti, machine: dict[str, str], tmp_path: Path) -> None:
    """The recorder with its stand-in under the address and undefined behaviour sanitizers; every warning an error."""
    sanitize = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g")
    source = str(building.__file__).replace("building.py", "injection.cpp")
    driver, library, app = (tmp_path / name for name in ("libcuda.so.1", "recorder.so", "app"))
    build(
        compiler, headers, *sanitize, "-Wconversion", "-shared", "-fPIC", "-fvisibility=hidden", source, "-o",
        str(library), "-ldl", "-lpthread",
    )  # fmt: skip
    build(
        compiler, headers, *sanitize, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(HERE / "standin.cpp"), "-o",
        str(driver), "-ldl",
    )  # fmt: skip
    build(compiler, headers, *sanitize, "app.cpp", "-o", str(app), str(driver), f"-Wl,-rpath,{tmp_path}", "-lpthread")
    for mode in ("saxpy", "places", "kinds", "packed", "threads", "graph"):
        place = tmp_path / mode
        place.mkdir()
        (place / "config").write_text(f"cupti {driver}\nshapes 50\nafter 1\nsymbol table\n")
        environment = {
            **machine, "CUDA_INJECTION64_PATH": str(library), "CUDA_LSP_CAPTURE": str(place),
            "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1", "LD_LIBRARY_PATH": str(tmp_path),
        }  # fmt: skip
        done = subprocess.run([str(app), mode], env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert bool(read_capture(place).launches) == (mode != "graph")


def test_the_arguments_of_calls_lie_where_cupti_says(compiler: str, headers: Cupti, tmp_path: Path) -> None:
    """launch.hpp has structures of its own: compared with those of CUPTI's header, where that fits its cuda.h."""
    source = tmp_path / "layout.cpp"
    folder = Path(building.__file__).parent
    same = [("LaunchKernel", "cuLaunchKernel", "extra"), ("LaunchKernel", "cuLaunchCooperativeKernel", "kernelParams")]
    checks = [
        f"static_assert(offsetof({ours}, {name}) == offsetof({theirs}_params, {name}));"
        for ours, theirs, last in (*same, ("LaunchKernelEx", "cuLaunchKernelEx", "extra"))
        for name in (["f", "gridDimX", "sharedMemBytes", "hStream"] if "Ex" not in theirs else ["config", "f"])
        + ["kernelParams", last]
    ]
    source.write_text(
        f'#include <cupti.h>\n#include <cstddef>\n#include "{folder}/launch.hpp"\nusing namespace capture;\n'
        + "\n".join(checks)
    )
    build(compiler, headers, "-fsyntax-only", str(source))


def test_rewrites_are_judged_on_what_the_command_wrote_down(here: dict[str, str], file: str) -> None:
    """In the emulator what ``tests/gpu/test_capture.py`` does on a card."""
    assert command(here, "--file", file, "--write").returncode == 0
    environment = {name: value for name, value in here.items() if name != "LD_LIBRARY_PATH"}
    assert judged_on_what_was_captured(Path(file), "saxpy", "emulator", 250, environment) == ("right", "wrong")
