"""ScoR: scoped races, one small program each, named by what it does.

``CUDA_LSP_SCOR`` is a checkout of https://github.com/csl-iisc/ScoR (its paper: A. K. Kamath and others, "ScoRD: A
Scoped Race Detector for GPUs", ISCA 2020). Names begin with ``race`` or ``norace``; the host code says how to launch.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.suites.labelled import RACE, Labelled

_VOLATILE = (
    "a volatile access beside an atomic: PTX takes it for a relaxed one of the whole system, which does not race"
)
_SAME_WARP = "lanes of a warp are taken to be in step, which CUDA does not promise since compute capability 7.0"


def cases(root: Path) -> Iterator[Labelled]:
    for path in sorted((root / "microbenchmarks" / "src").glob("*.cu")):
        wanted = frozenset({RACE}) if path.stem.startswith("race") else frozenset[str]()
        apart = _SAME_WARP if "intrawarp" in path.stem else ""
        if re.search(r"_none-(blk)?atom", path.stem) and wanted:
            apart = _VOLATILE
        yield Labelled("ScoR", path.stem, path.read_text(), "kmain", wanted, apart=apart)
