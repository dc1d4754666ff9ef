"""From a launch to a directive: golden texts worked out by hand, and a message for each thing that none can state."""

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from agent.inference.capture import stating
from agent.inference.capture.launches import Argument, Launch, Memory, Symbol
from agent.inference.capture.log import read_log
from agent.source.document import Document, parse
from agent.workload import data, generators
from agent.workload.bind import bind
from agent.workload.binding import PointerArgument, ValueArgument
from agent.workload.directive import format_directive, read_directive
from agent.workload.errors import WorkloadError
from tests.inference.capture import writing
from tests.inference.capture.writing import SAXPY, kernel, log

X, Y = np.arange(1000, dtype="<f4"), np.ones(1000, "<f4")
SOURCE = """__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def saxpy(tmp_path: Path) -> Launch:
    path = tmp_path / "42.log"
    path.write_bytes(log(kernel(*SAXPY), writing.saxpy(tmp_path, X.tobytes(), Y.tobytes())))
    found = read_log(path)
    assert found is not None
    return found.launches[0]


def stated(launch: Launch, source: str = SOURCE) -> stating.Stated:
    document = parse(source.encode())
    return stating.state(launch, document.kernels[-1], document)


def changed(launch: Launch, at: int, **more: object) -> Launch:
    """The launch with the place that an argument points to changed."""
    held = launch.arguments[at].memory
    assert held is not None
    return with_argument(launch, at, evolve(launch.arguments[at], memory=evolve(held, **more)))


def with_argument(launch: Launch, at: int, argument: Argument) -> Launch:
    return evolve(launch, arguments=(*launch.arguments[:at], argument, *launch.arguments[at + 1 :]))


def short(values: np.ndarray) -> str:
    return hashlib.sha256(values.tobytes()).hexdigest()[:32]


def test_a_launch_becomes_a_directive(saxpy: Launch) -> None:
    found = stated(saxpy)
    assert found.notes == ()
    assert format_directive(found.workload) == (
        "// cuda-lsp: workload\n//   const    n = 1000\n//   const    a = 2.0f\n"
        f"//   buffer   x: f32[1000] in data({short(X)})\n//   buffer   y: f32[1000] inout data({short(Y)})\n"
        "//   launch   saxpy<<<4, 256>>>(n, a, x, y)\n"
    )


def test_the_directive_is_the_launch(saxpy: Launch) -> None:
    document = parse((format_directive(stated(saxpy).workload) + SOURCE).encode())
    workload = read_directive(document, document.kernels[0])
    assert workload is not None
    bound = bind(workload, workload.plan, None, document)
    (step,) = bound.steps
    assert step.arguments == (  # type: ignore[union-attr]
        ValueArgument("i32", 1000), ValueArgument("f32", 2.0), PointerArgument("x"), PointerArgument("y")
    )  # fmt: skip
    for buffer, values in zip(bound.buffers, (X, Y), strict=True):
        assert generators.recipe(buffer, "captured", 0)(0, buffer.nbytes).tobytes() == values.tobytes()


def test_what_is_only_written_needs_no_contents(saxpy: Launch) -> None:
    source = SOURCE.replace("a * x[i] + y[i]", "a * x[i]")
    found = stated(changed(saxpy, 3, held="too large", file=None), source)
    assert "buffer   y: f32[1000] out\n" in format_directive(found.workload)


def test_arguments_into_one_allocation_are_one_buffer(saxpy: Launch) -> None:
    place = saxpy.arguments[2].memory
    assert place is not None
    one = changed(saxpy, 2, offset=400)
    one = with_argument(one, 3, evolve(one.arguments[3], memory=evolve(place, offset=2400)))
    found = stated(one)
    text = format_directive(found.workload)
    assert f"buffer   x: f32[1000] inout data({short(X)})\n" in text and "(n, a, x + 100, x + 600)" in text
    assert found.notes == ("`x`, `y` point into one allocation, and do so in the workload",)


def test_a_pointer_into_the_middle_keeps_its_offset(saxpy: Launch) -> None:
    found = stated(changed(saxpy, 2, offset=8))
    assert "(n, a, x + 2, y)" in format_directive(found.workload)
    assert "points 8 bytes into an allocation of 4000" in found.notes[0]


def test_other_kinds_of_memory_are_told(saxpy: Launch) -> None:
    found = stated(changed(changed(saxpy, 2, managed=True), 3, kind="host"))
    assert found.notes == (
        "`x` is managed memory; in the workload it is device memory",
        "`y` is pinned host memory; in the workload it is device memory",
    )


@pytest.mark.parametrize(
    ("source", "offset", "why"),
    [
        (SOURCE.replace("const float* x", "const void* x"), 0, "its element type is not known here"),
        (SOURCE.replace("const float* x", "const float3* x"), 0, "it holds no whole number of `f32x3`"),
        (SOURCE, 2, "it holds no whole number of `f32`"),
    ],
)
def test_what_has_no_element_type_is_bytes(source: str, offset: int, why: str, saxpy: Launch) -> None:
    found = stated(changed(saxpy, 2, offset=offset), source)
    text = format_directive(found.workload)
    assert "x: u8[4000] in" in text and ("x + 2" in text) == bool(offset)
    assert found.notes[0] == f"`x` is stated, and compared, as bytes: {why}"


def test_templates_are_launched_with_their_arguments(saxpy: Launch) -> None:
    source = "template <typename T, int N>\n" + SOURCE.replace("float", "T")
    one = evolve(saxpy, readable="void saxpy<float, 4>(int, float, float const*, float*)")
    text = format_directive(stated(one, source).workload)
    assert "launch   saxpy<float, 4><<<4, 256>>>(n, a, x, y)" in text and "x: f32[1000]" in text


def test_variables_of_the_module_come_along(saxpy: Launch, tmp_path: Path) -> None:
    file = tmp_path / "table.raw"
    file.write_bytes(X[:16].tobytes())
    place = Memory(0xA000, 64, 0, "device", False, 0, "kept", 0, file)
    source = "__constant__ float table[16];\n__device__ int left;\n" + SOURCE.replace("a *", "left + table[i % 16] *")
    found = stated(evolve(saxpy, symbols=(Symbol("table", place),)), source)
    assert f"symbol   table: f32[16] in data({short(X[:16])})" in format_directive(found.workload)
    assert found.notes == ("the variable `left` (line 2) was not recorded: it holds what the file says",)


def test_shapes_and_shared_bytes(saxpy: Launch) -> None:
    one = evolve(saxpy, grid=(2, 3, 4), block=(32, 2, 1), shared=16, cooperative=True)
    found = stated(one)
    assert "saxpy<<<dim3(2, 3, 4), dim3(32, 2), 16>>>" in format_directive(found.workload)
    assert found.notes == ("it was a cooperative launch; a plan launches plainly",)


POINTER = struct.pack("<Q", 0x7000)


@pytest.mark.parametrize(
    ("more", "source", "message"),
    [
        ({"layout": "unknown", "arguments": ()}, SOURCE, r"driver is too old .*--file"),
        ({"cluster": (2, 1, 1)}, SOURCE, "clusters of"),
        ({}, SOURCE.replace("int n, ", ""), "passes 4 arguments, and the file's kernel takes 3"),
        ({}, SOURCE.replace("const float* x", "const float** x"), "pointer to pointers"),
        ({}, "struct P { float* p; };\n" + SOURCE.replace("int n", "P n"), "are not read off them"),
        ({}, SOURCE.replace("int n", "long n"), "has 8 bytes in this file, and 4 were passed"),
        ({}, SOURCE.replace("int n", "float* n"), "passed in 4 bytes, which are no address"),
    ],
)
def test_what_no_directive_can_state(more: dict[str, object], source: str, message: str, saxpy: Launch) -> None:
    with pytest.raises(WorkloadError, match=message):
        stated(evolve(saxpy, **more), source)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (Argument(8, bytes(8)), "`x` was a null pointer"),
        (Argument(8, POINTER), "does not know .*pageable"),
        (Argument(8, POINTER, Memory(0, 0, 0, "device", False, 0, "no extent")), "does not tell how large"),
        (Argument(8, POINTER, Memory(1, 4000, 0, "device", False, 0, "too large")), "more than --max-buffer"),
        (Argument(8, POINTER, Memory(1, 4000, 0, "device", False, 0, "over the total")), "left of --max-total"),
        (Argument(8, POINTER, Memory(1, 4000, 0, "device", False, 0, "disk", 28)), "disk is full"),
        (Argument(8, POINTER, Memory(1, 4000, 0, "device", False, 0, "copy failed", 700)), "CUDA error 700"),
    ],
)
def test_pointers_that_lead_nowhere(argument: Argument, message: str, saxpy: Launch) -> None:
    with pytest.raises(WorkloadError, match=message):
        stated(with_argument(saxpy, 2, argument))


def test_not_a_number_is_no_constant(saxpy: Launch) -> None:
    with pytest.raises(WorkloadError, match="not a number"):
        stated(with_argument(saxpy, 1, Argument(4, struct.pack("<f", float("nan")))))


C_TYPES = {
    "f32": ("float", "<f4"), "f64": ("double", "<f8"), "f16": ("half", "<f2"), "i8": ("char", "<i1"),
    "u8": ("unsigned char", "<u1"), "i16": ("short", "<i2"), "u16": ("unsigned short", "<u2"), "i32": ("int", "<i4"),
    "u32": ("unsigned", "<u4"), "i64": ("long long", "<i8"), "u64": ("size_t", "<u8"),
}  # fmt: skip


@given(dtype=st.sampled_from(sorted(C_TYPES)), raw=st.binary(min_size=8, max_size=8))
def test_every_number_is_passed_as_it_was(dtype: str, raw: bytes) -> None:
    """Read back from the directive's text, it has the very bits."""
    spelled, form = C_TYPES[dtype]
    width = np.dtype(form).itemsize
    value = np.frombuffer(raw[:width], form)
    if np.issubdtype(value.dtype, np.floating) and np.isnan(value[0]):
        return
    source = f"#include <cuda_fp16.h>\n__global__ void k({spelled} v, float* y) {{ y[0] = (float)v; }}\n"
    place = Memory(0x7000, 4, 0, "device", False, 0, "too large")
    launch = Launch(
        1, 1, 1, "_Z1kfPf", "k(float, float*)", 0, 1, False, "driver", (1, 1, 1), (1, 1, 1), (1, 1, 1), 0,
        (Argument(0, raw[:width]), Argument(8, POINTER, place)),
    )  # fmt: skip
    document = parse((format_directive(stated(launch, source).workload) + source.split("\n", 1)[1]).encode())
    workload = read_directive(document, document.kernels[0])
    assert workload is not None
    passed = bind(workload, workload.plan, None, document).steps[0].arguments[0]  # type: ignore[union-attr]
    assert isinstance(passed, ValueArgument) and passed.dtype == dtype
    assert np.array([passed.value]).astype(form).tobytes() == value.tobytes()


def test_unnamed_parameters_get_a_name(saxpy: Launch) -> None:
    text = format_directive(stated(saxpy, SOURCE.replace("int n", "int").replace("i < n", "i < 9")).workload)
    assert "const    argument1 = 1000" in text and "(argument1, a, x, y)" in text


def test_a_damaged_kernel_is_not_stated(saxpy: Launch) -> None:
    document: Document = parse(SOURCE.replace("if (i < n)", "if (i < ) @").encode())
    with pytest.raises(WorkloadError, match="cannot be read"):
        stating.state(saxpy, document.kernels[-1], document)


def test_contents_that_cannot_be_kept_say_so(saxpy: Launch, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with pytest.raises(OSError):
        stated(saxpy)
    assert not data.folder().exists()
