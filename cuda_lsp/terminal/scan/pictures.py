"""The pictures of the page, as inline SVG: no script, and each mark says in words what it is."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10

from cuda_lsp.scanning.report import Ranked, Report
from cuda_lsp.terminal.render import down, duration
from cuda_lsp.terminal.scan.markup import Markup, element, joined
from cuda_lsp.terminal.scan.table import percent

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "DRAM": ("DRAM bandwidth",),
    "L2": ("L2 bandwidth",),
    "L1 and shared memory": ("L1 throughput", "shared memory"),
    "instructions and arithmetic": (
        "instruction issue", "integer throughput", "fp32 throughput", "fp64 throughput", "tensor cores",
        "special functions",
    ),
    "waiting: latency, barriers, shuffles": ("latency", "barriers", "warp shuffles"),
    "atomics in one place": ("atomics in one place",),
    "launches": ("launch overhead",),
}  # fmt: skip
"""What limits a kernel, as the pictures colour it: the terms of the estimate under each name."""

BARS = 15
NUMBERED = 12
WIDTH, HALF = 1080.0, 520.0
"""Of a picture as wide as the page, and of one beside another: drawn units are about pixels."""

_LEFT, _RIGHT, _ROW = 250.0, 330.0, 24.0
_TOP, _BOTTOM, _HEIGHT = 14.0, 44.0, 460.0
_NAME = 34
_STEPS = (1, 2, 5)
_AIR = 1.25
"""Over the highest dot there is room for words."""


def family(limit: str) -> int:
    """The place of a limit's family among FAMILIES."""
    return next((at for at, names in enumerate(FAMILIES.values()) if limit in names), len(FAMILIES) - 1)


def key(used: Sequence[int]) -> Markup:
    """The colours of the families in ``used``."""
    names = list(FAMILIES)
    return element("div", [_swatch(f"f{at}", names[at]) for at in sorted(set(used))], class_="key")


def _swatch(style: str, name: str) -> Markup:
    return element("span", element("i", class_=style), name)


# --- bars: what reaching the floor would save -------------------------------------------------------------------------


def bars(ranked: Sequence[Ranked]) -> Markup:
    """The first kernels by time, each parted into its floor and what is above it."""
    shown = ranked[:BARS]
    longest = max(one.cost.seconds for one in shown)
    rows = [_bar(one, at, longest) for at, one in enumerate(shown)]
    drawing = _svg(_ROW * len(shown) + 6, rows, f"Estimated time and floor of {len(shown)} kernels")
    names = (_swatch("gain", "above the floor: what could be saved"), _swatch("floor", "the floor"))
    return joined(drawing, element("div", names, class_="key"))


def _bar(one: Ranked, at: int, longest: float) -> Markup:
    width, y = WIDTH - _LEFT - _RIGHT, at * _ROW + 6
    least, whole = (width * seconds / longest for seconds in (one.cost.floor_seconds, one.cost.seconds))
    words = f"{one.scanned.kernel}: {duration(one.cost.seconds)} estimated, {duration(one.cost.floor_seconds)} floor"
    return _link(
        one,
        element("title", words),
        element("rect", x=0.0, y=y - 4, width=WIDTH, height=_ROW, fill="transparent"),
        element("text", _cut(f"{one.rank}  {one.scanned.kernel}"), x=_LEFT - 10, y=y + 13, class_="end"),
        element("rect", x=_LEFT, y=y, width=min(whole, least), height=16.0, class_="floor"),
        element("rect", x=_LEFT + least, y=y, width=max(1.0, whole - least), height=16.0, class_="gain"),
        element("text", duration(one.cost.seconds), x=_LEFT + max(whole, 1.0) + 8, y=y + 13),
        element("text", down(one.headroom), x=WIDTH - 180, y=y + 13, class_="end"),
        element("text", one.cost.limit, x=WIDTH - 160, y=y + 13, class_="soft"),
    )


# --- the map: time against headroom -----------------------------------------------------------------------------------


def chart(found: Report) -> Markup:
    """Every kernel by estimated time and headroom, both on logarithmic axes: what is at the top right comes first."""
    ranked = found.ranked
    times = _decades([one.cost.seconds for one in ranked])
    rooms = (0.0, log10(_above(_AIR * max(one.headroom for one in ranked))))
    place = _Scale(times, rooms)
    dots = [_dot(one, place) for one in reversed(ranked)]
    marks = [*_grid(place), *_guides(found.seconds, place), *dots, *_numbers(ranked[:NUMBERED], place)]
    drawing = _svg(_HEIGHT, marks, "Kernels by estimated time and headroom")
    return joined(drawing, key([family(one.cost.limit) for one in ranked]))


class _Scale:
    """From powers of ten to places on the drawing."""

    def __init__(self, times: tuple[float, float], rooms: tuple[float, float]) -> None:
        self.times, self.rooms = times, rooms
        self.left, self.right, self.top, self.bottom = 52.0, WIDTH - 30, _TOP, _HEIGHT - _BOTTOM

    def x(self, seconds: float) -> float:
        return self._between(log10(seconds), self.times, self.left, self.right)

    def y(self, headroom: float) -> float:
        return self._between(log10(max(1.0, headroom)), self.rooms, self.bottom, self.top)

    @staticmethod
    def _between(value: float, ends: tuple[float, float], start: float, stop: float) -> float:
        return start + (stop - start) * (value - ends[0]) / (ends[1] - ends[0])


