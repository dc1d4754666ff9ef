"""Whether numbers that nobody stated decide where the lanes of a warp go: loaded data, or a kernel's own parameters."""

from agent.analysis.accesses import Access
from agent.analysis.affine import Poly, Product
from agent.analysis.facts import Facts
from agent.analysis.rules.traffic import free
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import callee, contains, descendants


def decided_by_data(access: Access, facts: Facts) -> bool:
    """Whether lanes may be spread by what was loaded. Where the index can be followed, by its summands that differ
    between threads; else by the names in it, and all that those were given."""
    index = _followed(access)
    if index is not None:
        return any("memory" in atom.depends for product in _apart(index) for atom in product)
    return _loaded(access, facts, set())


def decided_by_names(access: Access, facts: Facts) -> bool:
    """Whether a parameter multiplies or divides what differs between threads, as far as the index can be followed."""
    index = _followed(access)
    known = {parameter.name for parameter in facts.kernel.parameters}
    return index is not None and any(name in known for product in _apart(index) for name in free(product))


def _followed(access: Access) -> Poly | None:
    return next(
        (one for one in (access.index, access.spread) if one is not None and "unknown" not in one.depends), None
    )


def _apart(index: Poly) -> list[Product]:
    return [product for product, _ in index.terms if any(not atom.same_for_all for atom in product)]


def _loaded(access: Access, facts: Facts, seen: set[str]) -> bool:
    """Whether a name in the index of an access may hold what a thread loaded, or an element is in it itself."""
    return any(_differs(other, access, facts) for other in facts.accesses_in(access.node)) or any(
        _taken(symbol, facts, seen) for symbol in _names(access, facts)
    )


def _names(access: Access, facts: Facts) -> list[Symbol]:
    found = (facts.symbols.resolve(node) for node in descendants(access.node, "identifier"))
    return [symbol for symbol in found if symbol is not None]


def _taken(symbol: Symbol, facts: Facts, seen: set[str]) -> bool:
    """Whether a variable was ever given something loaded that may differ between threads."""
    if symbol.space != "local" or symbol.key in seen:
        return False
    seen.add(symbol.key)
    for given in (*symbol.writes, *((symbol.init,) if symbol.init is not None else ())):
        if any(callee(call).startswith("atomic") for call in descendants(given, "call_expression")):
            return True
        for other in (*facts.accesses, *facts.hinted):
            if other.reads and contains(given, other.node) and _differs(other, None, facts):
                return True
        named = (facts.symbols.resolve(node) for node in descendants(given, "identifier"))
        if any(one is not None and one is not symbol and _taken(one, facts, seen) for one in named):
            return True
    return False


def _differs(read: Access, outer: Access | None, facts: Facts) -> bool:
    """Whether threads of a block may load different elements there."""
    if outer is not None and read.node == outer.node:
        return False
    return read.index is None or any(not atom.same_for_all for atom in read.index.atoms)
