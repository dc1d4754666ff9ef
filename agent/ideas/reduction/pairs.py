"""Trees of a value and its place (argmax, argmin) by shuffles."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.pair_tree import PairTree, pair_trees
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, bare, expression_of, is_barrier, previous_statement, text
from agent.ideas.reduction.site import SHUFFLED, block_fits, participation
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_name, indented, replace_between, source_text
from agent.ideas.view import View


@frozen(eq=False)
class PairSite:
    """``tree`` with the stores before it: ``stored`` maps each array to what each thread puts into it. ``first`` is the
    first of the replaced statements, which end with the tree."""

    tree: PairTree
    stored: tuple[tuple[Symbol, Node], ...]
    first: Node

    def given(self, array: Symbol) -> Node:
        return next(node for symbol, node in self.stored if symbol is array)


def pair_site(view: View) -> PairSite | str:
    found = pair_trees(view.facts)
    if not found:
        return "it has no tree that carries a value and its place along"
    if len(found) > 1:
        return "it has several such trees"
    tree = found[0]
    if isinstance(tree, str):
        return tree
    reason = block_fits(tree.width, tree.thread, view) or participation(tree.statement, view.facts)
    if reason is None and view.block[1:] != (1, 1):
        reason = "the block has more than one dimension"
    if reason is not None:
        return reason
    for array in tree.arrays:
        if array.type not in SHUFFLED:
            return f"a warp cannot shuffle values of type {array.type}"
    if any(parent.type in LOOPS for parent in ancestors(tree.statement)):
        return "the tree stands in a loop"
    return _with_stores(tree, view)


def _with_stores(tree: PairTree, view: View) -> PairSite | str:
    unclear = "the tree's values are not stored right before it, each thread its own"
    before = previous_statement(tree.statement)
    if before is None or not is_barrier(before):
        return unclear
    stored: list[tuple[Symbol, Node]] = []
    first = before
    while len(stored) < len(tree.arrays):
        before = previous_statement(first)
        assigned = None if before is None else expression_of(before)
        if before is None or assigned is None or assigned.type != "assignment_expression":
            return unclear
        target = next(
            (one for one in view.facts.accesses if one.node == bare(assigned.child_by_field_name("left"))), None
        )
        right = assigned.child_by_field_name("right")
        own = target is not None and target.root in tree.arrays and target.index == tree.thread
        if (
            target is None
            or target.root is None
            or not own
            or right is None
            or any(target.root is one for one, _ in stored)
        ):
            return unclear
        stored.append((target.root, right))
        first = before
    for access in view.facts.accesses:
        if access.root not in tree.arrays or first.start_byte <= access.node.start_byte < tree.statement.end_byte:
            continue
        if access.node.start_byte < first.start_byte:
            return f"`{text(access.node)}` is used before the tree's values are stored"
        if access.writes or access.index is None or access.index.constant != 0:
            return f"`{text(access.node)}` is used after the tree, which then holds a partial value"
    return PairSite(tree, tuple(stored), first)


def by_shuffles(view: View, found: PairSite) -> Rewrite:
    tree = found.tree
    name = fresh_name(styled(f"block_arg{'max' if tree.greater else 'min'}", view), view.document)
    value, place = (source_text(view.document, found.given(array)) for array in tree.arrays)
    call = f"{name}({value}, {place}, {tree.value.name}, {tree.place.name});"
    edit = replace_between(found.first, tree.statement, indented(view.document, found.first, call))
    return Rewrite((edit,), (_helper(tree, name),))


def _helper(tree: PairTree, name: str) -> str:
    value, place = tree.value.type, tree.place.type
    better = f"other {'>' if tree.greater else '<'} value"
    tie = f"other == value && other_place {'>' if tree.later else '<'} place"
    step = f"""\
const {value} other = __shfl_down_sync(0xffffffffu, value, offset);
const {place} other_place = __shfl_down_sync(0xffffffffu, place, offset);
if ({better} || ({tie})) {{
    value = other;
    place = other_place;
}}"""
    warps = tree.width // 32
    what = f"{'greatest' if tree.greater else 'least'} value and its place"
    which = "highest" if tree.later else "lowest"
    return f"""\
// Leaves the block's {what} (the {which} of equals) in values[0] and places[0], visible to every
// thread: by shuffles within each warp, then across the warps in the first one. The block is a whole number of warps.
__device__ __forceinline__ void {name}({value} value, {place} place, {value}* values, {place}* places) {{
    const unsigned lane = threadIdx.x % 32;
    for (int offset = 16; offset > 0; offset /= 2) {{
        {step.replace(chr(10), chr(10) + " " * 8)}
    }}
    if (lane == 0) {{
        values[threadIdx.x / 32] = value;
        places[threadIdx.x / 32] = place;
    }}
    __syncthreads();
    if (threadIdx.x < 32) {{
        value = values[lane < {warps} ? lane : 0];
        place = places[lane < {warps} ? lane : 0];
        for (int offset = 16; offset > 0; offset /= 2) {{
            {step.replace(chr(10), chr(10) + " " * 12)}
        }}
        __syncwarp();
        if (lane == 0) {{
            values[0] = value;
            places[0] = place;
        }}
    }}
    __syncthreads();
}}
"""
