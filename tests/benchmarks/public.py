"""Kernels that nobody here wrote: what a search finds for the first suitable ones of a list of public programs.

Run ``CUDA_LSP_PUBLIC=HeCBench/src python -m tests.benchmarks public`` over a checkout of
https://github.com/zjin-lcf/HeCBench (or any folder of folders with ``.cu`` files). Nothing in the checkout is changed:
each program is copied, and rewritten in the copy.

The list is fixed: folders in alphabetical order, files and kernels in order, the first kernel of each folder that is
suitable. Suitable means: a workload is found without a word from the user, and the original runs in the emulator and
keeps its own contract. What is not suitable is listed with its reason. Whether anything faster is found plays no part.

``CUDA_LSP_PUBLIC_COUNT`` (50), ``_SECONDS`` (60, for each search), ``_JOBS`` (1), ``_DEVICE`` (auto), ``_OUT`` (a
folder for the rewritten copies, ``results.json`` and ``table.md``; a temporary one by default). ``_LIST`` names a file
with a list that was made before, ``PROGRAM FILE KERNEL`` on each line: then these are searched, and nothing is chosen
anew.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

_UNSUITABLE = {3: "asks", 5: "broken original"}


@frozen
class Row:
    """One program: ``ended`` is ``improved``, ``none`` or why it was unsuitable; ``refused`` counts candidates by the
    gate that refused them."""

    program: str
    file: str
    kernel: str
    ended: str
    reason: str = ""
    judged: int = 0
    right: int = 0
    refused: tuple[tuple[str, int], ...] = ()
    title: str = ""
    ratio: float | None = None
    speed: str = ""
    changed_lines: int = 0
    by_hand: str = ""
    seconds: float = 0.0

    @property
    def suitable(self) -> bool:
        return self.ended in ("improved", "none")


def main() -> None:
    root = os.environ.get("CUDA_LSP_PUBLIC", "")
    if not root:
        print("public kernels: set CUDA_LSP_PUBLIC to the src folder of a HeCBench checkout")
        return
    count = int(os.environ.get("CUDA_LSP_PUBLIC_COUNT", "50"))
    jobs = int(os.environ.get("CUDA_LSP_PUBLIC_JOBS", "1"))
    out = Path(os.environ.get("CUDA_LSP_PUBLIC_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-public-"))
    fixed = _fixed()
    folders = sorted(folder for folder in Path(root).iterdir() if folder.is_dir() and list(folder.glob("*.cu")))
    folders = [folder for folder in folders if not fixed or folder.name in fixed]
    rows: list[Row] = []
    with ThreadPoolExecutor(jobs) as pool:
        # all at once, and looked at in order: a slow search keeps nobody from the next
        for found in [pool.submit(_program, folder, out, fixed.get(folder.name)) for folder in folders]:
            rows.append(row := found.result())
            print(_line(row), flush=True)
            (out / "results.json").write_text(json.dumps([asdict(one) for one in rows], indent=1))
            if sum(row.suitable for row in rows) == count:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    suitable = [row for row in rows if row.suitable][:count]
    (out / "table.md").write_text("\n".join(table(suitable)) + "\n")
    _summary(suitable, rows)
    print(f"rewritten copies and results.json: {out}")


def _fixed() -> dict[str, tuple[str, str]]:
    """File and kernel of each program of a list that was made before."""
    name = os.environ.get("CUDA_LSP_PUBLIC_LIST", "")
    lines = Path(name).read_text(encoding="utf-8").splitlines() if name else []
    return {program: (file, kernel) for program, file, kernel in map(str.split, filter(None, lines))}


def _program(folder: Path, out: Path, fixed: tuple[str, str] | None = None) -> Row:
    """The first suitable kernel of a folder, or the ``fixed`` one; where none is, why its first was not."""
    copy = out / folder.name
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    if fixed is not None:
        return _search(folder.name, copy / fixed[0], fixed[1])
    first: Row | None = None
    for file in sorted(copy.glob("*.cu")):
        for kernel in _kernels(file):
            row = _search(folder.name, file, kernel)
            if row.suitable:
                return row
            first = first or row
    return first or Row(folder.name, "", "", "no workload found")


def _kernels(file: Path) -> list[str]:
    done = _run("kernels", str(file), "--json")
    return [one["name"] for one in done.get("kernels", []) if one.get("workload")][:4]


def _search(program: str, file: Path, kernel: str) -> Row:
    seconds = os.environ.get("CUDA_LSP_PUBLIC_SECONDS", "60")
    device = os.environ.get("CUDA_LSP_PUBLIC_DEVICE", "auto")
    start = time.monotonic()
    shutil.copy(file, original := file.with_suffix(".cu.original"))
    done = _run(
        "optimize", str(file), "--kernel", kernel, "--seconds", seconds, "--device", device, "--target", "H200",
        "--fresh", "--json", "--apply",
    )  # fmt: skip
    spent = time.monotonic() - start
    nothing = {"reason": done.get("error", "no answer"), "message": "", "proposals": []}
    outcome = done.get("outcome") or nothing
    ended = _UNSUITABLE.get(done.get("exit", 3), "improved" if outcome["proposals"] else "none")
    if ended in _UNSUITABLE.values() or "events" not in done:
        original.unlink()
        why = f"{outcome['reason']}: {outcome['message']}"[:200]
        return Row(program, file.name, kernel, ended if ended in _UNSUITABLE.values() else "failed", why)
    verdicts = [one["verdict"] for one in done["events"] if one["type"] == "CandidateJudged" and one["verdict"]]
    best = outcome["proposals"][0] if outcome["proposals"] else None
    return Row(
        program, file.name, kernel, ended, outcome["reason"],
        judged=len(verdicts),
        right=sum(one["correctness"]["state"] == "right" for one in verdicts),
        refused=tuple(Counter(filter(None, map(_refusing_gate, verdicts))).items()),
        title=best["title"] if best else "",
        ratio=best["verdict"]["speed"]["ratio"] if best else None,
        speed=best["verdict"]["speed"]["state"] if best else "",
        changed_lines=best["changed_lines"] if best else 0,
        by_hand=best["by_hand"] if best else "",
        seconds=spent,
    )  # fmt: skip


def _refusing_gate(verdict: dict[str, Any]) -> str | None:
    if verdict["correctness"]["state"] == "right":
        return None
    return next((one["gate"] for one in verdict["gates"] if one["outcome"] in ("failed", "undecided")), "judge")


def _run(*arguments: str) -> dict[str, Any]:
    program = [sys.executable, "-c", "from cuda_lsp.terminal.main import main; main()"]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"exit": done.returncode or 70, "error": done.stderr.strip()[-200:]}
    return answer


def _line(row: Row) -> str:
    name = f"{row.program}/{row.file}:{row.kernel}"
    if not row.suitable:
        return f"  {name:60} {row.ended}: {row.reason}"
    refused = ", ".join(f"{count} by {gate}" for gate, count in row.refused)
    found = f"{row.ratio:.2f}x {row.speed}: {row.title} ({row.changed_lines} lines)" if row.ratio else row.reason
    return f"  {name:60} {row.judged} judged, {row.right} right{'; refused ' + refused if refused else ''}; {found}"


def table(suitable: list[Row]) -> Iterator[str]:
    """The suitable kernels as a table in Markdown; ratios are rounded down."""
    yield "| program | kernel | judged | right | refused | found | lines |"
    yield "|---|---|---|---|---|---|---|"
    for row in suitable:
        refused = ", ".join(f"{count} by {gate}" for gate, count in row.refused)
        found = f"{int(row.ratio * 100) / 100:.2f}x {row.speed}: {row.title}" if row.ratio else row.reason
        lines = str(row.changed_lines) if row.ratio else ""
        yield f"| {row.program} | `{row.kernel}` | {row.judged} | {row.right} | {refused} | {found} | {lines} |"


def _summary(suitable: list[Row], rows: list[Row]) -> None:
    improved = [row for row in suitable if row.ended == "improved"]
    refused: Counter[str] = Counter()
    for row in suitable:
        refused.update(dict(row.refused))
    print(f"{len(improved)} of {len(suitable)} suitable kernels improved; {len(rows)} programs looked at")
    print(f"candidates refused: {dict(refused)}")


if __name__ == "__main__":
    main()
