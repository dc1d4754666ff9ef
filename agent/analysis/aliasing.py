"""Which loads a compiler must repeat, because a store between may have changed what they read.

CUDA's compilers do not tell pointers apart by their types: two pointers that a kernel takes may point at the same
element unless one of them is ``__restrict__``.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly
from agent.analysis.facts import Facts
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, contains, text

_OWN_PLACE = re.compile(r"(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]")
_BRANCHES = ("if_statement", "switch_statement", "conditional_expression", "lambda_expression", *LOOPS)


def may_meet(one: Access, other: Access) -> bool:
    """Whether a compiler must assume that two accesses through different pointers touch the same element."""
    first, second = one.root, other.root
    if first is None or second is None or first is second or first.restrict or second.restrict:
        return False
    return one.space == other.space == "global"


def only_read(symbol: Symbol, facts: Facts) -> bool:
    """Whether the kernel reads through a pointer, and neither writes through it nor gives it away or moves it."""
    if symbol.space != "parameter" or symbol.pointer != 1 or not symbol.fixed or _is_volatile(symbol, facts):
        return False
    through = [access for access in facts.accesses if access.root is symbol]
    hinted = any(access.writes and access.root is symbol for access in facts.hinted)
    return bool(through) and not hinted and not any(access.writes or access.atomic for access in through)


def _is_volatile(symbol: Symbol, facts: Facts) -> bool:
    return any(one.name == symbol.name and "volatile" in one.type for one in facts.kernel.parameters)


def stores_in(facts: Facts, node: Node) -> tuple[Access, ...]:
    return tuple(access for access in facts.accesses_in(node) if access.writes)


def same_each_turn(index: Poly, loop: Loop, facts: Facts) -> bool:
    """Whether an index has one value in all turns of a loop, and each part of it is known to keep its value."""
    around = {outer.atom for outer in facts.loops_around(loop.node)}
    return all(_keeps(atom, around, facts) for atom in index.atoms)


def _keeps(atom: Atom, outer: set[Atom], facts: Facts) -> bool:
    if atom in outer or _OWN_PLACE.fullmatch(atom.name):
        return True
    if atom.formula is not None:
        return all(_keeps(inner, outer, facts) for part in atom.formula[1] for inner in part.atoms)
    return any(parameter.name == atom.name for parameter in facts.kernel.parameters) and not atom.depends


def innermost_loop(node: Node, facts: Facts) -> Loop | None:
    """The innermost loop statement around a node, where it has a canonical form."""
    around = next((above for above in ancestors(node) if above.type in LOOPS), None)
    found = None if around is None else facts.loop(around)
    return found if found is not None and contains(found.body, node) else None


def unconditional(node: Node, within: Node) -> bool:
    """Whether a node runs each time that ``within`` does, jumps apart."""
    for above in ancestors(node):
        if above == within:
            return True
        if above.type in _BRANCHES:
            return False
        if above.type == "binary_expression" and text(above.child_by_field_name("operator")) in ("&&", "||"):
            left = above.child_by_field_name("left")
            if left is None or not contains(left, node):
                return False
    return False


def straight_pairs(facts: Facts, symbol: Symbol) -> Iterator[tuple[Access, Access]]:
    """Pairs of reads of the same element through a pointer, the first of which is always made before the second: it
    runs whenever the block of statements does that holds both."""
    reads = [access for access in facts.accesses if access.root is symbol and access.index is not None]
    last: dict[tuple[Poly, tuple[str, ...]], Access] = {}
    for access in reads:
        index = access.index
        assert index is not None
        part = (index, _fields(access.node))
        before = last.get(part)
        if before is not None and _leads(before.node, access.node):
            yield before, access
        last[part] = access


def _fields(node: Node) -> tuple[str, ...]:
    """Which part of an element is meant: ``x`` of ``v[i].x``, ``x`` and ``1`` of ``v[i].x[1]``."""
    found, below = [], node
    for parent in ancestors(node):
        if parent.type == "field_expression":
            found.append(text(parent.child_by_field_name("field")))
        elif parent.type == "subscript_expression" and parent.child_by_field_name("argument") == below:
            listing = text(parent.child_by_field_name("indices")).strip("[ ]")
            # what is no number may be another one each time
            found.append(listing if listing.isdecimal() else f"{listing}@{parent.start_byte}")
        elif parent.type != "parenthesized_expression":
            break
        below = parent
    return tuple(found)


def _leads(first: Node, second: Node) -> bool:
    block = next((above for above in ancestors(first) if above.type == "compound_statement"), None)
    return (
        block is not None
        and contains(block, second)
        and first.end_byte <= second.start_byte
        and unconditional(first, block)
    )
