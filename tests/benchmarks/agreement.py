"""Kernels of public repositories, emulated here and run on a card: to the bit where PTX defines it.

Two steps, as the machine with the card may have no checkout, and no other compiler should come between:

1. ``CUDA_LSP_REPOSITORIES=FOLDER CUDA_LSP_PACKS=OUT python -m tests.benchmarks agreement`` looks through FOLDER, which
   holds a checkout of one public repository in each of its folders, for kernels to run in the emulator at small sizes,
   and writes a *pack* of each to OUT. Where the host code does not say on what, the launch is made up: ample buffers,
   small numbers. A kernel is taken where it ran clean with at least two blocks, at least 80 % of its basic blocks were
   reached, its outputs vary, and the order of blocks does not show in them. At most ``CUDA_LSP_PACKS_EACH`` (8) of a
   repository, one of a file.
2. ``CUDA_LSP_PACKS=OUT python -m tests.benchmarks agreement`` where there is a card runs each and compares.

Compiled with ``--fmad=false``. Packs hold other people's programs, compiled: they belong to no repository.
"""

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from attrs import frozen

from agent.evaluation import runs
from agent.evaluation.contracts.contract import serious
from agent.evaluation.setting import Setting
from agent.evaluation.sizes import bases, bound_at
from agent.execution.compiler import Options, build
from agent.execution.compiler.result import Build, CompileFailure
from agent.execution.device import Answer, Bytes, Device
from agent.execution.emulator import Emulator
from agent.execution.emulator.reached import blocks_reached
from agent.execution.gpu import open_gpu, why_no_gpu
from agent.execution.targets import find_target
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.workload import dtypes
from agent.workload.binding import Bound, BoundLaunch
from agent.workload.errors import WorkloadError
from agent.workload.find import find_workload
from agent.workload.generators import families
from agent.workload.program import Program
from agent.workload.settings import Settings
from agent.workload.workload import Access, Workload
from tests.gpu import packs
from tests.gpu.packs import SUFFIX, Pack

_TYPES = {
    "float": "f32", "double": "f64", "int": "i32", "unsigned int": "u32", "unsigned": "u32", "char": "i8",
    "unsigned char": "u8", "uint8_t": "u8", "int32_t": "i32", "uint32_t": "u32", "long long": "i64", "int64_t": "i64",
    "size_t": "u64", "half": "f16", "__half": "f16", "float4": "f32x4", "float2": "f32x2", "bool": "bool",
}  # fmt: skip
"""Of parameters whose launch is made up."""

REACHED = 0.8
SEED = 0xA9_4EE
SECONDS = 8.0
LONG = 100.0
"""Seconds for one repository."""
LARGEST = 4 << 20
"""Bytes of all buffers of a pack."""


class Unfit(Exception):
    """Why a kernel is no case, in words."""


def main() -> None:
    folder = os.environ.get("CUDA_LSP_PACKS", "")
    repositories = os.environ.get("CUDA_LSP_REPOSITORIES", "")
    if not folder:
        print(
            "agreement: CUDA_LSP_PACKS names no folder of packs (tests/benchmarks/agreement.py says how they are made)"
        )
        return
    if repositories:
        make(Path(repositories), Path(folder), int(os.environ.get("CUDA_LSP_PACKS_EACH", "8")))
        return
    card = open_gpu()
    if card is None:
        print(f"agreement: {len(_paths(Path(folder)))} packs, and no card to run them on ({why_no_gpu()})")
        return
    replay(Path(folder), card)
    card.close()


# Making -------------------------------------------------------------------------------------------------------------


def make(repositories: Path, folder: Path, each: int) -> None:
    """Write packs, and print what was left out and why."""
    folder.mkdir(parents=True, exist_ok=True)
    for repository in sorted(one for one in repositories.iterdir() if one.is_dir()):
        why: Counter[str] = Counter()
        kept, begun = 0, time.monotonic()
        for path in _sources(repository):
            if kept == each or time.monotonic() - begun > LONG:
                break
            found = _first(path, repository, why)
            if found is not None:
                packs.write(found, folder / f"{_plain(repository.name)}-{kept:02}-{_plain(found.kernel)}{SUFFIX}")
                kept += 1
        rest = ", ".join(f"{count} {words}" for words, count in why.most_common(5))
        print(f"  {repository.name:50} {kept:3} packs, {time.monotonic() - begun:4.0f} s; left out: {rest}", flush=True)
    print(f"{len(_paths(folder))} packs, {sum(path.stat().st_size for path in _paths(folder)) >> 20} MiB")


def _sources(repository: Path) -> list[Path]:
    """Files in an order that has nothing to do with their names, the same each time."""
    found = [path for path in repository.rglob("*.cu") if path.stat().st_size < 200_000]
    return sorted(found, key=lambda path: hash_of(str(path.relative_to(repository))))


