"""What a card's own counters say of a kernel, below what was counted in the emulator."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.evaluation.lines.facts import SECTOR_BYTES
from agent.evaluation.measures.own_counters import own_counters
from agent.execution.gpu import open_gpu, why_no_gpu
from agent.execution.nsight import Counted, ReportError, of_kernel, read_report
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened, compiler_options, open_target
from cuda_lsp.terminal.profile_cells import number, short
from cuda_lsp.terminal.profile_table import printable
from cuda_lsp.terminal.render import duration, line, size

MOST = 8
"""Launches that are shown."""


def reported(path: str, kernel: str) -> tuple[tuple[Counted, ...], str]:
    """The launches of a kernel in a report of Nsight Compute, and where they are from. Raises CommandError."""
    try:
        every = read_report(Path(path))
    except ReportError as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    found = of_kernel(every, kernel)
    if not found:
        names = ", ".join(dict.fromkeys(one.kernel.split("(")[0] for one in every[:MOST]))
        raise CommandError(Exit.INPUT, f"{path} has no launch of `{kernel}`; it has: {names}")
    return found, f"in {path}"


def card_lines(found: Sequence[Counted], where: str) -> Iterator[str]:
    """One line for each launch."""
    if found:
        many = "1 launch" if len(found) == 1 else f"{len(found)} launches"
        yield line("card", f"{many} {printable(where)}, counted by the card itself (Nsight Compute)")
    for at, one in enumerate(found[:MOST], 1):
        yield line(f"launch {at}", printable(words(one)))
    if len(found) > MOST:
        yield line("", f"and {len(found) - MOST} more")


def words(one: Counted) -> str:
    """The counts of one launch."""
    return f"{one.grid} blocks of {one.block}: {'; '.join(_parts(one))}"


def _parts(one: Counted) -> Iterator[str]:
    for name, requests, sectors in (
        ("loads", one.loads, one.load_sectors),
        ("stores", one.stores, one.store_sectors),
    ):
        if requests:
            average = f" of {number(sectors / requests)} sectors on average" if sectors is not None else ""
            yield f"{short(requests)} {name}{average}"
    if one.wavefronts:
        yield f"{short(one.wavefronts)} passes of shared memory"
    if one.l2_sectors is not None:
        yield f"{size(SECTOR_BYTES * one.l2_sectors)} L1 to L2"
    if one.dram_bytes is not None:
        yield f"{size(one.dram_bytes)} DRAM"
    if one.seconds is not None:
        yield f"{duration(one.seconds)} at the profiler's clocks"


def asked(opened: Opened, sizes: dict[str, int] | None, flags: tuple[str, ...]) -> tuple[tuple[Counted, ...], str]:
    """Run the workload's plan once on the card of this machine, under Nsight Compute. Raises CommandError where its
    counters cannot be had."""
    gpu = open_gpu()
    if gpu is None:
        raise CommandError(Exit.MACHINE, f"--ncu needs a card: {why_no_gpu()}")
    try:
        options = compiler_options(gpu, open_target(None, opened.settings), opened.settings, opened.workload, flags)
        found = own_counters(gpu, opened.program, opened.workload, options, sizes)
    finally:
        gpu.close()
    if isinstance(found, str):
        raise CommandError(Exit.MACHINE, found)
    return of_kernel(found, opened.kernel.name), f"on {gpu.name}"
