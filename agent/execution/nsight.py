"""What Nsight Compute counted on a card: a report of it (``.ncu-rep``, which ``ncu`` itself opens), or its text (CSV).

Both forms of CSV are read: one row for each launch and metric (what ``ncu --csv --metrics`` prints), and one row for
each launch with a column for each metric, units below the head (``ncu --import R.ncu-rep --csv --page raw``).
"""

import contextlib
import csv
import math
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from agent.execution import toolkit

MOST_BYTES = 256 << 20
SECONDS = 120.0
"""Of ``ncu`` to open a report."""

_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
METRICS = (
    *(_GLOBAL.format(what, kind) for kind in ("ld", "st") for what in ("requests", "sectors")),
    *(_SHARED.format(kind) for kind in ("ld", "st")),
    "lts__t_sectors_srcunit_tex.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "gpu__time_duration.sum",
)
"""What is looked for; a report may have any part of them."""

_SCALES = {
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0, "second": 1.0,
    "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12,
}  # fmt: skip


class ReportError(Exception):
    """A report that cannot be read, and what to do."""


@frozen
class Counted:
    """One launch as the profiler saw it. Requests are of warps, sectors have 32 bytes, wavefronts are passes over
    shared memory, ``seconds`` at the clocks and with the caches that the profiler chose. None where the report lacks
    it."""

    kernel: str
    grid: str
    block: str
    loads: float | None
    load_sectors: float | None
    stores: float | None
    store_sectors: float | None
    wavefronts: float | None
    l2_sectors: float | None
    dram_bytes: float | None
    seconds: float | None

    @property
    def empty(self) -> bool:
        """Whether the report has nothing of this launch that is looked for."""
        told = (self.loads, self.stores, self.wavefronts, self.l2_sectors, self.dram_bytes, self.seconds)
        return all(one is None for one in told)


def read_report(path: Path) -> tuple[Counted, ...]:
    """The launches of a report, in order. Raises ReportError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ReportError(f"{path} has more than {MOST_BYTES >> 20} MiB: profile fewer launches (`ncu -c 20`)")
        content = path.read_bytes() if path.suffix != ".ncu-rep" else b""
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}") from None
    text = _opened(path) if path.suffix == ".ncu-rep" else content.decode("utf-8", "replace")
    found = tuple(parse_report(text.splitlines()))
    if not found or all(one.empty for one in found):
        wanted = ",".join(METRICS)
        raise ReportError(
            f"{path} holds nothing that is looked for ({len(found)} launches); make it with `ncu --set full` or "
            f"`ncu --metrics {wanted}`"
        )
    return found


def _opened(path: Path) -> str:
    """What ``ncu`` says of its own report. Nothing is profiled."""
    ncu = toolkit.tool("ncu")
    if ncu is None:
        raise ReportError(
            f"{path} is opened by `ncu`, which is not here (part of the CUDA toolkit); write it as text where it is: "
            f"`ncu --import {path.name} --csv --page raw --print-units base > report.csv`, and give that"
        )
    command = [str(ncu), "--import", str(path), "--csv", "--page", "raw", "--print-units", "base"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReportError(f"{ncu} could not open {path}: {type(error).__name__}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-300:]
        raise ReportError(f"{ncu} could not open {path} (exit code {done.returncode}): {said}")
    return done.stdout


def parse_report(lines: Iterable[str]) -> Iterator[Counted]:
    """The launches that ``ncu`` tells as CSV among other lines, in order."""
    try:
        table = list(csv.reader([line for line in lines if line.startswith('"')]))
    except csv.Error:
        return
    if not table or "ID" not in table[0]:
        return
    head, rows = table[0], [dict(zip(table[0], row, strict=False)) for row in table[1:]]
    launches: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    units = {} if "Metric Name" in head else next((row for row in rows if not row.get("ID")), {})
    for row in (row for row in rows if row.get("ID")):
        _, values = launches.setdefault(row["ID"], (row, {}))
        if "Metric Name" in head:
            values |= _value(row.get("Metric Name", ""), row.get("Metric Value", ""), row.get("Metric Unit", ""))
        for name in METRICS if "Metric Name" not in head else ():
            values |= _value(name, row.get(name, ""), units.get(name, ""))
    for row, values in launches.values():
        yield _counted(row, values)


def _value(name: str, text: str, unit: str) -> dict[str, float]:
    if name in METRICS:
        with contextlib.suppress(ValueError):
            value = float(text.replace(",", "")) * _SCALES.get(unit.lower(), 1.0)
            return {name: value} if 0 <= value < math.inf else {}
    return {}


def _counted(row: Mapping[str, str], values: Mapping[str, float]) -> Counted:
    def total(*names: str) -> float | None:
        told = [values[name] for name in names if name in values]
        return sum(told) if told else None

    return Counted(
        row.get("Kernel Name", ""), row.get("Grid Size", ""), row.get("Block Size", ""),
        total(METRICS[0]), total(METRICS[1]), total(METRICS[2]), total(METRICS[3]),
        total(*METRICS[4:6]), total(METRICS[6]), total(*METRICS[7:9]), total(METRICS[9]),
    )  # fmt: skip


def of_kernel(found: Iterable[Counted], name: str) -> tuple[Counted, ...]:
    """The launches of the kernel with the bare ``name``: told with its parameters, its template arguments and its
    namespaces, or mangled."""
    mangled = re.compile(rf"_Z\w*(?<!\d){len(name)}{re.escape(name)}")
    return tuple(one for one in found if _bare(one.kernel) == name or mangled.match(one.kernel))


def _bare(kernel: str) -> str:
    """``k`` of ``void ns::k<float, 4>(const float *, int)``."""
    return kernel.split("(")[0].split("<")[0].split("::")[-1].split(" ")[-1].strip()
