"""The exchange in one dimension: a flat index that is split into two by ``/`` and ``%`` is split the other way
round."""

from collections.abc import Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Poly
from agent.analysis.coalescing import block_lanes
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, descendants, text
from agent.analysis.values import value
from agent.ideas.exchange.cost import Balance, balance, lanes
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant
from agent.ideas.rewriting import Rewrite, replace, source_text
from agent.ideas.view import View


@frozen(eq=False)
class Split:
    """``quotient`` is the node ``flat / extent``, ``remainder`` the node ``flat % extent``, both of the same two
    operands."""

    flat: Node
    extent: Node
    quotient: Node
    remainder: Node


def flat_exchange(view: View) -> Match | Refusal:
    from agent.ideas.exchange.plane import obstacles

    split = _split(view)
    if split is None:
        return Refusal(_why_not(view))
    obstacle = obstacles(view)
    if obstacle is not None:
        return Refusal(obstacle)
    other = _other_extent(view, split)
    if other is None:
        spelled = source_text(view.document, split.flat)
        return Refusal(
            f"no guard shows that {spelled} stays below the product of two extents, so the split cannot be turned round"
        )
    threads = view.threads
    if threads is None:
        return Refusal("the block's extents are not fixed numbers, so a warp's shape is not known")
    counted = _counted(view, split, other, threads)
    if isinstance(counted, str):
        return Refusal(counted)
    reason = counted.verdict(view)
    return Refusal(reason) if reason is not None else _match(view, split, other, counted)


def _split(view: View) -> Split | None:
    """The only division and the only remainder that the kernel takes of an index that runs with the threads."""
    found: dict[str, list[Node]] = {"/": [], "%": []}
    for node in descendants(view.facts.body, "binary_expression"):
        operator = text(node.child_by_field_name("operator"))
        if operator in found and _runs_with_threads(view, node.child_by_field_name("left")):
            found[operator].append(node)
    if len(found["/"]) != 1 or len(found["%"]) != 1:
        return None
    quotient, remainder = found["/"][0], found["%"][0]
    flat, extent = bare(quotient.child_by_field_name("left")), quotient.child_by_field_name("right")
    same_flat = _value(view, flat) == _value(view, remainder.child_by_field_name("left"))
    if flat is None or extent is None or flat.type != "identifier" or not same_flat:
        return None
    if _value(view, extent) != _value(view, remainder.child_by_field_name("right")):
        return None
    return Split(flat, extent, quotient, remainder) if _only_split(view, flat, quotient, remainder) else None


def _only_split(view: View, flat: Node, quotient: Node, remainder: Node) -> bool:
    """Whether the flat index is used for nothing but the split and the guard or loop that bounds it, and the thread
    index for nothing but the flat index."""
    symbol = view.facts.symbols.resolve(flat)
    if symbol is None:
        return False
    for node in descendants(view.facts.body, "identifier"):
        if view.facts.symbols.resolve(node) is symbol and not _allowed_use(node, symbol, quotient, remainder):
            return False
    starts = [symbol.init, *symbol.writes]
    inside = [node for node in descendants(view.facts.body, "field_expression") if text(node).startswith("threadIdx.")]
    return all(any(start is not None and _within(start, node) for start in starts) for node in inside)


def _allowed_use(node: Node, symbol: Symbol, quotient: Node, remainder: Node) -> bool:
    if node == symbol.declarator or any(_within(part, node) for part in (quotient, remainder, *symbol.writes)):
        return True
    parent = node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "binary_expression"):
        if parent.type == "binary_expression" and text(parent.child_by_field_name("operator")) in (
            "<",
            ">=",
            ">",
            "<=",
        ):
            return True
        parent = parent.parent
    return False


def _other_extent(view: View, split: Split) -> Node | None:
    """``E`` where a guard or a loop keeps the flat index below ``extent * E``."""
    for test in _guards(view, split):
        left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
        operator = text(test.child_by_field_name("operator"))
        if operator not in ("<", ">=") or left is None or _value(view, left) != _value(view, split.flat):
            continue
        product = _through(view, right)
        if (
            product is None
            or product.type != "binary_expression"
            or text(product.child_by_field_name("operator")) != "*"
        ):
            continue
        one, two = bare(product.child_by_field_name("left")), bare(product.child_by_field_name("right"))
        for first, second in ((one, two), (two, one)):
            if _value(view, first) == _value(view, split.extent) and second is not None and second.type == "identifier":
                return second
    return None


