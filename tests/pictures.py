"""Bars in parts, as SVG: where time goes."""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, LABEL, ROW, TOP = 960, 190, 22, 56
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#bab0ac", "#d37295")


def bars(title: str, rows: Sequence[tuple[str, Mapping[str, float]]], unit: str) -> str:
    """One bar a row, its parts side by side in the order in which they first come; a legend above. Parts too short to
    be seen are drawn all the same, so that bars have their right length."""
    parts = list(dict.fromkeys(name for _, row in rows for name in row))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(parts)}
    longest = max((sum(row.values()) for _, row in rows), default=0.0) or 1.0
    scale = (WIDTH - LABEL - 80) / longest
    height = TOP + ROW * len(rows) + 12
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="18" font-size="14">{escape(title)}</text>',
    ]
    at = 8.0
    for name in parts:
        drawn.append(f'<rect x="{at:.1f}" y="30" width="10" height="10" fill="{colour[name]}"/>')
        drawn.append(f'<text x="{at + 14:.1f}" y="39">{escape(name)}</text>')
        at += 26 + 6.6 * len(name)
    for number, (label, row) in enumerate(rows):
        drawn += _row(TOP + ROW * number, label, row, colour, scale, unit)
    return "\n".join([*drawn, "</svg>", ""])


def _row(
    top: float, label: str, row: Mapping[str, float], colour: Mapping[str, str], scale: float, unit: str
) -> list[str]:
    drawn = [f'<text x="{LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(label)}</text>']
    at = float(LABEL)
    for name, value in row.items():
        wide = value * scale
        drawn.append(
            f'<rect x="{at:.1f}" y="{top + 3}" width="{wide:.1f}" height="{ROW - 6}" fill="{colour[name]}">'
            f"<title>{escape(name)}: {value:.2f} {escape(unit)}</title></rect>"
        )
        at += wide
    drawn.append(f'<text x="{at + 6:.1f}" y="{top + 14}">{sum(row.values()):.1f} {escape(unit)}</text>')
    return drawn
