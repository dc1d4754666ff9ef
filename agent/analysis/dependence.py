"""What values depend on: thread and block indices, memory, or something that is not followed.

Each symbol's definitions are read once; then sets of sources grow along them until nothing changes (the usual fixpoint
of a flow-insensitive analysis: a variable depends on all that any of its definitions depends on, and on the conditions
that decide whether a definition runs).
"""

from collections.abc import Iterable, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.symbols import Symbol, Symbols
from agent.analysis.syntax import LOOPS, ancestors, arguments, bare, callee, contains, descendants, text

BUILT_IN = ("threadIdx", "blockIdx", "blockDim", "gridDim")
VARYING = ("threadIdx", "blockIdx")
DEEPEST = 150

PURE = frozenset(
    (
        *("abs", "min", "max", "fabs", "fabsf", "fmin", "fminf", "fmax", "fmaxf", "sqrt", "sqrtf", "rsqrt", "rsqrtf"),
        *("exp", "expf", "exp2", "exp2f", "__expf", "log", "logf", "log2f", "__logf", "pow", "powf", "__powf"),
        *("sin", "sinf", "cos", "cosf", "tan", "tanf", "tanh", "tanhf", "erf", "erff", "fma", "fmaf"),
        *("floor", "floorf", "ceil", "ceilf", "round", "roundf", "rint", "rintf", "isnan", "isinf", "isfinite"),
        *("__fdividef", "__ldg", "__mul24", "__float2half", "__half2float"),
        *("static_cast", "reinterpret_cast", "const_cast", "float", "double", "int", "unsigned", "long", "size_t"),
        *("make_float2", "make_float3", "make_float4", "make_int2", "make_int4", "make_double2"),
    )
)
"""Functions whose result depends on their arguments alone (``__ldg`` also on memory that nobody writes)."""


@frozen(eq=False)
class Parts:
    """What an expression reads directly. ``reads`` are the addresses of its memory reads, each with whether the memory
    keeps its contents while the kernel runs (``const`` pointees), or is shared by a block."""

    sources: frozenset[str]
    symbols: frozenset[Symbol]
    reads: "tuple[tuple[Parts, bool], ...]"


NOTHING = Parts(frozenset(), frozenset(), ())


def parts(node: Node | None, symbols: Symbols, depth: int = 0) -> Parts:
    node = bare(node)
    if node is None:
        return NOTHING
    if depth > DEEPEST:
        return Parts(frozenset({"unknown"}), frozenset(), ())
    if node.type == "identifier":
        symbol = symbols.resolve(node)
        if symbol is None:
            return Parts(symbols.outside(text(node)), frozenset(), ())
        if symbol.space == "shared" and not symbol.is_memory:
            # One variable of the block: read like an array's element at an address that all threads share.
            return Parts(frozenset(), frozenset(), ((NOTHING, True),))
        return NOTHING if symbol.is_memory else Parts(frozenset(), frozenset({symbol}), ())
    if node.type == "field_expression" and text(node.child_by_field_name("argument")) in BUILT_IN:
        name = text(node)
        return Parts(frozenset({name}), frozenset(), ()) if name.startswith(VARYING) else NOTHING
    below = _union(parts(child, symbols, depth + 1) for child in _operands(node, symbols))
    if _is_read(node):
        return Parts(frozenset(), frozenset(), ((below, _steady(node, symbols)),))
    if node.type == "call_expression" and callee(node) not in PURE:
        return _union((below, Parts(frozenset({"unknown"}), frozenset(), ())))
    if node.type in ("lambda_expression", "gnu_asm_expression", "assignment_expression", "update_expression"):
        return _union((below, Parts(frozenset({"unknown"}), frozenset(), ())))
    return below


def _operands(node: Node, symbols: Symbols) -> list[Node]:
    """The parts of an expression that have a value: not the name of a function, nor of an array from outside."""
    if node.type == "call_expression":
        return arguments(node)
    if node.type in ("subscript_expression", "pointer_expression"):
        base = bare(node.child_by_field_name("argument"))
        if base is not None and base.type == "identifier" and symbols.resolve(base) is None:
            return [child for child in node.named_children if child != node.child_by_field_name("argument")]
    return node.named_children


def sources(found: Parts, table: Mapping[Symbol, frozenset[str]]) -> frozenset[str]:
    """All sources of an expression, given those of the symbols."""
    result = found.sources.union(*(table.get(symbol, frozenset()) for symbol in found.symbols))
    for address, steady in found.reads:
        inner = sources(address, table)
        # Threads that read different places, or at different times, may see different values.
        same = steady and not any(source.startswith("threadIdx") for source in inner)
        result |= inner | ({"memory"} if same else {"memory", "unknown"})
    return result


def symbol_sources(symbols: Symbols) -> Mapping[Symbol, frozenset[str]]:
    """The sources of every scalar symbol of a kernel."""
    definitions = {symbol: _definitions(symbol, symbols) for symbol in symbols.all() if not symbol.is_memory}
    table = {symbol: frozenset({"unknown"}) if symbol.escapes else frozenset() for symbol in definitions}
    changed = True
    while changed:
        changed = False
        for symbol, defined in definitions.items():
            grown = table[symbol] | sources(defined, table)
            if grown != table[symbol]:
                table[symbol], changed = grown, True
    return table


def _definitions(symbol: Symbol, symbols: Symbols) -> Parts:
    expressions = [symbol.init]
    for write in symbol.writes:
        if write.type == "assignment_expression":
            expressions.append(write.child_by_field_name("right"))
        expressions += conditions(write, symbol.scope)
    return _union(parts(expression, symbols) for expression in expressions)


def _union(many: Iterable[Parts]) -> Parts:
    listed = list(many)
    return Parts(
        frozenset().union(*(one.sources for one in listed)),
        frozenset().union(*(one.symbols for one in listed)),
        tuple(read for one in listed for read in one.reads),
    )


def _is_read(node: Node) -> bool:
    return node.type == "subscript_expression" or (
        node.type == "pointer_expression" and text(node.child_by_field_name("operator")) == "*"
    )


def _steady(node: Node, symbols: Symbols) -> bool:
    base: Node | None = node
    while base is not None and base.type in ("subscript_expression", "pointer_expression"):
        base = bare(base.child_by_field_name("argument"))
    if base is None or base.type != "identifier":
        return False
    symbol = symbols.resolve(base)
    if symbol is None:
        return text(base) in symbols.steady
    return symbol.const or symbol.space == "shared"


def conditions(node: Node, within: Node) -> list[Node]:
    """The conditions that decide, inside ``within``, whether or how often ``node`` runs."""
    found = []
    for parent in ancestors(node):
        if parent.type in (*LOOPS, "if_statement", "switch_statement", "conditional_expression"):
            condition = parent.child_by_field_name("condition")
            if condition is not None and not contains(condition, node):
                found.append(condition)
        if parent.type in LOOPS:
            for leap in descendants(parent, "break_statement", "continue_statement"):
                tests = [test for around in ancestors(leap) if (test := _test(around)) is not None]
                found += [test for test in tests if contains(parent, test)]
        if parent == within:
            break
    return found


def _test(node: Node) -> Node | None:
    return node.child_by_field_name("condition") if node.type in ("if_statement", "switch_statement") else None


def returns_before(node: Node, function: Node) -> list[Node]:
    """Return statements that may end a thread before it reaches ``node``."""
    return [found for found in descendants(function, "return_statement") if found.start_byte < node.start_byte]
