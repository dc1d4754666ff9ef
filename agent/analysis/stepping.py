"""Pointers and numbers that are stepped on the way (``p += n``, ``i += stride``), as the lanes of one warp see them:
up to a summand that is the same for all of them."""

from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.guards import guards
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import text
from agent.analysis.values import Scope, is_uniform, replaced, value


def after_steps(start: Poly, symbol: Symbol, place: Node, scope: Scope) -> Poly | None:
    """``start`` and what the steps before ``place`` add; None where threads may have taken different ones.

    A step that is a statement of the function's own counts with its value, where it stands before the place. Any other
    must be the same for all threads, and so must the conditions around it: the lanes that come to ``place`` together
    have gone round the loops around it equally often. What it adds up to is unknown, and not that of another place.
    """
    total = start
    for write in symbol.writes:
        amount = _amount(write, scope)
        if amount is None:
            return None
        if _at_top(write, scope):
            total = total + amount if write.end_byte <= place.start_byte else total
        elif not _same_for_all(amount) or not _met_together(write, scope):
            return None
        else:
            total = total + unknown(Atom(f"{symbol.key}~{write.start_byte}:{place.start_byte}"))
    return total


def stepped(index: Poly, scope: Scope) -> Poly:
    """An index in which numbers that are set once and then stepped alike by all threads are written out."""
    names: dict[str, Poly] = {}
    for symbol in scope.symbols.all():
        if symbol.space == "local" and symbol.writes and not symbol.is_memory and not symbol.escapes:
            for atom in index.atoms:
                found = _written_out(atom, symbol, scope) if atom.name.startswith(f"{symbol.key}:") else None
                if found is not None:
                    names[atom.name] = found
    return replaced(index, names) if names else index


def _written_out(atom: Atom, symbol: Symbol, scope: Scope) -> Poly | None:
    place = scope.symbols.node.descendant_for_byte_range(*(2 * [int(atom.name.rpartition(":")[2])]))
    if symbol.init is None or place is None:
        return None
    return after_steps(value(symbol.init, scope), symbol, place, scope)


def _amount(write: Node, scope: Scope) -> Poly | None:
    operator = text(write.child_by_field_name("operator"))
    if write.type == "update_expression":
        return number(1 if operator == "++" else -1)
    if operator not in ("+=", "-="):
        return None
    amount = value(write.child_by_field_name("right"), scope)
    return amount if operator == "+=" else -amount


def _at_top(write: Node, scope: Scope) -> bool:
    statement = write.parent
    return (
        statement is not None
        and statement.type == "expression_statement"
        and statement.parent == scope.symbols.node.child_by_field_name("body")
    )


def _same_for_all(amount: Poly) -> bool:
    return not any(source == "unknown" or source.startswith("threadIdx") for source in amount.depends)


def _met_together(write: Node, scope: Scope) -> bool:
    return all(
        guard.kind in ("loop", "exit") or is_uniform(guard.condition, scope)
        for guard in guards(write, scope.symbols.node)
    )
