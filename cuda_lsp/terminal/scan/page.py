"""A scan as one page: nothing is fetched, no script runs, and no text of the code base can become markup."""

from collections.abc import Iterator

import cuda_lsp
from agent.analysis.rules.registry import by_id
from cuda_lsp.scanning.report import NEAR, Group, Ranked, Report
from cuda_lsp.scanning.values import Cost, Hint, Scanned
from cuda_lsp.terminal.hints.walk import Problem
from cuda_lsp.terminal.render import down, duration
from cuda_lsp.terminal.scan import pictures
from cuda_lsp.terminal.scan.markup import Markup, element, joined
from cuda_lsp.terminal.scan.style import CSS
from cuda_lsp.terminal.scan.table import MARKS, marks, percent, plural, summary

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
TITLE = "Where to spend effort first"
RULES = 12
LEAST_TERM = 0.02
"""Of the longest: a resource that takes less is not drawn."""


def page(found: Report) -> str:
    """The whole file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{TITLE}: {', '.join(found.paths)}"),
        element("style", Markup(CSS)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *_body(found)), lang='en')}\n"


def _body(found: Report) -> Iterator[Markup]:
    yield element("h1", TITLE)
    yield element("p", element("code", ", ".join(found.paths)), f": {summary(found)}.", class_="soft")
    yield element("p", found.statement, class_="statement")
    if found.stopped:
        yield element("p", element("b", "Not all of it: "), found.stopped, class_="statement")
    yield element("div", *_tiles(found), class_="tiles")
    if found.ranked:
        yield _card("What reaching the floor would save", _FLOOR, pictures.bars(found.ranked))
        yield _card("Time against headroom", _MAP, pictures.chart(found))
    yield element("div", *_shares(found), class_="pair")
    if found.rules:
        rows = [(name, by_id()[name].title if name in by_id() else "", n) for name, n in found.rules.items()]
        yield _card(
            "Findings of the rules",
            f"In {plural(found.kernels, 'kernel')}, and at their launches.",
            pictures.counted(rows[:RULES], "Findings by rule"),
        )
    if found.ranked:
        yield _card("All kernels with an estimate", _DETAILS, element("div", _table(found), class_="wide"))
    if found.groups:
        yield _card("Kernels without an estimate, by cause", _WITHOUT, *map(_group, found.groups))
    if found.problems:
        yield _card("What could not be read", "", element("ul", map(_problem, found.problems)))
    yield element("p", f"Made by cuda-lsp {cuda_lsp.__version__}.", *_left(found), class_="soft")


_FLOOR = (
    "The floor is the least that the same launches can take on this card by what they touch, compute and are: bytes "
    "once over DRAM, arithmetic at its peak, the gap between two launches."
)
_MAP = (
    "Farther right takes longer, farther up is farther from the floor. On a dashed line reaching the floor saves the "
    "same part of all estimated time."
)
_DETAILS = "Open a kernel for its workload, what limits it, and what was found in it."
_WITHOUT = "What a kernel asks for can be stated in a directive above it: size n = 4096, for example."


def _card(title: str, words: str, *children: Markup) -> Markup:
    said = element("p", words, class_="soft") if words else ""
    return element("section", element("h2", title), said, *children, class_="card")


def _tiles(found: Report) -> Iterator[Markup]:
    yield _tile(f"{found.kernels:,}", f"kernels in {plural(found.files, 'file')}")
    yield _tile(f"{len(found.ranked):,}", "with an estimate")
    if found.ranked:
        yield _tile(duration(found.seconds), "estimated in all, not measured")
        yield _tile(percent(sum(one.gain for one in found.ranked)), "of it above the floors")
        ten = sum(one.gain for one in found.ranked[:3])
        yield _tile(percent(ten), "of it above the floors of the first three")


def _tile(figure: str, words: str) -> Markup:
    return element("div", element("b", figure), element("span", words, class_="soft"), class_="tile")


def _shares(found: Report) -> Iterator[Markup]:
    if found.ranked:
        yield _card("What limits", "Estimated time by the resource that limits it.", _limits(found))
    if found.kernels:
        yield _card("How far the scan came", "Kernels by what is known of them.", _reached(found))


def _limits(found: Report) -> Markup:
    seconds = dict.fromkeys(range(len(pictures.FAMILIES)), 0.0)
    for one in found.ranked:
        seconds[pictures.family(one.cost.limit)] += one.cost.seconds
    names = list(pictures.FAMILIES)
    parts = [
        (f"f{at}", names[at], value, f"{duration(value)}, {percent(value / found.seconds)}")
        for at, value in sorted(seconds.items(), key=lambda pair: -pair[1])
        if value
    ]
    return pictures.parted(parts, "Estimated time by what limits it")


def _reached(found: Report) -> Markup:
    counts = {"estimated": len(found.ranked)}
    for group in found.groups:
        counts[group.cause.value] = counts.get(group.cause.value, 0) + len(group.kernels)
    order = ("f0", "f2", "f4", "f5", "f1", "f3", "f6", "floor", "gain", "f2")
    parts = [
        (style, name, float(count), f"{count:,}")
        for style, (name, count) in zip(order, counts.items(), strict=False)
        if count
    ]
    return pictures.parted(parts, "Kernels by what is known of them")


# --- the table --------------------------------------------------------------------------------------------------------


def _table(found: Report) -> Markup:
    heads = (("", "n"), ("would save", "n"), ("share", "n"), ("headroom", "n"), ("estimated", "n"), ("floor", "n"))
    row = [element("th", name, class_=style) for name, style in heads]
    row += [element("th", name) for name in ("limited by", "findings", "kernel")]
    notes = [
        element("p", f"{mark} {note}", class_="soft")
        for note, mark in MARKS.items()
        if any(note in one.notes for one in found.ranked)
    ]
    body = element("tbody", map(_row, found.ranked))
    return joined(element("table", element("thead", element("tr", row)), body), notes)


def _row(one: Ranked) -> Markup:
    cost = one.cost
    track = element("div", element("i", class_="gain", style=f"width: {100 * one.gain:.1f}%"), class_="track")
    near = one.headroom < NEAR
    figures = (
        str(one.rank),
        joined(percent(one.gain), track),
        percent(one.share),
        joined(down(one.headroom), element("br"), element("span", "near the floor", class_="soft")) if near
        else down(one.headroom),
        f"{marks(one)} {duration(cost.seconds)}",
        duration(cost.floor_seconds),
    )  # fmt: skip
    name = (element("b", one.scanned.kernel), " ", element("span", _place(one.scanned), class_="mono soft"))
    return element(
        "tr",
        [element("td", text, class_="n") for text in figures],
        element("td", cost.limit),
        element("td", _rules(one.scanned)),
        element("td", element("details", element("summary", name), *_details(one.scanned, cost))),
        id=f"k{one.rank}",
        class_="near" if near else None,
    )


def _place(one: Scanned) -> str:
    return f"{one.path}:{one.line}"


def _rules(one: Scanned) -> list[Markup]:
    worst: dict[str, Hint] = {}
    for hint in one.hints:
        worst.setdefault(hint.rule, hint)
    return [element("span", name, class_=f"rule {hint.severity}", title=hint.message) for name, hint in worst.items()]


def _details(one: Scanned, cost: Cost) -> Iterator[Markup]:
    registers = f"{cost.registers} registers, " if cost.registers is not None else ""
    launches = f"{cost.launches:,} launch{'es' * (cost.launches != 1)}"
    floors = {"memory": cost.memory_seconds, cost.arithmetic: cost.arithmetic_seconds}
    told = ", ".join(f"{duration(seconds)} {name}" for name, seconds in floors.items() if seconds)
    facts = (
        ("signature", element("code", one.signature)),
        ("workload", one.workload),
        ("from", one.origin),
        ("counted", cost.counted),
        ("resources", f"{registers}occupancy {cost.occupancy:.0%}; {launches}"),
        ("floors", f"{told or 'no bytes, no floating point'}; the {cost.floor} counts"),
    )
    yield element("dl", [joined(element("dt", name), element("dd", text)) for name, text in facts])
    yield element("dl", _terms(cost))
    if cost.hot:
        lines = [element("li", f"line {hot.line}: {hot.words}", title=hot.meaning) for hot in cost.hot]
        yield joined("Counted: ", element("ul", lines))
    if one.hints:
        found = [element("li", element("b", hint.rule), f" line {hint.line}: {hint.message}") for hint in one.hints]
        yield joined("Found by rules: ", element("ul", found))


def _terms(cost: Cost) -> Iterator[Markup]:
    most = max(cost.terms.values())
    for name, seconds in sorted(cost.terms.items(), key=lambda pair: -pair[1]):
        if seconds >= LEAST_TERM * most > 0:
            style = f"width: {100 * seconds / most:.1f}%"
            bar = element("i", class_=f"f{pictures.family(name)}", style=style)
            yield joined(
                element("dt", name),
                element("dd", element("div", bar, class_="track"), duration(seconds), class_="term soft"),
            )


# --- the others -------------------------------------------------------------------------------------------------------


def _group(group: Group) -> Markup:
    said = f"{group.cause.value}: {group.words}" if group.words else group.cause.value
    head = element("summary", element("b", f"{len(group.kernels):,}"), f" {said}")
    return element("details", head, element("ul", map(_missing, group.kernels)))


def _missing(one: Scanned) -> Markup:
    asks = element("div", "asks: ", " ".join(one.asks)) if one.asks else ""
    name = joined(element("b", one.kernel), " ", element("span", _place(one), class_="mono soft"), " ", _rules(one))
    return element("li", name, element("div", one.message, class_="soft"), asks)


def _problem(problem: Problem) -> Markup:
    return element("li", element("code", problem.path), f": {problem.message}")


def _left(found: Report) -> list[str]:
    return [f" Passed over: {reason}: {count:,}." for reason, count in found.left.items()]
