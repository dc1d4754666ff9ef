"""The columns of an annotated listing: what each says of a line's counts, in a few characters."""

from collections.abc import Callable, Iterable

from attrs import frozen

from agent.evaluation.lines.costs import CLEAN, TWICE, WEIGHTY
from agent.evaluation.lines.facts import SECTOR_BYTES, WARP, Facts, Traffic
from cuda_lsp.terminal.render import size

BAD, POOR, DIM = "bad", "poor", "dim"

LITTLE = 0.005

LETTERS = {
    "fp32": "F", "fp64": "D", "tensor": "T", "int": "I", "memory": "M", "control": "C", "special": "S",
    "shuffle": "X", "other": "O",
}  # fmt: skip


@frozen
class Cell:
    """``style`` is BAD, POOR, DIM or nothing."""

    text: str = ""
    style: str = ""


NOTHING = Cell()


@frozen
class Whole:
    """What shares are of: the kernel's counts, and its warps."""

    facts: Facts
    warps: int


@frozen
class Column:
    """``heads`` are two lines. Where a terminal is too narrow, columns with the highest ``rank`` go first: what they
    say stands under the line then, in the words of ``inline``. A column of which all cells begin with ``dull`` is not
    shown: it says nothing that the totals do not say."""

    heads: tuple[str, str]
    cell: Callable[[Facts, Whole], Cell]
    rank: int
    inline: str
    dull: str = ""

    def speaks(self, cells: Iterable[Cell]) -> bool:
        """Whether there is anything in these cells to be shown."""
        return any(cell.text and not (self.dull and cell.text.startswith(self.dull)) for cell in cells)


def short(count: float) -> str:
    """``2.1M``: three figures at most."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * factor:
            scaled = count / factor
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}".replace(".0", "")
    return f"{count:.0f}"


def number(value: float) -> str:
    """One decimal, and none where it would be 0."""
    return f"{value:.1f}".removesuffix(".0")


def share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _issue(facts: Facts, whole: Whole) -> Cell:
    if not facts.instructions:
        return NOTHING
    part = facts.instructions / whole.facts.instructions
    return Cell(f"{part:.1%}", DIM if part < LITTLE else "")


def _lanes(facts: Facts, whole: Whole) -> Cell:
    if not facts.instructions:
        return NOTHING
    mean = facts.lanes / facts.instructions
    weighty = WARP * facts.instructions - facts.lanes >= WEIGHTY * WARP * whole.facts.instructions
    return Cell(number(mean), (BAD if mean <= WARP / 2 else POOR) if weighty else "")


def _mix(facts: Facts, whole: Whole) -> Cell:
    """Instructions a warp by class, the most frequent first."""
    most = sorted(facts.mix.items(), key=lambda pair: -pair[1])[:4]
    return Cell(" ".join(f"{LETTERS.get(name, name[:1].upper())}{_few(count / whole.warps)}" for name, count in most))


def _few(count: float) -> str:
    return short(count) if count >= 100 else number(count)


def _requests(facts: Facts, whole: Whole) -> Cell:
    return Cell(short(facts.requests)) if facts.requests else NOTHING


def _each(traffic: Traffic, whole: Whole) -> Cell:
    """Sectors a request, and in brackets what would do."""
    if not traffic.requests:
        return NOTHING
    each, ideal = traffic.sectors / traffic.requests, traffic.ideal_sectors / traffic.requests
    if each <= CLEAN * ideal and number(each) == number(ideal):
        return Cell(number(each))
    weighty = traffic.sectors - traffic.ideal_sectors >= WEIGHTY * whole.facts.sectors
    style = (BAD if each >= TWICE * ideal else POOR) if weighty and each > CLEAN * ideal else ""
    return Cell(f"{number(each)} ({number(ideal)})", style)


def _moved(facts: Facts, whole: Whole) -> Cell:
    if not facts.sectors:
        return NOTHING
    return Cell(f"{size(SECTOR_BYTES * facts.sectors)} {facts.sectors / whole.facts.sectors:.0%}")


def _shared(facts: Facts, whole: Whole) -> Cell:
    """``32-way``: so many times the passes that accesses of that width need."""
    shared = facts.shared
    if not shared.requests:
        return NOTHING
    ways = shared.passes / shared.ideal_passes
    weighty = shared.passes - shared.ideal_passes >= WEIGHTY * whole.facts.shared.passes
    style = (BAD if ways >= TWICE else POOR) if weighty and ways > CLEAN else ""
    return Cell(f"{number(ways)}-way", style)


def _passes(facts: Facts, whole: Whole) -> Cell:
    return Cell(short(facts.shared.passes)) if facts.shared.passes else NOTHING


def _branches(facts: Facts, whole: Whole) -> Cell:
    """The part of the branches at which warps part."""
    branches = facts.branches
    if not branches.executed:
        return NOTHING
    parted = branches.divergent / branches.executed
    weighty = branches.divergent >= WEIGHTY * whole.facts.branches.executed
    return Cell(f"{parted:.0%} of {short(branches.executed)}", POOR if parted and weighty else "")


def _atomics(facts: Facts, whole: Whole) -> Cell:
    atomics = facts.atomics
    if not atomics.requests:
        return NOTHING
    ways = atomics.rounds / atomics.requests
    return Cell(f"{number(ways)}-way", BAD if ways >= TWICE else POOR if ways > CLEAN else "")


def _local(facts: Facts, whole: Whole) -> Cell:
    return Cell(size(facts.local.bytes), BAD) if facts.local.requests else NOTHING


COLUMNS = (
    Column(("", "issue"), _issue, 0, "{} of issue"),
    Column(("active", "lanes"), _lanes, 3, "{} lanes", dull="32"),
    Column(("instructions", "a warp"), _mix, 7, "{}"),
    Column(("global", "requests"), _requests, 8, "{} requests"),
    Column(("load", "sect/req"), lambda facts, whole: _each(facts.loads, whole), 1, "load {} sect/req"),
    Column(("store", "sect/req"), lambda facts, whole: _each(facts.stores, whole), 1, "store {} sect/req"),
    Column(("atomic", "sect/req"), lambda facts, whole: _each(facts.updates, whole), 4, "atomic {} sect/req"),
    Column(("global", "traffic"), _moved, 2, "{} of traffic"),
    Column(("shared", "passes"), _passes, 6, "{} passes"),
    Column(("bank", "conflict"), _shared, 1, "{} bank conflict"),
    Column(("branches", "that part"), _branches, 5, "{} branches part", dull="0% of"),
    Column(("atomics", "queue"), _atomics, 1, "{} atomics"),
    Column(("local", "memory"), _local, 1, "{} of local memory"),
)
