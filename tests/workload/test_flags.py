"""What is taken of another build's command line, and which of several flags count."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.workload.flags import folders, macros, merged, taken

HERE = Path("/project/build")


def flags(*arguments: str) -> tuple[str, ...]:
    return taken(arguments, HERE).flags


@pytest.mark.parametrize(
    ("told", "here"),
    [
        (("-DTILE=16",), ("-DTILE=16",)),
        (("-D", "TILE=16"), ("-DTILE=16",)),
        (("--define-macro=TILE=16",), ("-DTILE=16",)),
        (("-DF(x)=(x) + 1",), ("-DF(x)=(x) + 1",)),
        (("-DFAST", "-UFAST"), ("-DFAST", "-UFAST")),
        (("-I../include",), ("-I/project/include",)),
        (("-isystem", "/opt/lib/include"), ("-I/opt/lib/include",)),
        (("-iquote", "sub"), ("-I/project/build/sub",)),
        (("-std=gnu++20",), ("--std=c++20",)),
        (("--std", "c++2a"), ("--std=c++20",)),
        (("-use_fast_math",), ("--use_fast_math",)),
        (("-maxrregcount", "32"), ("--maxrregcount=32",)),
        (("--maxrregcount=64",), ("--maxrregcount=64",)),
        (("-ftz=true", "--prec-div=false", "-prec-sqrt", "false", "--fmad=false"),
         ("--ftz=true", "--prec-div=false", "--prec-sqrt=false", "--fmad=false")),
        (("-fgpu-flush-denormals-to-zero", "-ffp-contract=off"), ("--ftz=true", "--fmad=false")),
        # what is the host's, the linker's or the driver program's, with its value
        (("-Xcompiler", "-DHOST", "-MF", "-DX", "-o", "-Iout", "-c", "-O3", "-Wall", "-stdlib=libc++", "k.cu"), ()),
        (("--expt-extended-lambda", "--extended-lambda", "-lineinfo", "-G", "-g", "-keep"), ()),
    ],
)  # fmt: skip
def test_what_means_the_same_here_is_taken(told: tuple[str, ...], here: tuple[str, ...]) -> None:
    found = taken(told, HERE)
    assert found.flags == here


@pytest.mark.parametrize(
    "told",
    [
        ("-arch=sm_70",),
        ("-gencode", "arch=compute_70,code=sm_70"),
        ("--generate-code=arch=compute_70,code=[compute_70,sm_70]",),
        ("--cuda-gpu-arch=sm_70",),
        ("--offload-arch=gfx90a",),
        ("-std=c++14",),
        ("-maxrregcount=many",),
        ("-D__CUDA_ARCH__=300",),
        ("-D__HIP_PLATFORM_AMD__=1",),
        ("-ffast-math",),
    ],
)
def test_what_might_matter_and_is_not_taken_is_said(told: tuple[str, ...]) -> None:
    found = taken(("-DA", *told, "-DB"), HERE)
    assert found.flags == ("-DA", "-DB")
    assert found.left_out == (" ".join(told),)


def test_headers_before_the_source_are_named() -> None:
    found = taken(("-include", "a.h", "-DA", "--pre-include=b.h,c.h", "-imacros", "d.h", "-included.h"), HERE)
    assert (found.flags, found.forced, found.left_out) == (("-DA",), ("a.h", "b.h", "c.h", "d.h", "d.h"), ())


@pytest.mark.parametrize("value", ['A=1\n#include "/etc/passwd"', "A\0", "", "1A", "A=" + "x" * 5000, "A B"])
def test_a_macro_that_is_none_is_not_taken(value: str) -> None:
    assert flags("-D", value) == ()


@given(st.lists(st.one_of(st.text(), st.sampled_from(["-D", "-I", "-std", "-include", "-Xcompiler", "-maxrregcount"]))))
def test_odd_command_lines_give_known_flags_and_nothing_else(told: list[str]) -> None:
    found = taken(told, HERE)
    assert all(flag.isprintable() and flag.startswith(("-D", "-U", "-I/", "--")) for flag in found.flags)
    assert all(text.isprintable() for text in found.left_out)


def test_a_later_origin_overrules_and_its_folders_come_first() -> None:
    found = merged(("-DN=1", "-Ia", "--fmad=false"), ("-DN=2", "-I", "b"), ("-DN=1", "-Ic", "-I", "a"))
    assert macros(found) == {"N": "1"}
    assert folders(found) == ("c", "a", "b", "a")
    assert found[:1] == ("--fmad=false",)


def test_a_name_that_is_undefined_again_is_none() -> None:
    assert macros(("-DA", "-DB=", "--define-macro", "C=2", "-UA")) == {"A": None, "B": "", "C": "2"}
