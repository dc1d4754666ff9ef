"""Indigo: irregular codes on graphs, with planted faults that their file names tell.

``CUDA_LSP_INDIGO`` is a folder of its generated CUDA files, as in ``indigo/indigo_sources`` of
https://github.com/JohnJacobsonIII/HiRace-Artifact-SC24 (the suite: Y. Liu and others, "The Indigo Program-Verification
Microbenchmark Suite of Irregular Parallel Code Patterns", ISPASS 2022). ``atomicBug``: a plain update where an atomic
belongs; ``guardBug``: a plain test before an atomic; ``raceBug``: a plain read and write of shared data; ``syncBug``: a
barrier is missing; ``boundsBug``: a vertex past the last is looked at.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.suites.labelled import BOUNDS, RACE, Labelled

_FAULTS = {"atomicBug": RACE, "guardBug": RACE, "raceBug": RACE, "syncBug": RACE, "boundsBug": BOUNDS}


def cases(root: Path) -> Iterator[Labelled]:
    for path in sorted(root.rglob("*.cu")):
        words = path.stem.split("_")
        wanted = frozenset(_FAULTS[word] for word in words if word in _FAULTS)
        yield Labelled("Indigo", path.stem, _text(path), "test_kernel", wanted, _entries(words))


def _text(path: Path) -> str:
    """Without the suite's header, which has the host's part."""
    return path.read_text().replace('#include "indigo_cuda.h"', "")


def _entries(words: list[str]) -> tuple[dict[str, object], ...]:
    """Blocks of 64 threads. A thread, a warp or a block for each vertex; not a multiple of that, so that a bound
    matters; less where threads go on to further vertices. With many edges, and with so few that the first and the last
    vertices have none; the data that is changed begins with zeros, or with any."""
    vertices = 3 if "block" in words or "warp" in words else 100
    blocks = 4 if "block" in words else 2
    if "persistent" in words:
        vertices = 2 * vertices + 3
    many, few = 40 * vertices, max(vertices // 8, 1)
    return tuple(
        {
            "constants": {"numv": vertices, "edges": edges, "room": max(vertices, edges)},
            "buffers": {
                "nindex": f"i32[numv + 1] in {rows}",
                "nlist": "i32[edges] in index(numv)",
                "data1": f"i32[room] inout {data}",
                "data2": "i32[room] inout index(numv)",
            },
            "plan": f"launch test_kernel<<<{blocks}, 64>>>(nindex, nlist, data1, data2, numv)",
        }
        for edges, rows, data in (
            (many, "offsets(edges)", "zeros"),
            (many, "offsets(edges)", "index(numv)"),
            (few, "sorted(0, edges + 1)", "index(numv)"),
        )
    )
