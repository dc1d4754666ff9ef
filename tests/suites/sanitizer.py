"""NVIDIA's samples for compute-sanitizer: programs of which each has one planted fault, at a line that is known.

``CUDA_LSP_SANITIZER`` is a checkout of https://github.com/NVIDIA/compute-sanitizer-samples. Lines are those of commit
1e1fab8 (November 2023); they are found again by what stands on them where a later version moved them.
"""

from collections.abc import Iterator
from pathlib import Path

from attrs import field, frozen

from tests.suites.labelled import BARRIER, BOUNDS, RACE, UNSET, Labelled


@frozen
class Planted:
    """A kernel of a sample: the class of its fault, and parts of the lines that may be named for it. Memory that the
    host sets in part is found where it does so, by a rule (L20), as no workload says which bytes are left out."""

    file: str
    kernel: str
    kind: str
    lines: tuple[str, ...] = field(default=())


_RULES = ("L20",)

PLANTED = (
    Planted("Memcheck/memcheck_demo.cu", "unaligned_kernel", BOUNDS, ("(char*)&x + 1",)),
    Planted("Memcheck/memcheck_demo.cu", "out_of_bounds_kernel", BOUNDS, ("0x87654320",)),
    Planted("Racecheck/block_error.cu", "sumKernel", RACE, ("smem[tx] =", "+= smem[i]")),
    Planted("Racecheck/warp_error.cu", "sumKernel", RACE, ("smem_first[tx] =", "+= smem_first[")),
    Planted("Synccheck/divergent_threads.cu", "myKernel", BARRIER, ("__syncthreads();",)),
    Planted("Synccheck/illegal_syncwarp.cu", "myKernel", BARRIER, ("__syncwarp(mask)",)),
    Planted("Initcheck/memset_error.cu", "vectorAdd", UNSET, ("cudaMemset(",)),
    Planted("Suppressions/suppressions_initcheck_demo.cu", "mult", UNSET, ("cudaMemset(",)),
)


def cases(root: Path) -> Iterator[Labelled]:
    for planted in PLANTED:
        text = (root / planted.file).read_text()
        numbers = frozenset(
            number for number, line in enumerate(text.splitlines(), 1) if any(part in line for part in planted.lines)
        )
        name = f"{planted.file}:{planted.kernel}"
        yield Labelled("sanitizer", name, text, planted.kernel, frozenset({planted.kind}), lines=numbers, rules=_RULES)
