"""Are the hints right, and do they name the bad accesses? Over public files, by counts where those decide.

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
4. *Recall*: the first kernel that can be counted of each file, up to ``_KERNELS`` (12) of a repository, whatever the
   rules say of it: on which lines does a global access need at least twice its ideal sectors, or a shared one twice
   its passes, by warps of which at least 8 lanes are at work; and is a finding there: of the rules alone, and with
   those that the editor and ``cuda-lsp hints --count`` make of their own counts.

A second run goes on from what the folder holds; ``_RECALL=0`` and ``_COUNT=0`` leave a part out.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import evolve

from agent.analysis.facts import analyse
from agent.analysis.headers import learn
from agent.analysis.launches import launches_of, shape, template_numbers
from agent.analysis.rules import check
from agent.analysis.rules.counted import BAD, DECIDERS, decide
from agent.analysis.rules.finding import Finding
from agent.analysis.rules.selection import Selection
from agent.source.document import Document, read
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from cuda_lsp.terminal.hints.counting import examine
from tests.analysis.counted_kernels import access_bytes, counted_kernel, declared, on_lines, races_without_barriers

READ = Path(__file__).parent / "findings_read.tsv"
LARGEST = 200_000
"""Bytes of a file."""
LANES = 8
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
GLOBAL = frozenset(("M1", "M2", "M3", "M4", "M5"))
SHARED = frozenset(("S1", "S2"))
Row = dict[str, Any]


def main() -> None:
    roots = [Path(root) for root in os.environ.get("CUDA_LSP_FINDINGS", "").split(os.pathsep) if root]
    if not roots:
        print("findings: set CUDA_LSP_FINDINGS to a folder of checkouts named OWNER+NAME")
        return
    out = Path(os.environ.get("CUDA_LSP_FINDINGS_OUT") or tempfile.mkdtemp(prefix="cuda-lsp-findings-"))
    out.mkdir(parents=True, exist_ok=True)
    seed = _setting("SEED", 1)
    files = list(_files(roots, seed))
    looked = _kept(out / f"files-{seed}.jsonl", [(name, _look(name, path)) for name, path in files])
    print("\n".join(volume(looked)), flush=True)
    paths = dict(files)
    samples = {way: draw(looked, _setting("COUNT", 300), seed) for way, draw in (("plain", drawn), ("turns", sampled))}
    every = [row for sample in samples.values() for row in sample]
    promises = {(row["file"], row["kernel"]) for row in every if row["rule"] in PROMISED}
    asked = dict.fromkeys(key for row in every if (key := _asked(row)))
    runs = [(str(key), _count(paths[key[0]], *key, promises=key[:2] in promises)) for key in asked]
    by_key = {row["key"]: row for row in _kept(out / f"counted-{seed}.jsonl", runs)}
    apart = {str(_place(row)): row for row in every if row["rule"] in APART}
    tried = [(key, _without(paths[row["file"]], row)) for key, row in apart.items()]
    races = {row["key"]: row for row in _kept(out / f"apart-{seed}.jsonl", tried)}
    for way, sample in samples.items():
        judged = [_judged(row, by_key.get(str(_asked(row)), {}), races.get(str(_place(row)), {})) for row in sample]
        (out / f"{way}-{seed}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in judged))
        print(f"{way}:\n" + "\n".join(precision(judged)), flush=True)
    if _setting("RECALL", 1):
        rows = _kept(out / f"recall-{seed}.jsonl", _first_kernels(files, out / f"recall-{seed}.jsonl"))
        bad = [row for row in rows if row["ended"] == "counted" and bad_lines(row)]
        asked_ = [(row["key"], _counting(paths[row["key"]], row["kernel"])) for row in bad]
        counting = {row["key"]: row for row in _kept(out / f"counting-{seed}.jsonl", asked_)}
        print("\n".join(recall(rows, paths, counting)))


def _setting(name: str, otherwise: int) -> int:
    return int(os.environ.get(f"CUDA_LSP_FINDINGS_{name}", otherwise))


def _kept(path: Path, work: Iterable[tuple[str, Callable[[], Row]]]) -> list[Row]:
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
            if taken == _setting("EACH", 150):
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
            found = [_row(one, kernel, document) for kernel in document.kernels for one in check(document, kernel)]
        except (SourceError, RecursionError) as error:
            return {"file": name, "lines": 0, "findings": [], "problem": type(error).__name__}
        return {"file": name, "lines": document.text.count(b"\n"), "findings": found}

    return look


def _row(finding: Finding, kernel: Kernel, document: Document) -> Row:
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


def _count(
    path: Path, file: str, kernel: str, checks: bool, whole: bool = True, promises: bool = True
) -> Callable[[], Row]:
    def run() -> Row:
        begun = time.monotonic()
        try:
            document = read(str(path))
            folders = _folders(document, file, path)
            found = counted_kernel(document, document.kernel(kernel), checks, folders, whole, promises)
        except (SourceError, RecursionError, ValueError) as error:
            found = {"ended": f"cannot be read ({type(error).__name__})"}
        return found | {"file": file, "kernel": kernel, "seconds": round(time.monotonic() - begun, 1)}

    return run


def _folders(document: Document, file: str, path: Path) -> list[Path]:
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
            kernel, folders = document.kernel(row["kernel"]), _folders(document, row["file"], path)
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
    yield f"{true} of {known} true ({_share(true, known)}), {counted} of {len(judged)} decided by counts"


def _line(name: str, rows: list[Row]) -> str:
    kinds = Counter((row["by"], row["verdict"]) for row in rows)
    cells = (("count", True), ("count", False), ("reader", True), ("reader", False), ("", None))
    return f"  {name:4}{len(rows):5}" + "".join(f"{kinds[cell]:5}" for cell in cells)


def _share(part: int, whole: int) -> str:
    """Rounded down."""
    return f"{1000 * part // max(1, whole) / 10:.1f} %"


# Recall ---------------------------------------------------------------------------------------------------------------


def _first_kernels(files: list[tuple[str, Path]], kept: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The first countable kernel of each file, until a repository has enough. What ended otherwise is kept too."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = Counter(row["key"].partition("/")[0] for row in rows if row["ended"] == "counted")
    known = {row["key"] for row in rows}
    for name, path in _mixed(files):
        repository = name.partition("/")[0]
        if name in known or done[repository] >= _setting("KERNELS", 12):
            continue
        row = _first(name, path)
        done[repository] += row["ended"] == "counted"
        yield name, row.copy


def _mixed(files: list[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """In turn from each repository."""
    groups: dict[str, list[tuple[str, Path]]] = {}
    for name, path in files:
        groups.setdefault(name.partition("/")[0], []).append((name, path))
    for place in range(max(map(len, groups.values()), default=0)):
        yield from (group[place] for group in groups.values() if place < len(group))


def _first(name: str, path: Path) -> Row:
    try:
        document = read(str(path))
        names = [kernel.qualified_name for kernel in document.kernels if not kernel.damage][:3]
    except (SourceError, RecursionError) as error:
        return {"ended": f"cannot be read ({type(error).__name__})"}
    row: Row = {"ended": "no kernel"}
    for kernel in names:
        row = _count(path, name, kernel, False, False)()
        if row["ended"] == "counted":
            accesses = {
                line: [one for one in listed if one.get("requests") or one.get("shared")]
                for line, listed in row["lines"].items()
            }
            return row | {"lines": {line: listed for line, listed in accesses.items() if listed}}
    return row


def _counting(path: Path, name: str) -> Callable[[], Row]:
    """What the product itself finds by counting, with no word from the user: it knows nothing of the counts here."""

    def run() -> Row:
        try:
            document = read(str(path))
            learn(document)
            kernel = document.kernel(name)
            found, why = examine(document, kernel, check(document, kernel))
        except (SourceError, RecursionError) as error:
            return {"counted": [], "unrun": f"cannot be read ({type(error).__name__})"}
        return {"counted": [_row(one, kernel, document) for one in found if one.counted], "unrun": why}

    return run


def bad_lines(row: Row) -> list[tuple[int, str, float]]:
    """(line, ``global`` or ``shared``, how many times the ideal) of the lines with a bad access. The ideal of a request
    is what 32 lanes side by side need: a sector for all of them is none the worse for being one of their own."""
    found: dict[tuple[int, str], float] = {}
    for line, listed in row["lines"].items():
        for one in listed:
            if one["lanes"] < LANES * one["warps"] or one.get("atomics"):
                continue
            sectors = max(one.get("ideal_sectors", 0), access_bytes(one["opcode"]) * one.get("requests", 0))
            for kind, part, ideal in (("global", "sectors", sectors), ("shared", "passes", one.get("ideal_passes", 0))):
                ratio = one.get(part, 0) / max(1, ideal)
                if ratio >= BAD:
                    found[int(line), kind] = max(ratio, found.get((int(line), kind), 0.0))
    return [(line, kind, round(ratio, 2)) for (line, kind), ratio in sorted(found.items())]


def recall(rows: list[Row], paths: Mapping[str, Path], counting: Mapping[str, Row]) -> Iterator[str]:
    """How many of the bad lines the rules name, alone and with what the product counted, and which lines are left
    out."""
    counted = [row for row in rows if row["ended"] == "counted"]
    lined = [row | {"bad": bad_lines(row)} for row in counted]
    every = [row | _findings(paths[row["key"]], row["kernel"]) for row in lined if row["bad"]]
    yield f"{len(counted)} kernels counted, {len(every)} with a bad line"
    why = Counter(_left_out(row, line, kind) for row in every for line, kind, _ in row["bad"])
    yield from (f"  left out: {number} lines {words}" for words, number in why.items() if words)
    lines = [(row, line, kind) for row in every for line, kind, _ in row["bad"] if not _left_out(row, line, kind)]
    yield f"  {len({row['key'] for row, *_ in lines})} kernels are left"
    for kind, rules in (("global", GLOBAL), ("shared", SHARED)):
        mine = [(row, line) for row, line, what in lines if what == kind]
        at = sum(_named(row, line, rules, False) for row, line in mine)
        named = sum(_named(row, line, rules, True) for row, line in mine)
        yield (
            f"  {kind}: {len(mine)} lines; named by a finding {named} ({_share(named, len(mine))}), "
            f"of these {at} where it begins"
        )
        counted_ = sum(
            _named(row, line, rules, True) or _named({"findings": counting[row["key"]]["counted"]}, line, rules, True)
            for row, line in mine
        )
        yield f"    with what the product counted: {counted_} ({_share(counted_, len(mine))})"
    unrun = Counter(counting[key]["unrun"] for key in {row["key"] for row, *_ in lines})
    yield f"  of these kernels the product ran {unrun.pop('', 0)}; not run: {dict(unrun)}"


def _left_out(row: Row, line: int, kind: str) -> str:
    """Why no rule that runs by default could name a line, or nothing."""
    if line not in row["accessed"][kind]:
        return "without an access in the source (library functions, assembly)"
    if line in row["gathered"]:
        return "whose index is itself loaded (M5, which is off by default)"
    if row["stand-ins"] and row["made up"]:
        return "of templates over numbers that the file does not tell: those counted with were made up"
    return "of kernels of several dimensions whose block the file does not tell" if row["open"] else ""


def _findings(path: Path, name: str) -> Row:
    """What the rules find in a kernel; the lines on which its source accesses an array at all, and those on which it
    does so where memory says; whether its block is ``open``: what the rules say then holds for all usual ones, and the
    count is of one; and whether there are numbers of a template for which ``stand-ins`` had to do."""
    document = read(str(path))
    learn(document)
    kernel = document.kernel(name)
    text = document.text[kernel.span.start : kernel.span.end]
    facts = analyse(document, kernel)
    accessed = {
        kind: [
            line + 1
            for one in (*facts.accesses, *facts.hinted)
            for line in range(one.node.start_point[0], one.node.end_point[0] + 1)
            if one.space in (kind, "unknown")
        ]
        for kind in ("global", "shared")
    }
    gathers = [_row(one, kernel, document) for one in check(document, kernel, selection=Selection(select=("M5",)))]
    sites = launches_of(document, kernel)
    blocks = {shape(document, site).block for site in sites}
    numbers = {one.name for one in kernel.template if one.kind == "value"}
    known = len(blocks) == 1 and None not in next(iter(blocks))
    return {
        "findings": [_row(one, kernel, document) for one in check(document, kernel)],
        "accessed": accessed,
        "gathered": [line for one in gathers if one["rule"] == "M5" for line in (one["line"], *one["related"])],
        "stand-ins": bool(numbers - template_numbers(document, kernel, sites).keys()),
        "open": not known and b"threadIdx.y" in text,
    }


def _named(row: Row, line: int, rules: frozenset[str], related: bool) -> bool:
    return any(
        one["line"] <= line <= one["last"] or (related and line in one["related"])
        for one in row["findings"]
        if one["rule"] in rules
    )


if __name__ == "__main__":
    main()
