"""Logs as NVIDIA's manual of compute-sanitizer prints them."""

import pytest

from agent.execution.sanitizing import read_log

END = "========= ERROR SUMMARY: 1 error\n"

STRAY = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at tail(float *, int)+0x90 in my kernels.cu:34
=========     by thread (32,0,1) in block (4,5,6)
=========     Address 0x710fdca00004 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x710fdca00000 of size 4 bytes
=========         Device Frame: tail(float *, int)+0x30 in my kernels.cu:44
=========
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(int *, int *)+0x90 in /home/me/block_error.cu:41
=========     and Read access at sum(int *, int *)+0x100 in /home/me/block_error.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_a_stray_write() -> None:
    (fault,) = read_log(STRAY + END).faults
    assert (fault.kind, fault.kernel) == ("out-of-bounds write", "tail")
    assert (fault.where.file, fault.where.line) == ("my kernels.cu", 34)
    assert (fault.where.thread, fault.where.block) == ((32, 0, 1), (4, 5, 6))
    assert "1 bytes after the nearest allocation" in fault.message


def test_a_race_has_two_places() -> None:
    found = read_log(RACE)
    assert found.status == "ok"
    (fault,) = found.faults
    assert (fault.kind, fault.kernel, fault.where.line) == ("shared-memory race", "sum", 41)
    assert fault.other is not None and fault.other.line == 51


@pytest.mark.parametrize(
    ("report", "kind", "line"),
    [
        (
            "Invalid __shared__ read of size 8 bytes\n=========     at f<int>(T1)+0x50 in a.cu:7\n"
            "=========     by thread (0,0,0) in block (0,0,0)\n=========     Address 0x1 is misaligned",
            "misaligned access",
            7,
        ),
        (
            "Invalid __global__ atomic of size 4 bytes\n=========     at ns::k():0x160 in a.cu:6",
            "out-of-bounds write",
            6,
        ),
        (
            "Uninitialized __global__ memory read of size 4 bytes\n=========     at vectorAdd(int *)+0x70",
            "uninitialised read",
            0,
        ),
        (
            "Barrier error detected. Divergent thread(s) in block.\n"
            "=========     at [clone myKernel(int *, int *)] outlineSync()+0x11f0 in test.cu:42",
            "divergent barrier",
            42,
        ),
        (
            "ERROR: Potential WAW hazard detected at __shared__ 0x0 in block (0,0,0) :\n"
            "=========     Write Thread (0,0,0) at WAW()+0x2f0 in raceWAW.cu:20\n"
            "=========     Write Thread (1,0,0) at WAW()+0x2f0 in raceWAW.cu:20",
            "shared-memory race",
            20,
        ),
        ("Something that nobody here has heard of", "reported by compute-sanitizer", 0),
    ],
)
def test_kinds(report: str, kind: str, line: int) -> None:
    (fault,) = read_log(f"========= COMPUTE-SANITIZER\n========= {report}\n=========\n{END}").faults
    assert (fault.kind, fault.where.line) == (kind, line)


def test_equal_reports_are_counted() -> None:
    (fault,) = read_log(STRAY + STRAY.replace("(32,0,1)", "(33,0,1)") + END).faults
    assert fault.count == 2


def test_nothing_found() -> None:
    quiet = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    assert read_log(quiet) == read_log("the program's own words\n" + quiet)
    assert (read_log(quiet).status, read_log(quiet).faults) == ("ok", ())


@pytest.mark.parametrize(
    "log",
    [
        "",
        "========= COMPUTE-SANITIZER\n",
        STRAY,
        f"========= Error: Target application terminated before first instrumented API call\n{END}",
        f"========= Internal Sanitizer Error: The Sanitizer encountered an error while launching k\n{END}",
    ],
)
def test_a_log_that_proves_nothing(log: str) -> None:
    found = read_log(log)
    assert found.status == "unavailable" and found.message and not found.faults
