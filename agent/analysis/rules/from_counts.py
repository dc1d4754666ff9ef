"""Findings that are made from counts: what no rule reads off the text, and a run of the kernel showed.

The counts come in as data, by line and instruction. A line counts as bad by the rules' own measure: at least twice the
sectors that 32 lanes side by side would need, or twice the passes, by warps of which 8 lanes or more are at work. It
gets a finding where no rule names it, and nothing else is said where the numbers of the run decide what was counted:
lanes that are spread by loaded data, or by a number that was made up together with the launch, unless the line is as
bad on other launches with other numbers.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from agent.analysis.accesses import Access
from agent.analysis.coalescing import SECTOR, WARP
from agent.analysis.facts import Facts, analyse
from agent.analysis.file import file_facts
from agent.analysis.headers import learned
from agent.analysis.launches import launches_of, shape, template_numbers
from agent.analysis.rules.checking import check
from agent.analysis.rules.counted import BAD, Executed, many
from agent.analysis.rules.finding import Finding, Related, Severity
from agent.analysis.rules.registry import by_id
from agent.analysis.rules.selection import EVERYTHING
from agent.analysis.rules.suppression import heedless, silenced, silences
from agent.analysis.rules.uncertain import decided_by_data, decided_by_names, in_bytes
from agent.analysis.syntax import text
from agent.source.document import Document, parse
from agent.source.kernel import Kernel
from agent.source.span import Span

NAMED_BY = {"global": frozenset(("M1", "M2", "M3", "M4", "M5")), "shared": frozenset(("S1", "S2"))}
"""Rules that speak of such lines: of one that they name, or would name if they were not silenced there, no more is
said."""


@frozen
class Counts:
    """What was executed, by 1-based line of the document and instruction; ``sizes`` in words (``n=4096``, or empty);
    ``made_up``: nothing states the kernel's own launch; ``block`` is the one that ran, where that is known.
    ``invented`` are the parameters whose values were made up with it; None where it may be any of them."""

    lines: Mapping[int, Sequence[Executed]]
    sizes: str = ""
    made_up: bool = False
    block: tuple[int, int, int] | None = None
    invented: frozenset[str] | None = None


@frozen
class Cost:
    """An access of a line to one kind of memory: ``each`` sectors or passes, ``best`` would do."""

    line: int
    space: str
    stores: bool | None
    each: float
    best: float

    @property
    def place(self) -> tuple[int, str, bool | None]:
        return self.line, self.space, self.stores


@frozen(eq=False)
class _At:
    """A bad line and the accesses of its text that it may be."""

    bad: Cost
    accesses: tuple[Access, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(access.name for access in self.accesses))

    @property
    def rule(self) -> str:
        if self.bad.space == "global":
            return "M1"
        root = self.accesses[0].root
        return "S1" if root is not None and len(root.dims) > 1 else "S2"


def from_counts(
    document: Document, kernel: Kernel, counts: Counts, elsewhere: Sequence[Counts] = ()
) -> tuple[Finding, ...]:
    """A finding for each array and rule that has a bad line in the kernel which no rule names, in text order; its
    other lines are the related ones. All of them: a selection is the caller's. What is asked of headers must have been
    learned. ``elsewhere`` are counts on further launches that were made up, with other numbers: what is bad there too
    no number decides, and what is fine on one of them is not said."""
    bad = unnamed(document, kernel, counts)
    if not bad:
        return ()
    facts = analyse(document, kernel, shared=learned(document, file_facts(document)))
    agreed, denied = _held_against(elsewhere)
    if counts.made_up and _block_is_open(document, kernel, counts):
        several = len({one.block for one in (counts, *elsewhere)}) > 1
        denied |= {one.place for one in bad if not several or one.place not in agreed}
    found = [
        _At(one, there)
        for one in bad
        if one.place not in denied and (there := _accesses(facts, one, _deciding(facts, counts), one.place in agreed))
    ]
    groups: dict[tuple[str, tuple[str, ...], bool], list[_At]] = {}
    for at in found:
        groups.setdefault((at.rule, at.names, at.bad.place in agreed), []).append(at)
    made = (
        _finding(document, kernel, rule, group, counts, elsewhere if alike else ())
        for (rule, _, alike), group in groups.items()
    )
    return tuple(sorted((one for one in made if one is not None), key=lambda one: one.span))


def unnamed(document: Document, kernel: Kernel, counts: Counts) -> list[Cost]:
    """The bad accesses that no rule names, by line; none of a template over numbers that were made up."""
    if kernel.damage is not None or (counts.made_up and _numbers_are_open(document, kernel)):
        return []
    first, last = document.line(kernel.span.start), document.line(kernel.span.end)
    bad = [one for line in sorted(counts.lines) if first <= line <= last for one in _bad(line, counts.lines[line])]
    named = _named(document, kernel) if bad else {}
    return [one for one in bad if one.line not in named[one.space]]


_Place = tuple[int, str, bool | None]


def _held_against(elsewhere: Sequence[Counts]) -> tuple[set[_Place], set[_Place]]:
    """The places that are bad on every launch, and those that one comes to and has no bad access at."""
    if not elsewhere:
        return set(), set()
    bad = [{one.place for line, listed in counts.lines.items() for one in _bad(line, listed)} for counts in elsewhere]
    fine = (
        {one.place for line, listed in counts.lines.items() for one in _costs(line, listed)} for counts in elsewhere
    )
    return set.intersection(*bad), {place for there, worse in zip(fine, bad, strict=True) for place in there - worse}


def _deciding(facts: Facts, counts: Counts) -> frozenset[str]:
    """The parameters whose values were made up and may decide what was counted."""
    if not counts.made_up:
        return frozenset()
    if counts.invented is not None:
        return counts.invented
    return frozenset(one.name for one in facts.kernel.parameters if one.pointer_depth == 0)


def moved(finding: Finding, by: int) -> Finding:
    """The same finding so many bytes further on."""
    related = tuple(evolve(one, span=_moved(one.span, by)) for one in finding.related)
    return evolve(finding, span=_moved(finding.span, by), related=related)


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _bad(line: int, listed: Sequence[Executed]) -> Iterator[Cost]:
    """The worst load, store and access to shared memory of a line, as far as they are bad."""
    worst: dict[_Place, Cost] = {}
    for one in _costs(line, listed):
        if one.each >= BAD * one.best and (one.place not in worst or one.each > worst[one.place].each):
            worst[one.place] = one
    yield from worst.values()


def _costs(line: int, listed: Sequence[Executed]) -> Iterator[Cost]:
    """What each load, store and access to shared memory of a line costs, bad or not."""
    for one in listed:
        if one.atomics or not many(one):
            continue
        stores = {"load": False, "store": True}.get(one.kind)
        # a sector for all lanes is none the worse for being one of their own
        side_by_side = max(one.ideal_sectors, WARP * one.width * one.requests // SECTOR)
        if one.requests and side_by_side:
            yield Cost(line, "global", stores, one.sectors / one.requests, side_by_side / one.requests)
        if one.shared and one.ideal_passes:
            yield Cost(line, "shared", None, one.passes / one.shared, one.ideal_passes / one.shared)


def _named(document: Document, kernel: Kernel) -> Mapping[str, set[int]]:
    """The lines that the rules name by themselves, whatever is silenced there."""
    if (plain := heedless(document.text)) != document.text:
        document = parse(plain, document.path)
        kernel = next(one for one in document.kernels if one.span == kernel.span)
    found: dict[str, set[int]] = {space: set() for space in NAMED_BY}
    for one in check(document, kernel, selection=EVERYTHING):
        for space, rules in NAMED_BY.items():
            if one.rule in rules:
                for span in (one.span, *(other.span for other in one.related)):
                    last = document.line(max(span.start, span.end - 1))
                    found[space].update(range(document.line(span.start), last + 1))
    return found


def _accesses(facts: Facts, bad: Cost, deciding: frozenset[str], agreed: bool) -> tuple[Access, ...]:
    """The accesses in the text that a bad line may be: none where the line has no such access, or where loaded data may
    be what it costs, or parameters that are ``deciding`` where other values of these did not ``agree``."""
    there = [
        one
        for one in (*facts.accesses, *facts.hinted)
        if one.space in (bad.space, "unknown")
        and one.name
        and not one.atomic
        and one.node.start_point[0] < bad.line <= one.node.end_point[0] + 1
        and (bad.stores is None or (one.writes if bad.stores else one.reads))
    ]
    likely = [one for one in there if not _side_by_side(one)] or there
    open_ = [one for one in likely if not agreed or in_bytes(one, facts)]
    if any(decided_by_data(one, facts) for one in likely) or any(
        decided_by_names(one, facts, deciding) for one in open_
    ):
        return ()
    return tuple(likely)


def _side_by_side(access: Access) -> bool:
    """Whether neighbouring threads of a row surely go to neighbouring elements, or all to one."""
    index = access.index
    if index is None or index.depends & {"unknown", "memory"} or access.member or access.cast:
        return False
    slope, across = index.coefficient("threadIdx.x"), index.coefficient("threadIdx.y")
    return slope is not None and slope.constant in (-1, 0, 1) and across is not None and not across.terms


def _block_is_open(document: Document, kernel: Kernel, counts: Counts) -> bool:
    """Whether a launch that was made up stands for the block of a kernel that takes one of several dimensions."""
    blocks = {shape(document, site).block for site in launches_of(document, kernel)}
    known = len(blocks) == 1 and None not in (own := next(iter(blocks))) and counts.block in (None, own)
    words = document.text[kernel.span.start : kernel.span.end]
    return not known and (b"threadIdx.y" in words or b"threadIdx.z" in words)


def _numbers_are_open(document: Document, kernel: Kernel) -> bool:
    """Whether nobody tells a template's numbers."""
    numbers = {one.name for one in kernel.template if one.kind == "value"}
    return bool(numbers - template_numbers(document, kernel, launches_of(document, kernel)).keys())


