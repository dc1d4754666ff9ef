"""From a real file to a build: slicer and compiler together, and whole files with nvcc."""

import tempfile
from pathlib import Path

import pytest

from agent.execution import toolkit
from agent.execution.compiler import Build, CompileFailure, Options, build, check_file
from agent.execution.compiler.whole_file import kept_flags
from agent.source.document import Document, parse
from agent.workload.expression import Expression
from agent.workload.plan import Launch, Plan
from agent.workload.program import Program

SOURCE = """#include <cstdio>
#include <cuda_runtime.h>

template <typename T> __global__ void scale(T* x, T by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

int main() {
    float* x;
    cudaMalloc(&x, 400);
    scale<float><<<1, 128>>>(x, 2.0f, 100);
    printf("%d\\n", cudaDeviceSynchronize());
}
"""


def program(document: Document, kernel: str) -> Program:
    one, block = Expression.parse("1"), Expression.parse("128")
    launch = Launch(kernel, (one, one, one), (block, one, one), Expression.parse("0"), ())
    return Program(document, Plan((launch,)), "original")


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("kernel", ["scale<float>", "scale"])
def test_entries_are_keyed_as_the_plan_names_its_kernels(kernel: str) -> None:
    result = build(program(parse(SOURCE.encode(), "/w/scale.cu"), kernel), Options())
    assert isinstance(result, Build), result
    assert result.entries == {kernel: "_Z5scaleIfEvPT_S0_i"}
    assert result.resources[kernel].registers > 0
    assert '"/w/scale.cu"' in result.ptx


@pytest.mark.usefixtures("nvrtc")
def test_an_error_stands_on_the_line_of_the_file() -> None:
    result = build(program(parse(SOURCE.replace("by;", "bye;").encode(), "/w/scale.cu"), "scale<float>"), Options())
    assert isinstance(result, CompileFailure)
    assert result.message.startswith('line 6: identifier "bye" is undefined')


def test_an_unknown_kernel_is_a_value() -> None:
    result = build(program(parse(SOURCE.encode(), "/w/scale.cu"), "shrink"), Options())
    assert isinstance(result, CompileFailure) and result.kind == "source"
    assert "shrink" in result.message and "scale" in result.message


@pytest.mark.usefixtures("nvrtc")
def test_no_private_file_is_inlined(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("TOKEN-1234\n")
    home = tmp_path / "project"
    home.mkdir()
    (home / "key.h").symlink_to(tmp_path / "secret")
    for name in ("../secret", str(tmp_path / "secret"), "key.h"):
        text = f'#include "{name}"\n{SOURCE}'
        (home / "k.cu").write_text(text)
        result = build(program(parse(text.encode(), str(home / "k.cu")), "scale<float>"), Options())
        assert "TOKEN" not in repr(result)
        whole = check_file(parse(text.encode(), str(home / "k.cu")), Options())
        assert "TOKEN" not in repr(whole)


@pytest.fixture
def nvcc() -> None:
    if toolkit.nvcc() is None:
        pytest.skip("no nvcc here")


@pytest.mark.usefixtures("nvcc")
def test_a_whole_file_compiles_with_its_own_flags_and_headers(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define BY 2.0f\n")
    text = '#include "own.h"\n' + SOURCE.replace("2.0f", "BY * MORE")
    document = parse(text.encode(), str(tmp_path / "scale.cu"))
    assert check_file(document, Options(flags=("-DMORE=2", "-o", "elsewhere", "-arch=sm_50"))) == ()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["own.h"]


@pytest.mark.usefixtures("nvcc")
def test_host_errors_are_found_on_the_users_file(tmp_path: Path) -> None:
    path = str(tmp_path / "scale.cu")
    result = check_file(parse(SOURCE.replace("float* x;", "flot* x;").encode(), path), Options())
    assert isinstance(result, CompileFailure) and result.kind == "source"
    assert (path, 10) in {(item.file, item.line) for item in result.diagnostics}


@pytest.mark.usefixtures("nvcc")
def test_a_whole_file_that_takes_too_long(tmp_path: Path) -> None:
    document = parse(SOURCE.encode(), str(tmp_path / "scale.cu"))
    result = check_file(document, Options(), seconds=0.05)
    assert isinstance(result, CompileFailure) and result.kind == "timeout"
    result = check_file(document, Options(), cancelled=lambda: True)
    assert isinstance(result, CompileFailure) and result.kind == "cancelled"


def test_no_nvcc_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvcc", lambda: None)
    result = check_file(parse(SOURCE.encode(), "scale.cu"), Options())
    assert isinstance(result, CompileFailure) and result.kind == "unavailable"


def test_outputs_and_architectures_of_the_users_command_are_left_out() -> None:
    given = ("-O3", "-o", "a.out", "-arch=sm_70", "-gencode", "arch=compute_70,code=sm_70", "-lcublas", "-DN=3", "-c")
    assert kept_flags(given) == ("-O3", "-DN=3")


@pytest.mark.usefixtures("nvcc")
def test_nvcc_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", "/nowhere")  # nvcc would put aside there, and fail
    assert not isinstance(check_file(parse(b"__global__ void k() {}\n", "a.cu"), Options()), CompileFailure)
    ended = check_file(parse(b"#include <vector>\n__global__ void k() {}\n", "a.cu"), Options(), seconds=0.05)
    assert isinstance(ended, CompileFailure) and ended.kind == "timeout"
    assert list(tmp_path.iterdir()) == []
