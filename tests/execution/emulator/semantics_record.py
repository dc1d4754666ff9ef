"""Records what a card computes: ``python -m tests.execution.emulator.semantics_record OUT.npz`` on a machine with one.

The file in this folder, ``semantics_h200.npz``, was recorded so on an NVIDIA H200 (driver 580.159.04). Inputs are made
from fixed seeds and are stored with it, so that no later change of a random generator matters.
"""

import sys
from typing import Any

import numpy as np

from tests.execution.emulator.semantics_cases import Case, cases, width
from tests.execution.emulator.semantics_inputs import Bits, inputs


def ptx(case: Case, target: str = "sm_90") -> str:
    """A kernel that loads the sources of each lane as 64-bit numbers, does the case, and stores the results so."""

    def declare(letter: str, kinds: tuple[str, ...]) -> list[str]:
        files = ["pred" if kind == "pred" else f"b{max(width(kind), 16)}" for kind in kinds]
        return [f".reg .{file} {letter}{index};" for index, file in enumerate(files)]

    lines = [".version 8.6", f".target {target}", ".address_size 64"]
    lines += [".visible .entry k(.param .u64 pi, .param .u64 po, .param .u32 pn) {"]
    lines += [
        ".reg .b64 x, in, out, off, stride; .reg .b32 n, i;",
        *declare("s", case.sources),
        *declare("d", case.results),
    ]
    lines += ["ld.param.u64 in, [pi]; ld.param.u64 out, [po]; ld.param.u32 n, [pn]; mov.u32 i, %tid.x;"]
    lines += ["mul.wide.u32 off, i, 8; mul.wide.u32 stride, n, 8; add.u64 in, in, off; add.u64 out, out, off;"]
    into = {"pred": "setp.ne.u64 {}, x, 0;", 16: "cvt.u16.u64 {}, x;", 32: "cvt.u32.u64 {}, x;", 64: "mov.u64 {}, x;"}
    outof = {"pred": "selp.u64 x, 1, 0, {};", 16: "cvt.u64.u16 x, {};", 32: "cvt.u64.u32 x, {};", 64: "mov.u64 x, {};"}
    for index, kind in enumerate(case.sources):
        key = kind if kind == "pred" else max(width(kind), 16)
        lines += ["ld.global.u64 x, [in]; add.u64 in, in, stride;", into[key].format(f"s{index}")]
    lines.append(case.text)
    for index, kind in enumerate(case.results):
        key = kind if kind == "pred" else max(width(kind), 16)
        lines += [outof[key].format(f"d{index}"), "st.global.u64 [out], x; add.u64 out, out, stride;"]
    return "\n".join([*lines, "ret; }"])


def on_card(case: Case, rows: Bits) -> Bits:
    """What the card in this machine makes of the sources."""
    import cupy

    module = cupy.cuda.function.Module()
    module.load(ptx(case).encode())
    sources = cupy.asarray(rows)
    results = cupy.zeros((len(case.results), rows.shape[1]), cupy.uint64)
    lanes = np.uint32(rows.shape[1])
    module.get_function("k")((1,), (rows.shape[1],), (sources.data.ptr, results.data.ptr, lanes))
    return np.asarray(cupy.asnumpy(results))


def key(sources: tuple[str, ...]) -> str:
    return "in " + " ".join(sources)


def record(path: str) -> None:
    """Every case on this machine's card; a case that its compiler refuses is named and left out."""
    kept: dict[str, Any] = {}
    for case in cases():
        rows = inputs(case.sources)
        try:
            result = on_card(case, rows)
        except Exception as error:
            print(f"refused: {case.text} ({error})")
            continue
        kept[key(case.sources)] = rows
        # as narrow as they are: the file is kept in the repository
        narrow = 1 if result.max() < 256 else 2 if result.max() < 65536 else 4 if result.max() < 2**32 else 8
        kept[case.text] = result.astype(f"u{narrow}")
    np.savez_compressed(path, **kept)
    print(f"{len(kept)} arrays")


if __name__ == "__main__":
    record(sys.argv[1])