def _finding(
    document: Document, kernel: Kernel, rule: str, group: Sequence[_At], counts: Counts, alike: Sequence[Counts]
) -> Finding | None:
    lined = [at for at in group if not _silenced(document, kernel, at)]
    if not lined:
        return None
    one, *others = lined
    what = "sectors" if one.bad.space == "global" else "passes"
    each, best = _number(one.bad.each), _number(one.bad.best)
    related = {
        _place(document, other): f"{_number(other.bad.each)} {what} here ({_text(other)})"
        for other in others
        if other.bad.line != one.bad.line
    }
    return Finding(
        rule,
        _message(one),
        _place(document, one),
        # what was counted on numbers of ours is no certain cost of the user's
        Severity.INFORMATION if counts.made_up else by_id()[rule].severity,
        tuple(Related(span, words) for span, words in related.items()),
        f"{_where(counts, alike)}: {each} {what} {'a request' if what == 'sectors' else 'an access'}, {best} would do",
        by_id()[rule].fix,
        counted=True,
    )


def _where(counts: Counts, alike: Sequence[Counts]) -> str:
    launch = " on a launch that was made up" if counts.made_up else ""
    blocks = len({one.block for one in (counts, *alike)}) > 1
    others = " and".join(_at_numbers(one, blocks) for one in alike)
    return f"counted{_at_numbers(counts, blocks)}{launch}{f', and as bad{others}' if others else ''}"


