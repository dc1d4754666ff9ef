"""The recorder on a real card, driver and runtime: a program built with nvcc, its runtime linked in or shared.

Expected contents are computed here, with NumPy, from what ``capture.cu`` says.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen

from agent.execution import toolkit
from agent.execution.gpu import open_gpu, why_no_gpu
from agent.inference.capture.building import recorder
from agent.inference.capture.cupti import Cupti, find_cupti
from agent.inference.capture.driver import find_driver
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.launches import Capture, Launch, Memory
from agent.inference.capture.log import read_capture
from agent.inference.capture.naming import spoken
from agent.inference.capture.running import Wanted, folder, record, told_by
from agent.inference.capture.telling import notes
from agent.source.document import read
from tests.cli.running import COMMAND
from tests.gpu.verified import judged_on_what_was_captured

pytestmark = pytest.mark.gpu

SOURCE = Path(__file__).with_name("capture.cu")
INDEX = np.arange(1000, dtype="<f4")
X, Y = 1 + INDEX / 2, -20 + INDEX / 2


@frozen
class Machine:
    library: Path
    cupti: Cupti
    nvcc: Path


@pytest.fixture(scope="module")
def machine() -> Machine:
    nvcc = toolkit.nvcc()
    if nvcc is None:
        pytest.skip("needs nvcc, which builds the program that is captured")
    try:
        cupti = find_cupti(find_driver().version)
        return Machine(recorder(cupti), cupti, nvcc)
    except CaptureError as error:
        pytest.skip(f"needs a card and CUPTI: {error}")


def built(machine: Machine, place: Path, *flags: str) -> Path:
    app = place / "app"
    arch = subprocess.run(
        ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    number = arch.stdout.split("\n")[0].strip().replace(".", "") or "90"
    command = [str(machine.nvcc), "-std=c++17", f"-arch=sm_{number}", *flags, str(SOURCE), "-o", str(app), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return app


@pytest.fixture(scope="module", params=["static", "shared"])
def app(request: pytest.FixtureRequest, machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, once for each way of linking CUDA's runtime."""
    return built(machine, tmp_path_factory.mktemp(request.param), "-cudart", request.param)


