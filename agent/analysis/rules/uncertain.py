"""Whether numbers that nobody stated decide where the lanes of a warp go: loaded data, or a kernel's own parameters.

Where the index of an access can be followed, its summands tell that differ between threads. Where it cannot, the names
in it do, and all that those were ever given, under whatever condition.
"""

import re
from collections.abc import Collection, Iterator
from functools import partial

from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, Product
from agent.analysis.facts import Facts
from agent.analysis.rules.traffic import free
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import ancestors, callee, contains, descendants, text

_TO_BYTES = re.compile(r"\b(char|u?int8_t|byte|void)\b[\w\s]*\*")
_SCALING = frozenset(("*", "/", "%", "<<", ">>"))
_SAME = frozenset(("blockIdx", "blockDim", "gridDim", "warpSize"))
_CONDITIONAL = ("if_statement", "while_statement", "for_statement", "do_statement")


def decided_by_data(access: Access, facts: Facts) -> bool:
    """Whether lanes may be spread by what was loaded."""
    index = _followed(access)
    if index is not None:
        return any("memory" in atom.depends for product in _apart(index) for atom in product)
    inside = (other for other in facts.accesses_in(access.node) if other.node != access.node)
    return any(_differs(other) for other in inside) or any(_loaded(part, facts) for part in _given(access.node, facts))


def decided_by_names(access: Access, facts: Facts, known: frozenset[str]) -> bool:
    """Whether one of these parameters multiplies or divides what differs between threads."""
    if not known:
        return False
    index = _followed(access)
    if index is not None:
        return any(name in known for product in _apart(index) for name in free(product))
    parts = (access.node, *_given(access.node, facts))
    scaled = (one for part in parts for one in descendants(part, "binary_expression"))
    return any(_scales(one, known, facts) for one in scaled)


def in_bytes(access: Access, facts: Facts) -> bool:
    """Whether it goes through a pointer to bytes to something wider: a parameter may be the size of an element there,
    which no other number that is tried is."""
    return any(_TO_BYTES.search(text(part)) for part in (access.node, *_given(access.node, facts)))


def _followed(access: Access) -> Poly | None:
    return next(
        (one for one in (access.index, access.spread) if one is not None and "unknown" not in one.depends), None
    )


def _apart(index: Poly) -> list[Product]:
    return [product for product, _ in index.terms if any(not atom.same_for_all for atom in product)]


def _given(node: Node, facts: Facts) -> Iterator[Node]:
    """All that the variables below a node were ever given, and the variables in that."""
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        for symbol in _symbols(waiting.pop(), facts):
            if symbol.space == "local" and symbol.key not in seen:
                seen.add(symbol.key)
                parts = [*symbol.writes, *((symbol.init,) if symbol.init is not None else ())]
                yield from parts
                waiting += parts


def _symbols(node: Node, facts: Facts) -> Iterator[Symbol]:
    for name in descendants(node, "identifier"):
        if (symbol := facts.symbols.resolve(name)) is not None:
            yield symbol


def _loaded(part: Node, facts: Facts) -> bool:
    """Whether something loaded that may differ between threads is in what a variable is given, or in what decides
    whether it is."""
    conditions = (
        condition
        for above in ancestors(part)
        if above.type in _CONDITIONAL and (condition := above.child_by_field_name("condition")) is not None
    )
    return any(
        _reads(one, facts) or any(_reads(other, facts) for other in _given(one, facts)) for one in (part, *conditions)
    )


def _reads(node: Node, facts: Facts) -> bool:
    if any(callee(call).startswith("atomic") for call in descendants(node, "call_expression")):
        return True
    every = (*facts.accesses, *facts.hinted)
    return any(one.reads and contains(node, one.node) and _differs(one) for one in every)


def _differs(read: Access) -> bool:
    """Whether threads of a block may load different elements there."""
    return read.index is None or any(not atom.same_for_all for atom in read.index.atoms)


def _scales(operation: Node, known: frozenset[str], facts: Facts) -> bool:
    """Whether one side of a multiplication or division is made of parameters, and the other may differ between
    threads: by their number, or by a name of which nothing is known."""
    if text(operation.child_by_field_name("operator")) not in _SCALING:
        return False
    sides = [side for name in ("left", "right") if (side := operation.child_by_field_name(name)) is not None]

    def varies(side: Node) -> bool:
        return _holds(side, {"threadIdx"}, facts) or any(_is_unknown(one, facts) for one in _names(side, facts))

    named = partial(_holds, names=known, facts=facts)
    return len(sides) == 2 and any(named(one) and varies(other) for one, other in (sides, sides[::-1]))


def _is_unknown(name: Node, facts: Facts) -> bool:
    """Whether it is a variable that nothing in sight declares, as one of a loop that a macro begins."""
    written = text(name)
    called = name.parent is not None and name.parent.type in (
        "call_expression",
        "template_function",
        "field_expression",
    )
    return not called and not written.isupper() and written not in _SAME and facts.symbols.resolve(name) is None


def _names(node: Node, facts: Facts) -> Iterator[Node]:
    for part in (node, *_given(node, facts)):
        yield from descendants(part, "identifier")


def _holds(node: Node, names: Collection[str], facts: Facts) -> bool:
    """Whether one of these names stands below a node, or in what a variable there was given."""
    return any(text(one) in names for one in _names(node, facts))
