"""Do the hints name the bad accesses? Of public files, by counts of kernels that nobody chose.

Run ``CUDA_LSP_FINDINGS=checkouts CUDA_LSP_FINDINGS_OUT=folder python -m tests.benchmarks recall`` over such a folder as
``findings`` takes, with its settings (``_SEED``, ``_EACH``).

1. *Counted*: the first kernel that can be counted of each file, in turn from each repository, up to ``_KERNELS`` (12)
   of one, whatever the rules say of it: on which lines does a global access need at least twice its ideal sectors, or
   a shared one twice its passes, by warps of which at least 8 lanes are at work.
2. *Elsewhere*: those of launches that were made up, on other numbers that are made up too: a line that is fine there
   is bad by a number of ours, and not of itself. Both are told: all lines, and those without these.
3. *Named*: whether a finding is there: of the rules alone, and with those that the editor and ``cuda-lsp hints
   --count`` make of their own counts.

A second run goes on from what the folder holds.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent.analysis.facts import analyse
from agent.analysis.headers import learn
from agent.analysis.launches import launches_of, shape, template_numbers
from agent.analysis.rules import check
from agent.analysis.rules.counted import BAD
from agent.analysis.rules.selection import Selection
from agent.source.document import read
from agent.source.errors import SourceError
from cuda_lsp.terminal.hints.counting import examine
from tests.analysis.counted_kernels import access_bytes, counted_elsewhere
from tests.benchmarks.findings import Row, as_row, counted_in, header_folders, inputs, kept, setting, share

LANES = 8
GLOBAL = frozenset(("M1", "M2", "M3", "M4", "M5"))
SHARED = frozenset(("S1", "S2"))


def main() -> None:
    if (given := inputs()) is None:
        return
    files, out, seed = given
    paths = dict(files)
    rows = kept(out / f"recall-{seed}.jsonl", _first_kernels(files, out / f"recall-{seed}.jsonl"))
    bad = [row for row in rows if row["ended"] == "counted" and bad_lines(row)]
    made = [(row["key"], _elsewhere(paths[row["key"]], row)) for row in bad if row["made up"]]
    counting = [(row["key"], _counting(paths[row["key"]], row["kernel"])) for row in bad]
    elsewhere, counted = (
        {row["key"]: row for row in kept(out / f"{name}-{seed}.jsonl", work)}
        for name, work in (("elsewhere", made), ("counting", counting))
    )
    print("\n".join(recall(rows, paths, counted, elsewhere)))


def _first_kernels(files: list[tuple[str, Path]], kept: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The first countable kernel of each file, until a repository has enough. What ended otherwise is kept too."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = Counter(row["key"].partition("/")[0] for row in rows if row["ended"] == "counted")
    known = {row["key"] for row in rows}
    for name, path in _mixed(files):
        repository = name.partition("/")[0]
        if name in known or done[repository] >= setting("KERNELS", 12):
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
        row = counted_in(path, name, kernel, False, False)()
        if row["ended"] == "counted":
            return row | {"lines": _accesses(row)}
    return row


def _accesses(row: Row) -> dict[str, list[Row]]:
    """By line, what was executed and touched memory."""
    touched = {
        line: [one for one in listed if one.get("requests") or one.get("shared")]
        for line, listed in row["lines"].items()
    }
    return {line: listed for line, listed in touched.items() if listed}


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
        return {"counted": [as_row(one, kernel, document) for one in found if one.counted], "unrun": why}

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


def recall(
    rows: list[Row], paths: Mapping[str, Path], counting: Mapping[str, Row], elsewhere: Mapping[str, Row]
) -> Iterator[str]:
    """How many of the bad lines the rules name, alone and with what the product counted, and which lines are left
    out; of all of them, and of those that are bad whatever number is made up."""
    counted = [row for row in rows if row["ended"] == "counted"]
    lined = [row | {"bad": bad_lines(row)} for row in counted]
    every = [row | _findings(paths[row["key"]], row["kernel"]) for row in lined if row["bad"]]
    yield f"{len(counted)} kernels counted, {len(every)} with a bad line"
    lines = [(row, line, kind, _left_out(row, line, kind)) for row in every for line, kind, _ in row["bad"]]
    for words in dict.fromkeys(why for *_, why in lines if why):
        yield _line(f"left out, {words}", [one[:3] for one in lines if one[3] == words], counting)
    kept_ = [one[:3] for one in lines if not one[3]]
    yield f"  {len({row['key'] for row, *_ in kept_})} kernels are left"
    for kind in ("global", "shared"):
        mine = [one for one in kept_ if one[2] == kind]
        firm = [one for one in mine if [one[1], kind] not in elsewhere.get(one[0]["key"], {}).get("fine", [])]
        yield _line(kind, mine, counting)
        yield _line("  without those that are fine with other made-up numbers", firm, counting)
    unrun = Counter(counting[key]["unrun"] for key in {row["key"] for row, *_ in kept_})
    yield f"  of these kernels the product ran {unrun.pop('', 0)}; not run: {dict(unrun)}"


def _line(words: str, lines: list[tuple[Row, int, str]], counting: Mapping[str, Row]) -> str:
    """How many of some lines are named."""
    alone = [_named(row, line, kind) for row, line, kind in lines]
    counted = [_named({"findings": counting[row["key"]]["counted"]}, line, kind) for row, line, kind in lines]
    both = sum(one or other for one, other in zip(alone, counted, strict=True))
    return (
        f"  {words}: {len(lines)} lines; named by the rules {sum(alone)} ({share(sum(alone), len(lines))}), "
        f"with what the product counted {both} ({share(both, len(lines))})"
    )


def _elsewhere(path: Path, row: Row) -> Callable[[], Row]:
    """(line, kind) of the bad lines that are ``fine`` on another launch that was made up, which comes to them."""

    def run() -> Row:
        try:
            document = read(str(path))
            folders = header_folders(document, row["key"], path)
            found = counted_elsewhere(document, document.kernel(row["kernel"]), folders)
            others = [{"lines": _accesses(one)} for one in found]
        except (SourceError, RecursionError, ValueError):
            others = []
        bad = [(line, kind) for line, kind, _ in bad_lines(row)]
        fine = [list(one) for one in bad if any(_is_fine(other, *one) for other in others)]
        return {"launches": len(others), "fine": fine}

    return run


def _is_fine(row: Row, line: int, kind: str) -> bool:
    """Whether warps of enough lanes come to a line, and none of its accesses is bad."""
    there = [one for one in row["lines"].get(str(line), []) if one["lanes"] >= LANES * one["warps"]]
    reached = any(one.get("requests" if kind == "global" else "shared") for one in there)
    return reached and all((line, kind) != (at, what) for at, what, _ in bad_lines(row))


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
    gathers = [as_row(one, kernel, document) for one in check(document, kernel, selection=Selection(select=("M5",)))]
    sites = launches_of(document, kernel)
    blocks = {shape(document, site).block for site in sites}
    numbers = {one.name for one in kernel.template if one.kind == "value"}
    known = len(blocks) == 1 and None not in next(iter(blocks))
    return {
        "findings": [as_row(one, kernel, document) for one in check(document, kernel)],
        "accessed": accessed,
        "gathered": [line for one in gathers if one["rule"] == "M5" for line in (one["line"], *one["related"])],
        "stand-ins": bool(numbers - template_numbers(document, kernel, sites).keys()),
        "open": not known and b"threadIdx.y" in text,
    }


def _named(row: Row, line: int, kind: str) -> bool:
    rules = GLOBAL if kind == "global" else SHARED
    return any(
        one["line"] <= line <= one["last"] or line in one["related"] for one in row["findings"] if one["rule"] in rules
    )


if __name__ == "__main__":
    main()
