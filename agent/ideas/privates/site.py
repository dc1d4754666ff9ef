"""A small local array whose elements the lanes of a warp want at different places at once."""

from math import prod

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import subscripts_of
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import descendants, text
from agent.analysis.values import is_uniform, value
from agent.ideas.rowkeep.room import static_shared
from agent.ideas.tables.uses import is_element, subscripts
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type, size_of

BANK = 4
FEWEST, MOST_EACH, MOST_SHARED = 4, 128, 48 * 1024
"""Elements below which selections do; bytes of shared memory a thread, which leave an SM of sm_90 1792 threads; bytes a
block."""


@frozen(eq=False)
class Private:
    """``declared`` declares ``array``, of ``elements``; ``uses`` are its elements wherever they are touched, of which
    the lanes of a warp want different ones at ``apart``. ``spread``: elements from one thread's to the next's, so that
    each has a bank of its own."""

    array: Symbol
    declared: Node
    uses: tuple[Node, ...]
    apart: Node
    elements: int
    spread: int
    bytes: int


def private_array(view: View) -> Private | str:
    """The array that gains most, or why there is none."""
    if view.threads is None:
        return "the block's extents are not fixed numbers"
    found, reasons = [], []
    for symbol in view.facts.symbols.all():
        if symbol.space != "local" or not symbol.dims or symbol.pointer:
            continue
        one = _private(view, symbol, view.threads)
        if isinstance(one, str):
            reasons.append(one)
        else:
            found.append(one)
    if found:
        return max(found, key=lambda one: len(one.uses))
    return reasons[0] if reasons else "no thread has an array of its own"


def _private(view: View, array: Symbol, threads: int) -> Private | str:
    declared = array.declarator
    while declared.type != "declaration" and declared.parent is not None:
        declared = declared.parent
    if len(declared.children_by_field_name("declarator")) != 1 or array.init is not None or array.extern:
        return f"{array.name} is declared with others, or with its contents"
    if {text(child) for child in declared.children} & {"static", "const", "volatile", "register"}:
        return f"{array.name} is declared in another way than as a plain array"
    names = [
        one
        for one in descendants(view.facts.body, "identifier")
        if one != array.declarator and view.facts.symbols.resolve(one) is array
    ]
    if not all(is_element(one, array) for one in names) or array.escapes:
        return f"{array.name} is used by more than subscripts"
    uses = tuple(subscripts(one)[-1] for one in names)
    apart = next((use for use in uses if _differs(use, view)), None)
    if apart is None:
        return f"all lanes of a warp touch the same element of {array.name} at a time"
    dtype = from_c_type(array.type)
    extents = [value(dim, view.facts.scope).constant for dim in array.dims]
    known = [extent for extent in extents if extent is not None]
    if dtype is None or len(known) < len(extents) or size_of(dtype) not in (1, 2, 4, 8):
        return f"{array.name} is no array of so many elements of 1, 2, 4 or 8 bytes"
    elements, each = prod(known), max(BANK, size_of(dtype))
    if elements < FEWEST:
        return f"{array.name} is so small that the compiler can do without memory"
    size = elements * each * threads
    if elements * each > MOST_EACH or size + static_shared(view.facts) > MOST_SHARED:
        return f"{array.name} takes {elements * each} bytes of each of {threads} threads, too much for shared memory"
    return Private(array, declared, uses, apart, elements, each // size_of(dtype), size)


def _differs(use: Node, view: View) -> bool:
    """Whether lanes may want different elements. A loop's variable, all by itself, runs alike in all of them that are
    in the loop: where the compiler unrolls it, the elements are registers."""
    steady = {loop.atom for loop in view.facts.loops if "threadIdx.x" not in loop.start.depends}
    scope = view.facts.scope
    return any(not is_uniform(index, scope) and not value(index, scope).atoms <= steady for index in subscripts_of(use))
