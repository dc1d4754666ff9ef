"""Bringing a step of both operands into shared memory."""

from agent.analysis.affine import number
from agent.analysis.patterns.product_nest import Load
from agent.ideas.product.draft import Draft, Lines, bracketed, defined
from agent.ideas.product.names import key
from agent.ideas.product.shape import Side
from agent.ideas.product.texts import coordinates_at, inside, text_at
from agent.workload.dtypes import from_c_type


def both_staged(draft: Draft) -> Lines:
    """One step of both operands."""
    product, own = draft.product, draft.names
    return [
        *stage(draft, product.rows, own.rows, own.first_row, own.place_row),
        *stage(draft, product.cols, own.cols, own.first_col, own.place_col),
    ]


def stage(draft: Draft, side: Side, extent: str, first: str, place: str) -> Lines:
    """Every thread brings in its share of each operand of one side."""
    lines: Lines = []
    for turns_first in (True, False):
        loads = [load for load in side.loads if along_turns(load, draft) is turns_first]
        if loads:
            lines += _share(draft, side, loads, (extent, first, place), turns_first)
    return lines


def _share(draft: Draft, side: Side, loads: list[Load], words: tuple[str, str, str], turns_first: bool) -> Lines:
    """Neighbouring threads take neighbouring turns (``turns_first``) or neighbouring places. Where threads are a whole
    number of these, each thread keeps to one of them."""
    product, tile, own = draft.product, draft.tile, draft.names
    extent, first, place = words
    wide = tile.rows if side is product.rows else tile.cols
    inner, outer = (tile.step, wide) if turns_first else (wide, tile.step)
    inner_text, outer_text = (own.step, extent) if turns_first else (extent, own.step)
    if tile.threads % inner == 0:
        fixed, moving = f"{own.thread} % {inner_text}", own.at
        loop = walk(draft, outer, outer_text, f"{own.thread} / {inner_text}", tile.threads // inner)
    else:
        fixed, moving = f"{own.at} % {inner_text}", f"{own.at} / {inner_text}"
        loop = walk(draft, inner * outer, f"{inner_text} * {outer_text}", own.thread, tile.threads)
    turn, at = (fixed, moving) if turns_first else (moving, fixed)
    body = _copies(draft, side, loads, turn, at)
    where = coordinates_at(side, product, place, f"{first} + {at}", body)
    step = product.step.variable
    when = [f"const {step.type} {step.name} = {own.first_turn} + {turn};"]
    if tile.threads % inner == 0:
        once, each = (when, where) if turns_first else (where, when)
        if loop[0] == "{":
            return ["{", *once, *loop[1:], *each, *body, "}"]
        return ["{", *once, *loop, *each, *body, *closed(loop), "}"]
    return [*loop, *where, *when, *body, *closed(loop)]


def closed(loop: Lines) -> Lines:
    """The closing braces for those that a head opens."""
    return ["}" for line in loop if line.endswith("{")]


def walk(draft: Draft, count: int, count_text: str, start: str, by: int) -> Lines:
    """The head of a loop over every ``by``-th number from ``start`` on, of ``by`` possible starts: with a fixed number
    of turns, so that it unrolls and its loads are under way together."""
    own = draft.names
    if count == by:
        return ["{", f"const int {own.at} = {start};"]
    return [
        "#pragma unroll",
        f"for (int {own.part} = 0; {own.part} < {count_text}; {own.part} += {by}) {{",
        f"const int {own.at} = {own.part} + {start};",
        *([f"if ({own.at} < {count_text}) {{"] if count % by else []),
    ]


def _copies(draft: Draft, side: Side, loads: list[Load], turn: str, at: str) -> Lines:
    """One element of each operand into its tile; zero where there is none."""
    product, own = draft.product, draft.names
    step = product.step
    nodes = [load.nodes[0] for load in loads]
    tests = [one.condition for one in product.frame.nest.tests] if side.counts else []
    holds = [
        *inside(side, product),
        f"{step.variable.name} {step.relation} {text_at(product, step.bound_node)}",
        *(one.spelled for one in (*side.counts, *product.always)),
    ]
    condition = " && ".join(bracketed(one) for one in holds)
    copies = []
    for load in loads:
        place = f"[{at}][{turn}]" if key(load) in draft.upright else f"[{turn}][{at}]"
        element = draft.brought.format(text_at(product, load.nodes[0]))
        copies.append(f"{own.tiles[key(load)]}{place} = {condition} ? {element} : {_zero(load.access.element)};")
    return [*defined(draft, [*nodes, *tests], {}), *copies]


def _zero(element: str) -> str:
    known = {"float": "0.0f", "double": "0.0", "int": "0"}
    dtype = from_c_type(element)
    if dtype in ("f16", "bf16"):  # their constructors may be switched off
        return "__float2half(0.0f)" if dtype == "f16" else "__float2bfloat16(0.0f)"
    return known.get(element, f"{element}(0)" if " " not in element else "0u")


def along_turns(load: Load, draft: Draft) -> bool:
    """Whether neighbouring turns read neighbouring elements, and neighbouring places do not. A place that has to be
    split into coordinates is better kept by each thread."""
    index = load.access.index
    assert index is not None
    along = index.coefficient(draft.product.step.atom.name)
    sides = (draft.product.rows, draft.product.cols)
    side = next(one for one in sides if load in one.loads)
    across = index.coefficient(side.digits[-1].atom)
    return along == number(1) and across != number(1) and len(side.digits) == 1