def _guards(view: View, split: Split) -> list[Node]:
    """The tests that hold wherever the split is: ``if (i >= n) return;`` before it, ``if (i < n)`` or a loop around
    it."""
    found: list[Node] = []
    for node in descendants(view.facts.body, "if_statement", "for_statement", "while_statement"):
        test = bare(node.child_by_field_name("condition"))
        if test is None or test.type != "binary_expression":
            continue
        operator = text(test.child_by_field_name("operator"))
        around = _within(node, split.quotient) and _within(node, split.remainder)
        if around and operator == "<":
            found.append(test)
        if (
            node.type == "if_statement"
            and not around
            and node.end_byte <= split.quotient.start_byte
            and operator == ">="
        ):
            body = node.child_by_field_name("consequence")
            leaves = [] if body is None else list(descendants(body, "return_statement", "continue_statement"))
            if len(leaves) == 1 and node.parent == view.facts.body and node.child_by_field_name("alternative") is None:
                found.append(test)
    return found


def _counted(view: View, split: Split, other: Node, threads: int) -> Balance | str:
    """The cost with ``flat / extent, flat % extent`` and with the two exchanged, lane by lane."""
    flat, extent, second = _value(view, split.flat), _value(view, split.extent), _value(view, other)
    quotient, remainder = _value(view, split.quotient), _value(view, split.remainder)
    names = [next(iter(poly.atoms)).name for poly in (quotient, remainder) if len(poly.atoms) == 1]
    if len(names) != 2:
        return "the split of the flat index cannot be followed"
    x, y, z = view.block
    assert x is not None and y is not None and z is not None
    before, after = [], []
    for lane in lanes(view, block_lanes((x, y, z))):
        index = flat.evaluate(lane)
        old, new = extent.evaluate(lane), second.evaluate(lane)
        if index is None or not old or not new:
            return "the extents have no value at the declared sizes"
        before.append(_with(lane, names, index // old, index % old))
        after.append(_with(lane, names, index % new, index // new))
    return balance(view, before, after)


def _with(lane: Mapping[str, int], names: list[str], quotient: int, remainder: int) -> Mapping[str, int]:
    return {**lane, names[0]: quotient, names[1]: remainder}


def _match(view: View, split: Split, other: Node, counted: Balance) -> Match:
    document = view.document
    flat, extent = source_text(document, split.flat), source_text(document, other)
    best = counted.best()

    def write() -> Rewrite:
        return Rewrite((replace(split.quotient, f"{flat} % {extent}"), replace(split.remainder, f"{flat} / {extent}")))

    return Match(
        line=document.line(split.quotient.start_byte),
        title=f"split {flat} by {extent}, so that neighbouring threads take neighbouring elements",
        why=(
            f"`{source_text(document, best.access.node)}` takes {best.before} sectors per request of a warp, "
            f"and {best.after} when the two parts of {flat} change places; both splits visit the same pairs once"
        ),
        expects=(Expectation("sectors", round(counted.factor, 2), f"sectors -{round(100 * (1 - counted.factor))} %"),),
        variants=(Variant("other split", f"{flat} runs along {extent} first", Scope.DROP_IN, write),),
    )


def _why_not(view: View) -> str:
    """For a kernel with one thread index and no split: what its threads stride over, if they do."""
    if view.threads is None:
        return "it uses one thread index only, and the block's extents are not fixed numbers"
    x, y, z = view.block
    assert x is not None and y is not None and z is not None
    here = lanes(view, block_lanes((x, y, z)))
    counted = balance(view, here, here)
    if isinstance(counted, str):
        return f"it uses one thread index only, and {counted}"
    wasteful = [one for one in counted.moved if one.access.space == "global" and one.before > 16]
    if not wasteful:
        return "it uses one thread index only, and its accesses already run along memory"
    spelled = source_text(view.document, max(wasteful, key=lambda one: one.weight).access.node)
    return (
        f"`{spelled}` strides from thread to thread, but each thread owns a whole row and there is no second thread "
        "index to exchange with: that takes another division of the work (a block or warp per row, or a tile in "
        "shared memory)"
    )


def _runs_with_threads(view: View, node: Node | None) -> bool:
    depends = _value(view, node).depends
    return any(source.startswith("threadIdx") for source in depends)


def _value(view: View, node: Node | None) -> Poly:
    return value(node, view.facts.scope)


def _through(view: View, node: Node | None) -> Node | None:
    """A product behind casts and a local that is set once."""
    node = bare(node)
    if node is not None and node.type == "identifier":
        symbol = view.facts.symbols.resolve(node)
        if symbol is not None and symbol.fixed and symbol.init is not None:
            return bare(symbol.init)
    return node


def _within(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
