"""Powers with a small fixed exponent as products."""

from tree_sitter import Node

from agent.analysis.syntax import arguments, bare, descendants, text

PLAIN = ("identifier", "subscript_expression", "field_expression", "number_literal")


def product(call: Node, spelled: str = "") -> str | None:
    """``(x * x)`` for a power of 2, 3 or 4 as written, of something that can be named several times. ``spelled``: what
    stands for it now."""
    given = arguments(call)
    if len(given) != 2:
        return None
    base, exponent = bare(given[0]), bare(given[1])
    if base is None or exponent is None or exponent.type != "number_literal":
        return None
    try:
        times = float(text(exponent).rstrip("fF"))
    except ValueError:
        return None
    effects = descendants(base, "call_expression", "assignment_expression", "update_expression")
    if times not in (2.0, 3.0, 4.0) or any(True for _ in effects):
        return None
    written = (spelled or text(base)) if base.type in PLAIN else f"({spelled or text(base)})"
    # a fourth power as the square of a square: two multiplications, two roundings
    return (
        f"(({written} * {written}) * ({written} * {written}))"
        if times == 4
        else f"({' * '.join([written] * int(times))})"
    )