def hash_of(text: str) -> int:
    value = 1469598103934665603
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return value


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name)[:40]


def _first(path: Path, repository: Path, why: Counter[str]) -> Pack | None:
    """The first fit kernel of a file."""
    try:
        document = read(str(path))
        names = [kernel.qualified_name for kernel in document.kernels if not kernel.damage][:4]
    except (SourceError, OSError, UnicodeError, RecursionError):
        why["cannot be read"] += 1
        return None
    for name in names:
        told: str | None = None
        for workload in workloads(document, document.kernel(name)):
            try:
                return packed(document, name, workload, repository.name, str(path.relative_to(repository)))
            except (WorkloadError, SourceError) as error:
                told = told or f"cannot be launched ({type(error).__name__})"
            except Unfit as unfit:
                told = told or str(unfit)
        why[told or "have no workload, and none can be made up"] += 1
    return None


def workloads(document: Document, kernel: Kernel) -> Iterator[Workload]:
    """What the file says; else some that are made up."""
    try:
        yield find_workload(document, kernel)
        return
    except (WorkloadError, SourceError):
        pass
    for entry in made_up(kernel):
        with contextlib.suppress(WorkloadError, SourceError):
            yield find_workload(document, kernel, Settings(workloads={kernel.qualified_name: entry}))


def made_up(kernel: Kernel) -> Iterator[dict[str, object]]:
    """Launches of three shapes over buffers that are longer than any index with such numbers is likely to be."""
    kinds = {one.name: _TYPES.get(one.element.removeprefix("const ").strip(), "") for one in kernel.parameters}
    pointers = [one.name for one in kernel.parameters if one.pointer_depth]
    if kernel.template or not pointers or "" in kinds.values():
        return
    whole = {name for name, kind in kinds.items() if kind[0] in "iu"}
    arguments = ", ".join(one.name for one in kernel.parameters)
    for number, grid, block in ((100, "2", "64"), (40, "(3, 3)", "(16, 16)"), (300, "2", "256")):
        yield {
            "constants": {name: number if name in whole else 0.5 for name in kinds if name not in pointers},
            "buffers": {
                name: f"{kinds[name]}[4096] inout {'integers(0, 40)' if name in whole else ''}" for name in pointers
            },
            "plan": f"launch {kernel.qualified_name}<<<{grid}, {block}>>>({arguments})",
        }


def packed(document: Document, name: str, workload: Workload, repository: str, file: str) -> Pack:
    """Raises Unfit, WorkloadError, SourceError."""
    program = Program(document, workload.plan, "original")
    emulator = Emulator()
    setting = Setting(device=emulator, target=find_target("H200"), options=Options(arch="sm_90", fmad=False))
    built = build(program, Options(arch="sm_90", fmad=False, flags=workload.flags))
    if isinstance(built, CompileFailure):
        raise Unfit("do not compile")
    family = families(workload)[0]
    reason = "run with one block alone"
    for sizes in bases(workload, program):
        bound = bound_at(workload, program, sizes)
        if _blocks(bound) < 2:
            continue
        if sum(buffer.nbytes for buffer in bound.buffers) > LARGEST:
            break
        before = runs.contents(bound, runs.case(sizes, family, SEED))
        answer = runs.run(setting, built, before, checks=runs.ALL_CHECKS, count=True, seconds=SECONDS)
        reason = _unfit(setting, built, before, answer)
        if not reason:
            images = runs.images(before, runs.PRIORS[0])
            kinds = {buffer.name: buffer.dtype for buffer in bound.buffers}
            stored = tuple(packs.stored(image, answer, kinds[image.name]) for image in images)
            return Pack(
                repository, file, name, dict(sizes), built, bound.steps, stored, answer.inexact,
                blocks_reached(built, answer.counters), _blocks(bound),
            )  # fmt: skip
    raise Unfit(reason)


def _blocks(bound: Bound) -> int:
    """Of the launch with the fewest."""
    return min((int(np.prod(step.grid)) for step in bound.steps if isinstance(step, BoundLaunch)), default=0)


def _unfit(setting: Setting, built: Build, before: runs.Contents, answer: Answer) -> str:
    if answer.status not in ("ok", "fault"):
        return "are refused by the emulator" if answer.status == "refused" else "take too long"
    if serious(answer.faults):
        return "have a fault of their own"
    if blocks_reached(built, answer.counters) < REACHED:
        return "leave basic blocks unreached"
    written = [buffer for buffer in before.bound.buffers if buffer.access is not Access.IN and not buffer.scratch]
    if not any(_varies(answer, buffer.name) for buffer in written):
        return "have outputs that do not vary"
    turned = runs.run_reordered(setting, built, before, seconds=SECONDS)
    if turned.status != "ok":
        return "wait for other blocks"
    same = all(
        np.array_equal(answer.outputs[buffer.name], turned.outputs[buffer.name])
        for buffer in written
        if not dtypes.is_float(buffer.dtype)
    )
    return "" if same else "hang on the order of blocks"


