"""Public suites of kernels with known faults: what the checks of the memory gate say of each, against its label.

``python -m tests.benchmarks labelled``. Each suite is a checkout that an environment variable names; none of their code
is part of this repository:

- ``CUDA_LSP_SANITIZER``: https://github.com/NVIDIA/compute-sanitizer-samples
- ``CUDA_LSP_GPUVERIFY``: https://github.com/mc-imperial/gpuverify (``testsuite/CUDA``)
- ``CUDA_LSP_INDIGO``: ``indigo/indigo_sources`` of https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24
- ``CUDA_LSP_SCOR``: https://github.com/csl-iisc/ScoR (``microbenchmarks``)

*agreed*: found what the label says, and nothing else. *named*: the fault is reported, as one that working programs
have too (a test before an atomic, a lock without a fence, a write that changes nothing). *missed*, *invented*: wrong
answers. *apart*: the label is about something that CUDA does not promise, or that no run shows; *not run*: it does not
compile with NVRTC as it stands, or takes a struct by value; each with its reason.
"""

import os
from pathlib import Path

from agent.execution.emulator import Emulator
from tests.suites import gpuverify, indigo, sanitizer, scor
from tests.suites.labelled import look, report

SUITES = {
    "CUDA_LSP_SANITIZER": sanitizer.cases,
    "CUDA_LSP_SCOR": scor.cases,
    "CUDA_LSP_GPUVERIFY": gpuverify.cases,
    "CUDA_LSP_INDIGO": indigo.cases,
}


def main() -> None:
    checker, seen = Emulator(), []
    for variable, cases in SUITES.items():
        if root := os.environ.get(variable):
            seen += [look(case, checker) for case in cases(Path(root))]
        else:
            print(f"{variable} names no folder: that suite is left out (tests/benchmarks/labelled.py says where it is)")
    if seen:
        print("\n".join(report(seen)))
        print(f"{sum(row.seconds for row in seen):.0f} s")


if __name__ == "__main__":
    main()
