"""Occupancy against hand computations from NVIDIA's published tables, and against NVIDIA's own calculator."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.execution import toolkit
from agent.execution.architectures import KNOWN, UnknownArchitecture, architecture
from agent.execution.compiler.result import Resources
from agent.execution.occupancy import occupancy


def using(registers: int, static_shared: int = 0, barriers: int = 1) -> Resources:
    return Resources(registers, 0, 0, 0, static_shared, barriers)


# From the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide:
# resident threads, resident blocks, shared memory per SM and per block in KB.
PUBLISHED = {
    "sm_75": (1024, 16, 64, 64),
    "sm_80": (2048, 32, 164, 163),
    "sm_86": (1536, 16, 100, 99),
    "sm_87": (1536, 16, 164, 163),
    "sm_89": (1536, 24, 100, 99),
    "sm_90": (2048, 32, 228, 227),
    "sm_100": (2048, 32, 228, 227),
    "sm_103": (2048, 32, 228, 227),
    "sm_110": (1536, 24, 228, 227),
    "sm_120": (1536, 24, 100, 99),
    "sm_121": (1536, 24, 100, 99),
}


@pytest.mark.parametrize("arch", PUBLISHED)
def test_limits_are_the_published_ones(arch: str) -> None:
    sm = architecture(arch)
    assert (sm.threads_per_sm, sm.blocks_per_sm, sm.shared_per_sm // 1024, sm.shared_per_block // 1024) == PUBLISHED[
        arch
    ]
    assert (sm.registers_per_sm, sm.registers_per_block, sm.registers_per_thread) == (65536, 65536, 255)


@pytest.mark.parametrize(
    ("arch", "registers", "static", "dynamic", "threads", "blocks", "limiter"),
    [
        # 32 registers x 32 lanes = 1024 a warp; 65536 / 1024 = 64 warps: all 64 slots of sm_80, 8 blocks of 8 warps.
        ("sm_80", 32, 0, 0, 256, 8, "threads"),
        # 33 x 32 = 1056, in units of 256: 1280. A partition has 16384: 12 warps, 48 in all, 6 blocks.
        ("sm_80", 33, 0, 0, 256, 6, "registers"),
        # 255 x 32 = 8160 -> 8192: 2 warps a partition, 8 in all: one block of 8 warps.
        ("sm_90", 255, 0, 0, 256, 1, "registers"),
        # ... and none of 16 warps: 16 x 8192 registers are twice what there is.
        ("sm_90", 255, 0, 0, 512, 0, "registers"),
        # 42 x 32 = 1344 -> 1536: 10 warps a partition, 40 in all; blocks of 8: 5 of 6 that the 48 slots would hold.
        ("sm_86", 42, 0, 0, 256, 5, "registers"),
        # One warp a block: sm_75 holds 16 blocks, though 32 warps would fit.
        ("sm_75", 16, 0, 0, 32, 16, "blocks"),
        ("sm_89", 16, 0, 0, 32, 24, "blocks"),
        ("sm_90", 16, 0, 0, 32, 32, "blocks"),
        # 48 KB + 1 KB that the driver takes = 49 KB: 4 in 228 KB on sm_90, 3 in 164 KB, 2 in 100 KB.
        ("sm_90", 16, 49152, 0, 128, 4, "shared memory"),
        ("sm_80", 16, 49152, 0, 128, 3, "shared memory"),
        ("sm_86", 16, 49152, 0, 128, 2, "shared memory"),
        # Nothing is taken on sm_75: 32 KB twice in 64 KB.
        ("sm_75", 16, 0, 32768, 128, 2, "shared memory"),
        # Dynamic memory up to the opt-in limit fits once, one byte more does not fit.
        ("sm_90", 16, 0, 227 * 1024, 128, 1, "shared memory"),
        ("sm_90", 16, 0, 227 * 1024 + 1, 128, 0, "shared memory"),
        # 1 byte + 1 KB, in units of 128: 1152 bytes; 100 KB / 1152 = 88: no limit beside 12 blocks of 4 warps.
        ("sm_86", 16, 1, 0, 128, 12, "threads"),
        # A partial warp costs a whole one: 33 threads are 2 warps.
        ("sm_90", 16, 0, 0, 33, 32, "threads"),
        # 1024 threads at 64 registers: 2048 a warp, 8 warps a partition, 32 in all.
        ("sm_90", 64, 0, 0, 1024, 1, "registers"),
        ("sm_90", 65, 0, 0, 1024, 0, "registers"),
        ("sm_90", 16, 0, 0, 1025, 0, "threads"),
        # 1536 slots are no multiple of 1024: one block, two thirds.
        ("sm_86", 16, 0, 0, 1024, 1, "threads"),
    ],
)  # fmt: skip
def test_by_hand(arch: str, registers: int, static: int, dynamic: int, threads: int, blocks: int, limiter: str) -> None:
    got = occupancy(arch, using(registers, static), threads, dynamic)
    assert (got.blocks_per_sm, got.limiter) == (blocks, limiter)
    warps = blocks * -(-threads // 32)
    assert got.warps_per_sm == warps
    assert got.ratio == warps / (PUBLISHED[arch][0] / 32)


def test_named_barriers_limit_blocks_from_sm_90_on() -> None:
    # 64 barriers an SM on sm_90; a kernel with 16 of them: 4 blocks.
    got = occupancy("sm_90", using(16, barriers=16), 64)
    assert (got.blocks_per_sm, got.limiter) == (4, "barriers")
    assert occupancy("sm_80", using(16, barriers=16), 64).blocks_per_sm == 32


def test_bad_questions() -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        occupancy("sm_90", using(16), 0)
    with pytest.raises(UnknownArchitecture, match="sm_90"):
        occupancy("sm_35", using(16), 32)


PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include <climits>
#include <cuda_occupancy.h>
int main() {
    int cc, threads_sm, regs, block, barriers; size_t sm, optin, reserved, fixed, dynamic;
    while (scanf("%d %d %zu %zu %zu %d %zu %zu %d %d", &cc, &threads_sm, &sm, &optin, &reserved, &regs, &fixed,
                 &dynamic, &block, &barriers) == 10) {
        cudaOccDeviceProp p; cudaOccFuncAttributes a; cudaOccDeviceState s; cudaOccResult r;
        p.computeMajor = cc / 10; p.computeMinor = cc % 10; p.maxThreadsPerBlock = 1024;
        p.maxThreadsPerMultiprocessor = threads_sm; p.regsPerBlock = p.regsPerMultiprocessor = 65536; p.warpSize = 32;
        p.sharedMemPerBlock = 48 * 1024; p.sharedMemPerMultiprocessor = sm; p.numSms = 1;
        p.sharedMemPerBlockOptin = optin; p.reservedSharedMemPerBlock = reserved;
        a.maxThreadsPerBlock = INT_MAX; a.numRegs = regs; a.sharedSizeBytes = fixed;
        a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        a.maxDynamicSharedSizeBytes = dynamic; a.numBlockBarriers = barriers;
        int status = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, block, dynamic);
        printf("%d\n", status ? -status : r.activeBlocksPerMultiprocessor);
    }
}
"""


