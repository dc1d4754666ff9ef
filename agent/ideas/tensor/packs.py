"""Staging 16 bytes at a time, where a whole step of both operands is there and aligned; else element by element."""

from attrs import frozen

from agent.analysis.affine import number
from agent.analysis.patterns.product_nest import Load
from agent.ideas.product.draft import Draft, Lines, bracketed, defined
from agent.ideas.product.names import key
from agent.ideas.product.shape import Side
from agent.ideas.product.spelling import spelled
from agent.ideas.product.stage import both_staged, closed, walk
from agent.ideas.product.texts import text_at
from agent.ideas.tensor.site import Site

BYTES = 16


@frozen(eq=False)
class _Packs:
    """Of one operand: ``tests`` say that a step of it comes in packs, given the ``start`` of a thread; ``copies`` bring
    it in."""

    start: Lines
    tests: tuple[str, ...]
    copies: Lines


def staged(draft: Draft, site: Site, pack: str, packs: str, four: str) -> Lines:
    """One step of both operands. The others are new names: for a pack's place, for whether a step comes in packs, and
    for four floats."""
    product, own = draft.product, draft.names
    rows = _packs(draft, site, product.rows, site.rows, (own.rows, own.first_row, own.place_row, pack, four))
    cols = _packs(draft, site, product.cols, site.cols, (own.cols, own.first_col, own.place_col, pack, four))
    plain = both_staged(draft)
    if rows is None or cols is None:
        return plain
    step = product.step
    whole = f"{own.first_turn} + {own.step} - 1 {step.relation} {text_at(product, step.bound_node)}"
    always = (bracketed(one.spelled) for one in product.always)
    return [
        f"bool {packs} = {' && '.join((whole, *always))};  // whether {BYTES} bytes can be brought in at a time",
        *_asked(rows, packs),
        *_asked(cols, packs),
        f"if ({packs}) {{",
        *rows.copies,
        *cols.copies,
        "} else {",
        *plain,
        "}",
    ]


def _asked(one: _Packs, packs: str) -> Lines:
    return [f"if ({packs}) {{", *one.start, f"{packs} = {' && '.join(one.tests)};", "}"]


def _packs(draft: Draft, site: Site, side: Side, load: Load, words: tuple[str, str, str, str, str]) -> _Packs | None:
    """None where neighbouring elements are not neighbours in memory, or need more than their two indices."""
    product, tile, own = draft.product, draft.tile, draft.names
    extent, first, place, pack, four = words
    index, digit, step = load.access.index, side.digits[-1], product.step
    if index is None or len(side.digits) != 1 or side.tests or side.counts or defined(draft, [load.nodes[0]], {}):
        return None
    upright = key(load) in draft.upright
    along, across = index.coefficient(step.atom.name), index.coefficient(digit.atom)
    fast, slow = (along, across) if upright else (across, along)
    stride = None if slow is None else spelled(slow, product.facts)
    bound = product.extents[digit].text
    if fast != number(1) or stride is None or bound is None:
        return None
    size = BYTES // (4 if site.kind.dtype == "f32" else 2)
    wide = tile.rows if side is product.rows else tile.cols
    fast_text, slow_text, slow_count = (own.step, extent, wide) if upright else (extent, own.step, tile.step)
    each = (tile.step if upright else wide) // size
    mine, packed = f"{own.thread} / ({fast_text} / {size})", f"{own.thread} % ({fast_text} / {size}) * {size}"
    kind = "int" if digit.symbol.type == "auto" else digit.symbol.type

    def indices(at: str) -> Lines:
        turn, where = (pack, at) if upright else (at, pack)
        return [
            f"const int {pack} = {packed};",
            f"const {step.variable.type} {step.variable.name} = {own.first_turn} + {turn};",
            f"const {kind} {place} = {first} + {where};",
        ]

    element = text_at(product, load.nodes[0])
    target = f"{own.tiles[key(load)]}[{own.at}][{pack}]"
    loop = walk(draft, slow_count, slow_text, mine, tile.threads // each)
    return _Packs(
        indices(mine),
        (
            f"{first} + {extent} <= {bound}",
            f"{stride if stride.isidentifier() else f'({stride})'} % {size} == 0",
            f"reinterpret_cast<size_t>(&{element}) % {BYTES} == 0",
        ),
        [*loop, *indices(own.at), *_copy(draft, site, target, element, four), *closed(loop)],
    )


def _copy(draft: Draft, site: Site, target: str, element: str, four: str) -> Lines:
    if site.kind.dtype != "f32":
        return [f"*reinterpret_cast<int4*>(&{target}) = *reinterpret_cast<const int4*>(&{element});"]
    parts = ", ".join(draft.brought.format(f"{four}.{axis}") for axis in "xyzw")
    return [
        f"const float4 {four} = *reinterpret_cast<const float4*>(&{element});",
        f"*reinterpret_cast<float4*>(&{target}) = make_float4({parts});",
    ]
