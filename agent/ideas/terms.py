"""What a kernel's values are in the names of the plan that launches it; which of its pointers may be one buffer."""

from collections.abc import Mapping

from agent.analysis.affine import Atom, Poly
from agent.analysis.symbols import Symbol
from agent.ideas.buffers import may_be_one
from agent.ideas.view import AXES, View
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch


def in_plan_names(poly: Poly, launch: Launch, view: View) -> Expression | None:
    """A value of parameters and launch dimensions as an expression over the plan's names; None where it holds anything
    else (a thread's index, loaded data)."""
    names = {one.name: argument for one, argument in zip(view.kernel.parameters, launch.arguments, strict=False)}
    for axis, grid, block in zip(AXES, launch.grid, launch.block, strict=True):
        names |= {f"gridDim.{axis}": grid, f"blockDim.{axis}": block}
    return in_names(poly, names)


def in_names(poly: Poly, names: Mapping[str, Expression]) -> Expression | None:
    """A value with each unknown replaced by an expression; None where one has none."""
    total: Expression | None = None
    for product, factor in sorted(poly.terms, key=lambda term: (-len(term[0]), term[1] < 0)):
        term: Expression | None = None
        for atom in product:
            value = _atom(atom, names)
            if value is None:
                return None
            term = value if term is None else build("*", [term, value])
        size = number(abs(factor))
        term = size if term is None else term if abs(factor) == 1 else build("*", [size, term])
        if total is None:
            total = term if factor > 0 else build("neg", [term])
        else:
            total = build("+" if factor > 0 else "-", [total, term])
    return number(0) if total is None else total


def _atom(atom: Atom, names: Mapping[str, Expression]) -> Expression | None:
    if atom.formula is None:
        return names.get(atom.name)
    operation, operands = atom.formula
    values = [in_names(operand, names) for operand in operands]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return build("call", known, operation) if operation in ("min", "max") else build(operation, known)


def least(one: Expression, other: Expression) -> Expression:
    """The smaller of two, as C writes it without a library."""
    return build("?", [build("<", [one, other]), one, other])


def apart_from(symbol: Symbol, view: View) -> frozenset[Symbol]:
    """The pointer parameters that get another buffer than ``symbol`` in every launch of the plan (a swap exchanges two
    names, and never makes them one)."""
    parameters = [one for one in view.facts.symbols.all() if one.space == "parameter" and one.pointer]
    return frozenset(other for other in parameters if not may_be_one(view, symbol, other))
