"""Whether a launch writes each of the first n elements of a buffer exactly once, shown by its index's mixed radix."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.guards import exits_before, guards
from agent.analysis.patterns.lane_bounds import parts
from agent.analysis.syntax import contains, text
from agent.analysis.values import difference
from agent.ideas.terms import in_plan_names
from agent.ideas.view import AXES, View
from agent.workload.expression import Expression, build
from agent.workload.plan import Launch


@frozen(eq=False)
class _Digit:
    """A number from 0 up to ``bound`` (exclusive), multiplied with ``stride``; both over the plan's names."""

    place: Poly
    stride: Poly
    bound: Poly


def written(access: Access, launch: Launch, view: View) -> Poly | str:
    """How many elements from 0 on a launch writes by ``access``, each once and no other; or why that is not shown."""
    unclear = f"nothing shows that `{text(access.node)}` writes each element once"
    if access.index is None:
        return unclear
    digits = _digits(_joined(access.index), launch, view)
    if digits is None:
        return unclear
    bounded = _bounded(digits, access, launch, view)
    if isinstance(bounded, str):
        return bounded
    total, left = number(1), list(bounded)
    while left:
        digit = next((one for one in left if one.stride == total), None)
        if digit is None:
            return unclear
        total = total * digit.bound
        left.remove(digit)
    return total


def _joined(index: Poly) -> Poly:
    """``a / n * (n * m) + a % n * m`` as ``a * m``."""
    for atom in index.atoms:
        if atom.formula is None or atom.formula[0] != "%":
            continue
        whole, by = atom.formula[1]
        stride = _factor(index, atom)
        quotient = next(
            (a for a in index.atoms if a.formula is not None and a.formula[0] == "/" and a.formula[1] == (whole, by)),
            None,
        )
        if quotient is not None and _factor(index, quotient) == by * stride:
            rest = index - unknown(atom) * stride - unknown(quotient) * by * stride
            return _joined(rest + whole * stride)
    return index


def _factor(poly: Poly, atom: Atom) -> Poly:
    """What an unknown is multiplied with, where it is a factor once."""
    total = number(0)
    for product, factor in poly.terms:
        if product.count(atom) == 1:
            term = number(factor)
            for other in product:
                term = term if other == atom else term * unknown(other)
            total = total + term
    return total


def _digits(index: Poly, launch: Launch, view: View) -> list[_Digit] | None:
    """The index taken apart: threads along an axis, then whole blocks; nothing may be left."""
    found: list[_Digit] = []
    for axis in AXES:
        thread = next((atom for atom in index.atoms if atom.name == f"threadIdx.{axis}"), None)
        extent = view.facts.scope.known.get(f"blockDim.{axis}")
        if thread is None:
            continue
        stride = _factor(index, thread)
        for block in AXES if extent is not None else ():
            assert extent is not None
            start = next((atom for atom in index.atoms if atom.name == f"blockIdx.{block}"), None)
            if start is not None and _factor(index, start) == number(extent) * stride:
                place = number(extent) * unknown(start) + unknown(thread)
                index = index - place * stride
                bound = build("*", [launch.grid[AXES.index(block)], launch.block[AXES.index(axis)]])
                found.append(_Digit(place, stride, polynomial(bound)))
                break
    for axis in AXES:
        block_atom = next((atom for atom in index.atoms if atom.name == f"blockIdx.{axis}"), None)
        if block_atom is not None:
            stride = _factor(index, block_atom)
            index = index - unknown(block_atom) * stride
            found.append(_Digit(unknown(block_atom), stride, polynomial(launch.grid[AXES.index(axis)])))
    strides = [_in_plan(digit.stride, launch, view) for digit in found]
    if index.terms or not found or None in strides:
        return None
    used = [atom.name for digit in found for atom in digit.place.atoms]
    if len(used) != len(set(used)) or not _whole_grid(used, launch, view):
        return None
    return [_Digit(d.place, s, d.bound) for d, s in zip(found, strides, strict=True) if s is not None]


def _whole_grid(used: list[str], launch: Launch, view: View) -> bool:
    """Whether axes that the index leaves out have one thread or block only."""
    blocks = all(f"blockIdx.{a}" in used or g.constant == 1 for a, g in zip(AXES, launch.grid, strict=True))
    return blocks and all(f"threadIdx.{a}" in used or e == 1 for a, e in zip(AXES, view.block, strict=True))


def _bounded(digits: list[_Digit], access: Access, launch: Launch, view: View) -> list[_Digit] | str:
    """The digits with the bounds that the conditions before the write set; no condition may say anything else."""
    facts = view.facts
    tests = tuple(guards(access.node, facts.body))
    for leave, _ in exits_before(access.node, facts.body):
        if not any(test.kind == "exit" and contains(test.node, leave) for test in tests):
            return f"some threads may leave at line {facts.document.line(leave.start_byte)}, before they write"
    found = list(digits)
    for test in tests:
        for condition, holds in parts(test.condition, test.taken):
            bound = None if test.kind in ("loop", "switch") else _upper(condition, holds, digits, launch, view)
            if bound is None:
                return f"`{text(access.node)}` is written under `{text(condition)}`"
            at, limit = bound
            found[at] = _Digit(found[at].place, found[at].stride, limit)
    return found


def _upper(condition: Node, holds: bool, digits: list[_Digit], launch: Launch, view: View) -> tuple[int, Poly] | None:
    """(digit, bound) of ``digit < bound`` where there are at least as many threads along it."""
    operator = text(condition.child_by_field_name("operator"))
    if (operator, holds) not in (("<", True), (">=", False), (">", True), ("<=", False)):
        return None
    rest = difference(condition, view.facts.scope)
    below = -rest if operator in ("<", ">=") else rest
    for at, digit in enumerate(digits):
        limit = _in_plan(below + digit.place, launch, view)
        if limit is not None and _enough(digit, limit, launch):
            return at, limit
    return None


def _enough(digit: _Digit, limit: Poly, launch: Launch) -> bool:
    """Whether the grid has a thread for every number below the bound: ``(n + 15) / 16`` blocks of 16."""
    if digit.bound == limit:
        return True
    return any(
        covers(grid, block, limit)
        for atom in digit.place.atoms
        if atom.name.startswith("blockIdx.")
        for grid in (launch.grid[AXES.index(atom.name[-1])],)
        for block in launch.block
    )


def covers(grid: Expression, block: Expression, count: Poly) -> bool:
    """Whether ``grid`` blocks of ``block`` threads are at least ``count`` at every size: a division rounded up."""
    grid = grid.simplify()
    if polynomial(build("*", [grid, block])) == count:
        return True
    if grid.op != "/" or grid.operands[1] != block or not isinstance(block.constant, int):
        return False
    more = (polynomial(grid.operands[0]) - count).constant
    return more is not None and more >= block.constant - 1


def _in_plan(poly: Poly, launch: Launch, view: View) -> Poly | None:
    expression = in_plan_names(poly, launch, view)
    return None if expression is None else polynomial(expression)


def polynomial(expression: Expression) -> Poly:
    """An expression over the plan's names; a part that is no sum or product is an unknown spelled like it."""
    op, parts_ = expression.op, expression.operands
    if op == "number" and isinstance(expression.value, int):
        return number(expression.value)
    if op == "neg":
        return -polynomial(parts_[0])
    if op in ("+", "-", "*") and len(parts_) == 2:
        left, right = polynomial(parts_[0]), polynomial(parts_[1])
        return left + right if op == "+" else left - right if op == "-" else left * right
    return unknown(Atom(str(expression.simplify())))