@pytest.fixture(scope="module")
def threaded(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a default stream for each thread: its calls are others of the driver's."""
    return built(machine, tmp_path_factory.mktemp("threaded"), "--default-stream", "per-thread")


@frozen
class Run:
    code: int
    capture: Capture

    def named(self, kernel: str) -> tuple[Launch, ...]:
        return tuple(one for one in self.capture.launches if spoken(one) == kernel)


def run(machine: Machine, app: Path, mode: str, place: Path, wanted: Wanted = Wanted()) -> Run:  # noqa: B008
    with folder(place / mode, place) as made:
        ended = record([str(app), mode], made, wanted, machine.library, machine.cupti)
    return Run(ended.code, read_capture(place / mode))


def held(place: Memory | None) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    assert place is not None and place.file is not None, place
    return np.fromfile(place.file, "<f4")


def test_launches_are_as_they_were_made(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "plain", tmp_path, Wanted(after=True))
    assert found.code == 7 and notes(found.capture) == ()
    (axpy,) = found.named("axpy")
    assert axpy.layout == "driver" and (axpy.grid, axpy.block, axpy.shared) == ((4, 1, 1), (256, 1, 1), 0)
    assert [len(one.data) for one in axpy.arguments] == [4, 4, 8, 8]
    assert int.from_bytes(axpy.arguments[0].data, "little") == 1000
    assert np.frombuffer(axpy.arguments[1].data, "<f4")[0] == 2.0
    x, y = axpy.arguments[2].memory, axpy.arguments[3].memory
    assert x is not None and (x.extent, x.offset, x.kind, x.managed, x.device) == (4000, 0, "device", False, 0)
    assert np.array_equal(held(x), X) and np.array_equal(held(y), Y)
    assert np.array_equal(held(axpy.after[3]), 2 * X + Y)
    (scaled,) = found.named("ns::scaled<float, 3>")
    assert (scaled.grid, scaled.block, scaled.shared) == ((8, 1, 1), (128, 1, 1), 64)
    assert np.array_equal(held(scaled.arguments[1].memory), 2 * X + Y)
    assert np.array_equal(held(scaled.after[1]), 3 * X)


@pytest.mark.parametrize("streams", ["legacy", "per thread"])
def test_contents_are_those_that_the_kernel_finds(
    streams: str, machine: Machine, app: Path, threaded: Path, tmp_path: Path
) -> None:
    """Work before it in its stream is waited for, and with the legacy default stream that of blocking ones too."""
    found = run(machine, app if streams == "legacy" else threaded, "order", tmp_path)
    assert found.code == 0
    assert np.array_equal(held(found.named("axpy")[0].arguments[2].memory), 7 + INDEX)
    if streams == "legacy":
        assert np.array_equal(held(found.named("ns::scaled<float, 3>")[0].arguments[0].memory), 9 + INDEX)


def test_memory_of_all_kinds(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "memory", tmp_path)
    middle = [one.memory for one in found.named("ns::scaled<float, 1>")[0].arguments[:2]]
    assert [(one.extent, one.offset) for one in middle if one] == [(4000, 400), (4000, 800)]
    managed, pinned = (one.memory for one in found.named("ns::scaled<float, 2>")[0].arguments[:2])
    assert managed is not None and managed.managed and np.array_equal(held(managed), 2 + INDEX / 2)
    assert pinned is not None and pinned.kind == "host" and np.array_equal(held(pinned), 3 + INDEX / 2)
    pooled = found.named("ns::scaled<float, 4>")[0].arguments[0].memory
    assert pooled is not None and np.array_equal(held(pooled)[pooled.offset // 4 :][:1000], 4 + INDEX / 2)
    (null,) = found.named("axpy")
    assert null.arguments[2].data == bytes(8) and null.arguments[2].memory is None


def test_variables_of_the_module(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "symbol", tmp_path, told_by(read(str(SOURCE)), Wanted()))
    (launch,) = found.named("weighted")
    assert [one.name for one in launch.symbols] == ["weights"]
    assert np.array_equal(held(launch.symbols[0].memory), [1, 2, 3, 4])


def test_launches_of_all_kinds(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "kinds", tmp_path)
    (together,), (by_value,), (nothing,), (plain,) = map(found.named, ("together", "by_value", "nothing", "plain"))
    assert together.cooperative and together.grid == (2, 1, 1)
    assert [len(one.data) for one in by_value.arguments] == [16]
    assert nothing.arguments == () and nothing.layout == "driver" and nothing.grid == (2, 1, 1)
    assert plain.cluster == (2, 1, 1) and plain.grid == (4, 2, 1) and len(plain.arguments) == 1


def test_graphs_are_left_alone(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "graph", tmp_path)
    assert found.code == 0 and found.named("axpy") == () and len(found.named("ns::scaled<float, 5>")) == 1
    told = "\n".join(notes(found.capture))
    assert "2 launches of captured graphs" in told and "1 launch while a graph was being captured" in told


def test_many_launches(machine: Machine, app: Path, tmp_path: Path) -> None:
    start = time.monotonic()
    found = run(machine, app, "many", tmp_path)
    print(f"100,000 launches in {time.monotonic() - start:.2f} s")
    assert found.code == 0 and [one.number for one in found.named("plain")] == [1, 2, 3]
    assert "99997 launches beyond" in "\n".join(notes(found.capture))


def test_threads(machine: Machine, app: Path, threaded: Path, tmp_path: Path) -> None:
    for number, program in enumerate((app, threaded)):
        found = run(machine, program, "threads", tmp_path / str(number), Wanted(shapes=1000, buffer=1 << 20))
        assert found.code == 0 and len(found.named("plain")) == 400
        assert {one.grid[0] for one in found.named("plain")} == {*range(1, 201), *range(1000, 1200)}


def test_a_kernel_that_faults(machine: Machine, app: Path, tmp_path: Path) -> None:
    found = run(machine, app, "fault", tmp_path, Wanted(after=True))
    assert found.code == 5
    (launch,) = found.named("outside")
    assert np.array_equal(held(launch.arguments[0].memory), X)
    assert launch.after[0].held == "copy failed" and launch.after[0].code != 0


def test_a_directive_from_a_launch_is_verified(machine: Machine, threaded: Path, tmp_path: Path) -> None:
    """From the program to a verdict on the card: a rewrite that is right, and one that is right for other contents."""
    gpu = open_gpu()
    if gpu is None:
        pytest.skip(f"needs CuPy: {why_no_gpu()}")
    gpu.close()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    file = tmp_path / "capture.cu"
    shutil.copy(SOURCE, file)
    done = subprocess.run(
        [*COMMAND, "capture", "--file", str(file), "--kernel", "axpy", "--write", "--", str(threaded), "plain"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 7 and done.stdout == "mode plain\ny 3 4.5\n" and "Traceback" not in done.stderr
    text = file.read_text()
    assert "//   launch   axpy<<<4, 256>>>(n, a, x, y)" in text and "data(" in text
    assert judged_on_what_was_captured(file, "axpy", "gpu", 90, environment) == ("right", "wrong")


TORCH = """
import cupy, torch
x = torch.arange(3000, dtype=torch.float32, device="cuda")
y = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()
code = 'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }'
cupy.RawKernel(code, "twice")((1,), (1000,), (x.data_ptr() + 4000, y.data_ptr()))
torch.cuda.synchronize()
print(float(y.sum()))
"""


@pytest.fixture
def torch_python() -> Iterator[str]:
    found = next(
        (
            one
            for one in (sys.executable, shutil.which("python3"))
            if one and subprocess.run([one, "-c", "import cupy, torch"], capture_output=True).returncode == 0
        ),
        None,
    )
    if found is None:
        pytest.skip("needs PyTorch and CuPy in one Python")
    yield found


def test_pytorch(machine: Machine, torch_python: str, tmp_path: Path) -> None:
    """Its allocator hands out pieces of blocks: the block is what is recorded, and the offset is kept."""
    with folder(tmp_path / "torch", tmp_path) as made:
        ended = record([torch_python, "-c", TORCH], made, Wanted(shapes=9), machine.library, machine.cupti)
    found = read_capture(tmp_path / "torch")
    assert ended.code == 0
    (launch,) = [one for one in found.launches if one.name == "twice"]
    place = launch.arguments[0].memory
    assert place is not None and place.file is not None and place.extent > 12000, "the block, not the tensor"
    values = np.fromfile(place.file, "<f4")[place.offset // 4 :]
    assert np.array_equal(values[:1000], np.arange(1000, 2000))