def _at_numbers(counts: Counts, blocks: bool) -> str:
    block = f" in blocks of {' x '.join(str(side) for side in counts.block)}" if blocks and counts.block else ""
    return f"{f' at {counts.sizes}' if counts.sizes else ''}{block}"


def _message(at: _At) -> str:
    names = " or ".join(at.names)
    if at.bad.space == "shared":
        return f"the lanes of a warp meet in the same banks of {names}"
    return f"the lanes of a warp are spread over {names}"


def _silenced(document: Document, kernel: Kernel, at: _At) -> bool:
    names = silenced(document, kernel, _place(document, at), inside=True)
    return any(silences(names, rule) for rule in NAMED_BY[at.bad.space])


def _place(document: Document, at: _At) -> Span:
    """The access, or the whole of the line where several may be meant."""
    if len(at.names) == 1:
        node = at.accesses[0].node
        return Span(node.start_byte, node.end_byte)
    start = document.line_starts[at.bad.line - 1]
    end = document.text.find(b"\n", start)
    line = document.text[start : end if end >= 0 else None]
    return Span(start + len(line) - len(line.lstrip()), start + len(line.rstrip()))


def _text(at: _At) -> str:
    return text(at.accesses[0].node) if len(at.names) == 1 else " or ".join(at.names)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
