"""Index polynomials as C text in the kernel, and as expressions over the workload's names."""

from collections.abc import Mapping

from agent.analysis.affine import Poly
from agent.analysis.facts import Facts
from agent.workload.expression import Expression, build, number


def spelled(poly: Poly, facts: Facts) -> str | None:
    """The value in terms of the kernel's parameters and of names from outside; None where it has none."""
    if poly.constant is not None:
        return str(poly.constant)
    known = {parameter.name for parameter in facts.kernel.parameters} | facts.symbols.fixed
    parts: list[str] = []
    for product, factor in sorted(poly.terms, key=lambda term: term[1] < 0):
        factors = [str(abs(factor))] if abs(factor) != 1 or not product else []
        for atom in product:
            if atom.formula is not None:
                inside = [spelled(operand, facts) for operand in atom.formula[1]]
                if any(one is None for one in inside):
                    return None
                operation = atom.formula[0]
                call = f"{operation}({inside[0]}, {inside[1]})"
                factors.append(call if operation in ("min", "max") else f"(({inside[0]}) {operation} ({inside[1]}))")
            elif atom.name in known:
                factors.append(atom.name)
            else:
                return None
        sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
        parts.append(sign + " * ".join(factors))
    return "".join(parts)


def expressed(poly: Poly, arguments: Mapping[str, Expression]) -> Expression | None:
    """The value over the workload's names, given the launch's arguments; None where a name is not among them."""
    total: Expression | None = None
    for product, factor in poly.terms:
        term = number(factor)
        for atom in product:
            part = _atom(atom.name, atom.formula, arguments)
            if part is None:
                return None
            term = build("*", [term, part])
        total = term if total is None else build("+", [total, term])
    return number(0) if total is None else total


def _atom(
    label: str, formula: tuple[str, tuple[Poly, ...]] | None, arguments: Mapping[str, Expression]
) -> Expression | None:
    if formula is None:
        return arguments.get(label)
    parts = [expressed(operand, arguments) for operand in formula[1]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if formula[0] in ("min", "max"):
        return build("call", known, formula[0])
    return build(formula[0], known)


def tiles(count: Expression, tile: int) -> Expression:
    """How many tiles cover ``count``: ``(count + tile - 1) / tile``."""
    return build("/", [build("+", [count, number(tile - 1)]), number(tile)])


def without_factor(whole: Expression, factor: Expression) -> Expression:
    """``whole / factor``, which comes out even; a factor that is spelled out is taken away."""
    if factor.constant == 1:
        return whole
    if whole == factor:
        return number(1)
    if whole.op == "*":
        left, right = whole.operands
        if right == factor:
            return left
        if left == factor:
            return right
    return build("/", [whole, factor])