def _varies(answer: Answer, name: str) -> bool:
    """Whether what was written to a buffer has more than two different bytes."""
    assert answer.written is not None
    return len(np.unique(answer.outputs[name][answer.written[name]])) > 2


# Replaying ----------------------------------------------------------------------------------------------------------


@frozen
class Compared:
    """``outcome``: ``equal``, ``within`` (the bound of what PTX leaves open), ``order`` (the same whole numbers in
    other places, of a program whose threads take theirs from an atomic as they come), ``differs``, ``not run``."""

    pack: Pack
    outcome: str
    words: str = ""


def replay(folder: Path, device: Device) -> None:
    """Run all packs and print what differs."""
    begun = time.monotonic()
    rows = [compare(packs.read(path), device) for path in _paths(folder)]
    print("\n".join(table(rows, device.name)))
    print(f"{time.monotonic() - begun:.0f} s")


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"))


def compare(pack: Pack, device: Device) -> Compared:
    """Of one pack, ``device``'s outputs with those in it."""
    answer = device.run(pack.request())
    if answer.status != "ok":
        fault = answer.faults[0].kind if answer.faults else ""
        return Compared(pack, "not run" if answer.status != "fault" else "differs", answer.message or fault)
    worst = Compared(pack, "equal")
    for one in pack.buffers:
        if not one.after:
            continue
        scalar = dtypes.base(one.dtype)[0]
        mine, its = packs.after(one), np.ascontiguousarray(answer.outputs[one.name])
        if np.array_equal(mine, its):
            continue
        if _shuffled(pack, one.dtype, mine, its):
            worst = Compared(pack, "order", one.name)
            continue
        if not pack.inexact or not dtypes.is_float(one.dtype) or dtypes.is_raw(one.dtype):
            return Compared(pack, "differs", f"{one.name}: {_where(mine, its, scalar)}")
        if not _near(mine, its, scalar):
            return Compared(pack, "differs", f"{one.name}: {_where(mine, its, scalar)}; {', '.join(pack.inexact[:3])}")
        worst = Compared(pack, "within", ", ".join(pack.inexact[:3]))
    return worst


def _shuffled(pack: Pack, dtype: str, mine: Bytes, its: Bytes) -> bool:
    width = dtypes.size_of(dtypes.base(dtype)[0])
    if "atom." not in pack.build.ptx or dtypes.is_float(dtype) or len(mine) % width:
        return False
    first, again = (np.sort(data.reshape(-1, width).view(f"V{width}").reshape(-1)) for data in (mine, its))
    return bool(np.array_equal(first, again))


def _near(mine: Bytes, its: Bytes, scalar: str) -> bool:
    """Errors of approximate functions grow on the way: 2^-15 of the value and 2^-18 of the largest."""
    a, b = (_values(one, scalar) for one in (mine, its))
    scale = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
    loose = 64.0 if scalar in ("f16", "bf16") else 1.0
    return bool(np.allclose(a, b, rtol=loose * 2.0**-15, atol=loose * 2.0**-18 * scale, equal_nan=True))


def _values(data: Bytes, scalar: str) -> npt.NDArray[np.float64]:
    if scalar == "bf16":
        return np.asarray((data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32), np.float64)
    return np.asarray(data.view(dtypes.numpy_dtype(scalar)), np.float64)


def _where(mine: Bytes, its: Bytes, scalar: str) -> str:
    width = dtypes.size_of(scalar)
    if len(mine) % width:
        width = 1
    different = np.flatnonzero((mine.reshape(-1, width) != its.reshape(-1, width)).any(axis=1))
    at = int(different[0])
    pair = [one.reshape(-1, width)[at].tobytes()[::-1].hex() for one in (mine, its)]
    return f"{len(different)} of {len(mine) // width} differ, first [{at}]: emulated {pair[0]}, card {pair[1]}"


def table(rows: list[Compared], name: str) -> Iterator[str]:
    """What agreed, by repository, and each that did not."""
    outcomes = ("equal", "within", "order", "differs", "not run")
    yield f"packs run on {name}: equal to the bit, within what PTX leaves open, in another order, different, not run"
    for repository in dict.fromkeys(row.pack.repository for row in rows):
        mine = [row.outcome for row in rows if row.pack.repository == repository]
        yield f"  {repository:52}" + "".join(f"{mine.count(outcome):6}" for outcome in outcomes)
    all_of = [row.outcome for row in rows]
    yield f"  {'all':52}" + "".join(f"{all_of.count(outcome):6}" for outcome in outcomes)
    for row in rows:
        if row.outcome in ("differs", "not run"):
            yield f"  {row.outcome}: {row.pack.repository}/{row.pack.file} {row.pack.kernel}: {row.words}"


if __name__ == "__main__":
    main()