def test_nvidias_own_calculator_agrees(tmp_path: Path) -> None:
    """NVIDIA's ``cuda_occupancy.h``, compiled here and asked the same 4,000 questions."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    folders = toolkit.include_folders()
    if compiler is None or not folders or not (folders[0] / "cuda_occupancy.h").is_file():
        pytest.skip("needs a C++ compiler and cuda_occupancy.h")
    (tmp_path / "ask.cpp").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-w", f"-I{folders[0]}", "ask.cpp", "-o", "ask"], cwd=tmp_path, check=True)
    chance = random.Random(7)
    questions = []
    version = re.search(r"#define CUDA_VERSION (\d+)", (folders[0] / "cuda.h").read_text(errors="replace"))
    assert version
    newer = ("sm_107",) if int(version[1]) >= 13050 else ("sm_103", "sm_107")  # which earlier editions tell otherwise
    known = [arch for arch in KNOWN if arch not in newer]
    for _ in range(4000):
        arch = chance.choice(known)
        fixed = chance.choice((0, chance.randrange(49152)))
        dynamic = chance.choice((0, chance.randrange(240 * 1024)))
        questions.append(
            (arch, chance.randrange(1, 256), fixed, dynamic, chance.randrange(1, 1025), chance.choice((1, 1, 1, 4, 16)))
        )
    lines = []
    for arch, registers, fixed, dynamic, threads, barriers in questions:
        sm = architecture(arch)
        figures = (
            arch[3:], sm.threads_per_sm, sm.shared_per_sm, sm.shared_per_block, sm.shared_reserved,
            registers, fixed, dynamic, threads, barriers,
        )  # fmt: skip
        lines.append(" ".join(map(str, figures)))
    answer = subprocess.run([tmp_path / "ask"], input="\n".join(lines), capture_output=True, text=True, check=True)
    theirs = [int(line) for line in answer.stdout.split()]
    ours = [
        occupancy(arch, using(registers, fixed, barriers), threads, dynamic).blocks_per_sm
        for arch, registers, fixed, dynamic, threads, barriers in questions
    ]
    assert len(theirs) == len(ours)
    assert [pair for pair in zip(questions, theirs, ours, strict=True) if pair[1] != pair[2]] == []
