"""Are the hints right? Over public files, by counts where those decide; ``recall`` asks what they do not see.

Run ``CUDA_LSP_FINDINGS=checkouts CUDA_LSP_FINDINGS_OUT=folder python -m tests.benchmarks findings`` over a folder that
holds one checkout for each repository, named ``OWNER+NAME`` (several such folders: separated as in ``PATH``). Nothing
in a checkout is changed; device code of it is compiled, and run in the emulator.

1. *Findings*: the rules at default settings over up to ``_EACH`` (150) files of each repository, taken by the hash of
   their path, and of these only one half, which ``_SEED`` (1) picks: an even and an odd seed look at different files.
2. *Sample*: ``_COUNT`` (300) of them, by the seed: once as they come (``plain``), and once in turn from each rule and
   within it from each repository (``turns``); findings of one rule on equal lines of kernels of one name count once.
3. *Counts*: the kernel of each is run at its own workload, or at one that is made up, and
   ``agent.analysis.rules.counted`` decides; barriers that nobody needs are left out, and functions that are gone looked
   up in the toolkit's headers. What that leaves open was read: ``findings_read.tsv`` beside this file
   holds the judgements (rule, repository, file, line, verdict, reason), by people who did not write the rules.

A second run goes on from what the folder holds; ``_COUNT=0`` draws no sample.
"""

import csv
import hashlib
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import evolve

from agent.analysis.headers import learn
from agent.analysis.rules import check
from agent.analysis.rules.counted import DECIDERS, decide
from agent.analysis.rules.finding import Finding
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from tests.analysis.counted_kernels import counted_kernel, declared, on_lines, races_without_barriers

READ = Path(__file__).parent / "findings_read.tsv"
LARGEST = 200_000
"""Bytes of a file."""
CHECKED = frozenset(("L4", "M12", "S5", "W2", "W3", "Y1", "Y2", "Y3", "Y4", "Y7", "Y8", "Y11"))
"""Rules that a fault decides, for which kernels are run with every check."""
PROMISED = frozenset(("M6", "M7"))
"""Rules that a run with all pointers ``__restrict__`` decides."""
APART = frozenset(("S8", "Y5"))
"""Rules that a run without barriers decides."""
NEAR = frozenset(("A1", "A3", "D2"))
"""Whose lines a compiler may take for their neighbours."""
WIDE = CHECKED | {"M8"}
"""Whose other places say as much."""
Row = dict[str, Any]