def _above(headroom: float) -> float:
    """The mark of the axis at or above it, from 10 on."""
    power = floor(log10(max(10.0, headroom)))
    return next(mark for mark in (step * 10.0**power for step in (*_STEPS, 10)) if mark >= headroom)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return float(low), float(max(high, low + 1))


def _dot(one: Ranked, place: _Scale) -> Markup:
    words = (
        f"{one.rank}. {one.scanned.kernel}: {duration(one.cost.seconds)} estimated, {down(one.headroom)} to the "
        f"{one.cost.floor}, limited by {one.cost.limit}; would save {percent(one.gain)}"
    )
    x, y = place.x(one.cost.seconds), place.y(one.headroom)
    return _link(
        one,
        element("circle", element("title", words), cx=x, cy=y, r=6.0, class_=f"dot f{family(one.cost.limit)}"),
    )


def _numbers(ranked: Sequence[Ranked], place: _Scale) -> Iterator[Markup]:
    """Names beside the first dots, where they find room."""
    taken: list[tuple[float, float]] = []
    for one in ranked:
        x, y = place.x(one.cost.seconds), place.y(one.headroom)
        if any(abs(y - other) < 14 and abs(x - there) < 150 for there, other in taken):
            continue
        taken.append((x, y))
        right = x > WIDTH - 150
        words = _cut(f"{one.rank} {one.scanned.kernel}", 22)
        yield element("text", words, x=x - 10 if right else x + 10, y=y + 4, class_="name end" if right else "name")


def _grid(place: _Scale) -> Iterator[Markup]:
    for power in range(round(place.times[0]), round(place.times[1]) + 1):
        x = place.x(10.0**power)
        yield element("line", x1=x, x2=x, y1=place.top, y2=place.bottom, class_="grid")
        yield element("text", duration(10.0**power), x=x, y=place.bottom + 16, class_="soft middle")
    for power in range(ceil(place.rooms[1]) + 1):
        for mark in (step * 10.0**power for step in _STEPS):
            if log10(mark) <= place.rooms[1] + 1e-9:
                yield from _across(mark, place)
    yield element("line", x1=place.left, x2=place.right, y1=place.bottom, y2=place.bottom, class_="axis")
    yield element("text", "estimated time of one run", x=place.right, y=place.bottom + 36, class_="soft end")
    yield element("text", "headroom", x=place.left + 6, y=place.top + 12, class_="soft")


def _across(headroom: float, place: _Scale) -> Iterator[Markup]:
    y = place.y(headroom)
    yield element("line", x1=place.left, x2=place.right, y1=y, y2=y, class_="grid")
    yield element("text", f"{headroom:g}x", x=place.left - 6, y=y + 4, class_="soft end")


def _guides(total: float, place: _Scale) -> Iterator[Markup]:
    """Where reaching the floor saves the same part of all estimated time."""
    for part in (0.1, 0.01):
        points = []
        for step in range(1, 101):
            headroom = 10 ** (place.rooms[1] * step / 100)
            seconds = part * total / (1 - 1 / headroom)
            if place.times[0] <= log10(seconds) <= place.times[1]:
                points.append((place.x(seconds), place.y(headroom)))
        if len(points) > 1:
            trail = " ".join(f"{'L' if at else 'M'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(points))
            yield element("path", d=trail, class_="guide")
            x, y = points[-1]
            near = x > WIDTH - 120
            yield element("text", f"saves {part:.0%} of all", x=x - 4 if near else x + 4, y=y + 10,
                          class_="soft end" if near else "soft")  # fmt: skip


# --- parts of a whole -------------------------------------------------------------------------------------------------


def parted(parts: Sequence[tuple[str, str, float, str]], what: str) -> Markup:
    """One bar in parts of (class, name, size, size in words)."""
    total = sum(size for _, _, size, _ in parts)
    x, drawn = 0.0, []
    for style, name, size, words in parts:
        width = HALF * size / total
        title = element("title", f"{name}: {words}")
        drawn.append(element("rect", title, x=x, y=0.0, width=max(1.0, width - 2), height=26.0, class_=style))
        x += width
    names = [_swatch(style, f"{name}: {words}") for style, name, _, words in parts]
    return joined(_svg(28.0, drawn, what, HALF), element("div", names, class_="key"))


def counted(rows: Sequence[tuple[str, str, int]], what: str) -> Markup:
    """Bars of (name, words, count)."""
    most = max(count for _, _, count in rows)
    drawn = [
        element(
            "g",
            element("title", words),
            element("text", name, x=40.0, y=at * 22.0 + 14, class_="end"),
            element("rect", x=50.0, y=at * 22.0 + 3, width=400.0 * count / most, height=14.0, class_="f0"),
            element("text", str(count), x=58 + 400.0 * count / most, y=at * 22.0 + 14),
            element("text", _cut(words, 90), x=500.0, y=at * 22.0 + 14, class_="soft"),
        )
        for at, (name, words, count) in enumerate(rows)
    ]
    return _svg(22.0 * len(rows) + 4, drawn, what)


def _svg(height: float, children: Sequence[Markup], what: str, width: float = WIDTH) -> Markup:
    return element(
        "svg", children, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=what,
        xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _link(one: Ranked, *children: Markup) -> Markup:
    return element("a", *children, href=f"#k{one.rank}")


def _cut(text: str, longest: int = _NAME) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
