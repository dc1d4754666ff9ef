"""nvcc's flags as NVRTC's."""

import pytest

from agent.execution.compiler.flags import complaint, nvrtc_options, translate
from agent.execution.compiler.result import Options


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (("-DA=1", "-D", "B", "--define-macro=C"), ("-DA=1", "-DB", "-DC")),
        (("-UA", "-U", "B"), ("-UA", "-UB")),
        (("-std=c++20",), ("--std=c++20",)),
        (("--std", "gnu++17"), ("--std=c++17",)),
        (("--use_fast_math",), ("--use_fast_math",)),
        (("-use_fast_math",), ("--use_fast_math",)),
        (("-maxrregcount", "32"), ("--maxrregcount=32",)),
        (("--maxrregcount=32",), ("--maxrregcount=32",)),
        (("-fmad=false", "-ftz", "true", "--prec-div=false"), ("--fmad=false", "--ftz=true", "--prec-div=false")),
        (("-Xptxas", "-O3,-v"), ("--ptxas-options=-O3", "--ptxas-options=-v")),
        (("-Xptxas=-dlcm=ca",), ("--ptxas-options=-dlcm=ca",)),
        # only the host, the linker or the driver program cares
        (("-O3", "-g", "-G", "-lineinfo", "-Wall", "-fPIC", "-c", "-m64", "-std=c++17"), ("--std=c++17",)),
        (("-arch=sm_70", "-gencode", "arch=compute_80,code=sm_80", "--cuda-gpu-arch=sm_80"), ()),
        (("-Xcompiler", "-Wall,-O3", "-ccbin", "g++", "-o", "a.out", "-lcublas", "-L/x", "-rdc=true"), ()),
        (("--expt-relaxed-constexpr", "--extended-lambda", "-x", "cu"), ()),
    ],
)
def test_flags_as_nvrtc_has_them(given: tuple[str, ...], passed: tuple[str, ...]) -> None:
    flags = translate(given)
    assert flags.passed == passed
    assert flags.unknown == ()


def test_folders_and_forced_headers() -> None:
    flags = translate(("-Ia", "-I", "b", "--include-path=c,d", "-isystem", "e", "-include", "f.h"))
    assert flags.includes == ("a", "b", "c", "d", "e")
    assert flags.forced == ("f.h",)


def test_unknown_flags_are_named_and_left_out() -> None:
    flags = translate(("--device-as-default-execution-space", "-default-device", "-Xptxas", "--output-file=/tmp/x"))
    assert flags.passed == ()
    assert flags.unknown == (
        "--device-as-default-execution-space", "-default-device", "--ptxas-options=--output-file=/tmp/x",
    )  # fmt: skip
    assert all(item.severity == "warning" for item in flags.warnings())


def test_a_flag_without_its_value_is_no_crash() -> None:
    assert translate(("-D",)).passed in ((), ("-D",))
    assert translate(("-o",)).unknown == ("-o",)


def test_our_own_options_win() -> None:
    options = nvrtc_options(Options(arch="sm_80", fmad=False), ("--fmad=true", "-DA"))
    assert options == ("-DA", "--gpu-architecture=sm_80", "-lineinfo", "--ptxas-options=-v", "--fmad=false")
    assert "-G" in nvrtc_options(Options(optimised=False), ())


@pytest.mark.parametrize(
    "host",
    ["-O3 -g -lineinfo -Xcompiler -fPIC,-Wall -ccbin g++-12", "-gencode arch=compute_90,code=sm_90 -rdc=true -lcublas",
     "--default-stream per-thread --expt-relaxed-constexpr -Wno-deprecated-gpu-targets -fPIC -m64", "-x cu -c -o k.o"],
)  # fmt: skip
def test_flags_that_change_no_device_code_are_no_complaint(host: str) -> None:
    assert complaint((*host.split(), "-DA=1")) == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-fmda=false",), "`-fmda=false` is not known (did you mean `-fmad`?)"),
        (("-ffast-math",), "`-ffast-math` is not known"),
        (("other.cu",), "`other.cu` is no flag"),
        (("-I", "--use_fast_math"), "`-I` lacks its value"),
        (("-D",), "`-D` lacks its value"),
        (("-Xptxas", "-O3,--sly"), "`--ptxas-options=--sly` is not known"),
    ],
)
def test_flags_that_would_not_be_done_are_named(flags: tuple[str, ...], said: str) -> None:
    assert complaint(flags).startswith(f"compiler flags: {said}. Taken are -D, -U, ")