def main() -> None:
    if (given := inputs()) is None:
        return
    files, out, seed = given
    looked = kept(out / f"files-{seed}.jsonl", [(name, _look(name, path)) for name, path in files])
    print("\n".join(volume(looked)), flush=True)
    paths = dict(files)
    samples = {way: draw(looked, setting("COUNT", 300), seed) for way, draw in (("plain", drawn), ("turns", sampled))}
    every = [row for sample in samples.values() for row in sample]
    promises = {(row["file"], row["kernel"]) for row in every if row["rule"] in PROMISED}
    asked = dict.fromkeys(key for row in every if (key := _asked(row)))
    runs = [(str(key), counted_in(paths[key[0]], *key, promises=key[:2] in promises)) for key in asked]
    by_key = {row["key"]: row for row in kept(out / f"counted-{seed}.jsonl", runs)}
    apart = {str(_place(row)): row for row in every if row["rule"] in APART}
    tried = [(key, _without(paths[row["file"]], row)) for key, row in apart.items()]
    races = {row["key"]: row for row in kept(out / f"apart-{seed}.jsonl", tried)}
    for way, sample in samples.items():
        judged = [_judged(row, by_key.get(str(_asked(row)), {}), races.get(str(_place(row)), {})) for row in sample]
        (out / f"{way}-{seed}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judged))
        print(f"{way}:\n" + "\n".join(precision(judged)), flush=True)


def inputs() -> tuple[list[tuple[str, Path]], Path, int] | None:
    """The files, the folder for what is found, and the seed; says what to set where there are none."""
    roots = [Path(root) for root in os.environ.get("CUDA_LSP_FINDINGS", "").split(os.pathsep) if root]
    if not roots:
        print("set CUDA_LSP_FINDINGS to a folder of checkouts named OWNER+NAME")
        return None
    out = Path(os.environ.get("CUDA_LSP_FINDINGS_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-findings-"))
    out.mkdir(parents=True, exist_ok=True)
    seed = setting("SEED", 1)
    return list(_files(roots, seed)), out, seed


def setting(name: str, otherwise: int) -> int:
    return int(os.environ.get(f"CUDA_LSP_FINDINGS_{name}", otherwise))


def kept(path: Path, work: Iterable[tuple[str, Callable[[], Row]]]) -> list[Row]:
    """The rows of a file of them, and those that are missing in it, made now."""
    known = {row["key"]: row for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}
    with path.open("a") as file:
        for key, make in work:
            if key not in known:
                known[key] = {"key": key} | make()
                file.write(json.dumps(known[key]) + "\n")
                file.flush()
    return list(known.values())


# Findings -------------------------------------------------------------------------------------------------------------


def _files(roots: Iterable[Path], seed: int) -> Iterator[tuple[str, Path]]:
    """(``OWNER+NAME/path``, file) in an order that has nothing to do with names, one of those with the same bytes."""
    seen: set[bytes] = set()
    for repository in sorted(folder for root in roots for folder in root.iterdir() if folder.is_dir()):
        taken = 0
        for _, path in sorted((_hash(str(one.relative_to(repository))), one) for one in repository.rglob("*.cu*")):
            if taken == setting("EACH", 150):
                break
            if (
                path.suffix not in (".cu", ".cuh")
                or "-hip" in str(path)
                or not path.is_file()
                or path.stat().st_size > LARGEST
            ):
                continue
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                if digest[0] % 2 == seed % 2:
                    taken += 1
                    yield f"{repository.name}/{path.relative_to(repository).as_posix()}", path


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _look(name: str, path: Path) -> Callable[[], Row]:
    def look() -> Row:
        try:
            document = read(str(path))
            learn(document)
            found = [as_row(one, kernel, document) for kernel in document.kernels for one in check(document, kernel)]
        except (SourceError, RecursionError) as error:
            return {"file": name, "lines": 0, "findings": [], "problem": type(error).__name__}
        return {"file": name, "lines": document.text.count(b"\n"), "findings": found}

    return look


def as_row(finding: Finding, kernel: Kernel, document: Document) -> Row:
    first, last = document.line(finding.span.start), document.line(max(finding.span.start, finding.span.end - 1))
    start = document.line_starts[first - 1]
    return {
        "rule": finding.rule,
        "line": first,
        "last": last,
        "kernel": kernel.qualified_name,
        "message": finding.message,
        "cost": finding.cost,
        "related": [document.line(one.span.start) for one in finding.related],
        "text": document.text[start : document.text.find(b"\n", start)].decode(errors="replace").strip()[:200],
    }


def volume(looked: list[Row]) -> Iterator[str]:
    lines = sum(row["lines"] for row in looked)
    rules = Counter(one["rule"] for row in looked for one in row["findings"])
    total = sum(rules.values())
    yield f"{len(looked)} files, {lines} lines, {total} findings: {1000 * total / max(1, lines):.2f} per 1000 lines"
    yield "  " + ", ".join(f"{rule} {number}" for rule, number in rules.most_common())


def drawn(looked: list[Row], number: int, seed: int) -> list[Row]:
    """As they come: each finding as likely as another."""
    every = list(_once(looked))
    return random.Random(seed).sample(every, min(number, len(every)))


def sampled(looked: list[Row], number: int, seed: int) -> list[Row]:
    """In turn from each rule, and within a rule from each repository."""
    draw = random.Random(seed)
    groups: dict[str, dict[str, list[Row]]] = {}
    for one in _once(looked):
        groups.setdefault(one["rule"], {}).setdefault(one["file"].partition("/")[0], []).append(one)
    queues = {rule: _turns(list(by.values()), draw) for rule, by in sorted(groups.items())}
    return list(_in_turn(list(queues.values()), number))


def _once(looked: list[Row]) -> Iterator[Row]:
    """The findings, but those of one rule on equal lines of kernels of one name once."""
    seen: set[tuple[str, ...]] = set()
    for row in looked:
        for one in row["findings"]:
            what = one["rule"], one["kernel"], one["text"]
            if what not in seen:
                seen.add(what)
                yield one | {"file": row["file"]}


def _turns(groups: list[list[Row]], draw: random.Random) -> list[Row]:
    draw.shuffle(groups)
    for group in groups:
        draw.shuffle(group)
    return list(_in_turn(groups, sum(map(len, groups))))


def _in_turn(groups: list[list[Row]], number: int) -> Iterator[Row]:
    taken = 0
    for place in range(max(map(len, groups), default=0)):
        for group in groups:
            if place < len(group) and taken < number:
                taken += 1
                yield group[place]


# Counts ---------------------------------------------------------------------------------------------------------------


def counted_in(
    path: Path, file: str, kernel: str, checks: bool, whole: bool = True, promises: bool = True
) -> Callable[[], Row]:
    def run() -> Row:
        begun = time.monotonic()
        try:
            document = read(str(path))
            folders = header_folders(document, file, path)
            found = counted_kernel(document, document.kernel(kernel), checks, folders, whole, promises)
        except (SourceError, RecursionError, ValueError) as error:
            found = {"ended": f"cannot be read ({type(error).__name__})"}
        return found | {"file": file, "kernel": kernel, "seconds": round(time.monotonic() - begun, 1)}

    return run


def header_folders(document: Document, file: str, path: Path) -> list[Path]:
    """Where the headers are that a file includes, anywhere in its checkout: its build says it, and is not read."""
    root = Path(str(path).removesuffix(file.partition("/")[2]))
    wanted = [name.decode() for name in re.findall(rb'#\s*include\s*"([^"]+)"', document.text)]
    missing = [name for name in wanted if not (path.parent / name).is_file() and ".." not in name]
    found = (next(iter(sorted(root.rglob(name))), None) for name in missing)
    return list(dict.fromkeys(one.parents[name.count("/")] for one, name in zip(found, missing, strict=True) if one))


def _asked(row: Row) -> tuple[str, str, bool] | None:
    """The run that may decide a finding; None where it is something else."""
    if row["rule"] not in DECIDERS or row["rule"] in APART | {"L14"}:
        return None
    return row["file"], row["kernel"], row["rule"] in CHECKED


def _place(row: Row) -> tuple[str, str, int]:
    return row["rule"], row["file"], row["line"]


def _without(path: Path, row: Row) -> Callable[[], Row]:
    """The races there are without the barriers that a finding is about: its own, or all of them."""

    def run() -> Row:
        only = row["line"] if row["rule"] == "Y5" else None
        try:
            document = read(str(path))
            kernel, folders = document.kernel(row["kernel"]), header_folders(document, row["file"], path)
            return {"races": races_without_barriers(document, kernel, only, folders)}
        except (SourceError, RecursionError, ValueError):
            return {"races": None}

    return run


def _judged(row: Row, counted: Row, apart: Row) -> Row:
    around = 3 if row["rule"] in NEAR else 0
    lines = [*range(row["line"] - around, row["last"] + around + 1), *(row["related"] if row["rule"] in WIDE else ())]
    races, mine = apart.get("races"), {row["line"], *row["related"]}
    if races and row["rule"] == "S8":  # a line does not tell of which array: that it races decides nothing
        races = None if any(mine & set(one[1:]) for one in races) else []
    told = evolve(
        on_lines(counted, lines),
        raced=None if races is None else bool(races),
        declared=declared(row["message"].split()[0]) if row["rule"] == "L14" else "",
    )
    verdict = decide(row["rule"], told)
    if verdict is not None:
        return row | {"verdict": verdict, "by": "count"}
    read_ = _read().get(_place(row))
    return row | {"verdict": read_, "by": "" if read_ is None else "reader", "ended": counted.get("ended", "")}


@lru_cache(maxsize=1)
def _read() -> dict[tuple[str, str, int], bool]:
    if not READ.exists():
        return {}
    with READ.open(newline="") as file:
        return {
            (row["rule"], f"{row['repository']}/{row['file']}", int(row["line"])): row["verdict"] == "true"
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        }


def precision(judged: list[Row]) -> Iterator[str]:
    """How many are true, by rule."""
    yield "rule: sampled, counted true, counted false, read true, read false, open"
    for rule in dict.fromkeys(row["rule"] for row in judged):
        yield _line(rule, [row for row in judged if row["rule"] == rule])
    yield _line("all", judged)
    true, known = sum(row["verdict"] is True for row in judged), sum(row["verdict"] is not None for row in judged)
    counted = sum(row["by"] == "count" for row in judged)
    yield f"{true} of {known} true ({share(true, known)}), {counted} of {len(judged)} decided by counts"


def _line(name: str, rows: list[Row]) -> str:
    kinds = Counter((row["by"], row["verdict"]) for row in rows)
    cells = (("count", True), ("count", False), ("reader", True), ("reader", False), ("", None))
    return f"  {name:4}{len(rows):5}" + "".join(f"{kinds[cell]:5}" for cell in cells)


def share(part: int, whole: int) -> str:
    """Rounded down."""
    return f"{1000 * part // max(1, whole) / 10:.1f} %"


if __name__ == "__main__":
    main()
