"""Expressions that each thread works out in each turn of a loop, though all threads of the block get the same."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.affine import number
from agent.analysis.dependence import PURE
from agent.analysis.guards import guards
from agent.analysis.loops import Loop
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import ancestors, arguments, bare, callee, contains, descendants, statements, text, tokens
from agent.analysis.types import OVERLOADED, type_of
from agent.analysis.values import dependence
from agent.ideas.view import View

FLOATS = {"f32": "float", "f64": "double"}
SIZES = {"float": 4, "double": 8}
DEAR = frozenset(
    name + end
    for name in (
        *("pow", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinpi"),
        *("cospi", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "erf", "erfc", "tgamma", "lgamma"),
    )
    for end in ("", "f")
)
"""Functions of ten and more instructions."""
SAME = PURE | DEAR

ROOM = 16 * 1024
"""Bytes of shared memory that the tables may take: blocks of an H100 that fill an SM have 28 KiB each."""
WARP = 32
BLOCK = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})
EXITS = ("return_statement", "goto_statement")
WIDE = ("binary_expression", "unary_expression", "parenthesized_expression", "argument_list", "call_expression")


@frozen(eq=False)
class Entry:
    """One expression of ``type`` at each of ``places``, which read the same."""

    type: str
    places: tuple[Node, ...]


@frozen(eq=False)
class Table:
    """``entries`` hang on the counters of ``loops`` (outermost first; none: one value for the whole block) and on what
    is the same for the whole block. ``turns``: how many values each entry has at the declared sizes; ``fixed`` says
    that it is as many at every size. ``before`` is the statement of the kernel's body that the tables are made before:
    all threads come there."""

    loops: tuple[Loop, ...]
    entries: tuple[Entry, ...]
    turns: int
    fixed: bool
    before: Node

    @property
    def capacity(self) -> int:
        """Values of each entry that there is room for; those beyond are worked out where they are needed."""
        return self.turns if self.fixed else max(WARP, 1 << (self.turns - 1).bit_length())

    @property
    def bytes(self) -> int:
        return sum(self.capacity * SIZES[entry.type] for entry in self.entries)


def tables(view: View) -> tuple[Table, ...] | str:
    """The tables that there is room for, or why there is none."""
    if view.threads is None or view.threads < WARP:
        return "the launches do not all have blocks of one fixed size of a warp or more"
    found: dict[tuple[int, ...], Table] = {}
    reasons: list[str] = []
    covered: list[Node] = []
    for call in descendants(view.facts.body, "call_expression"):
        if callee(call) not in DEAR or any(contains(one, call) for one in covered):
            continue
        one = _table(view, call)
        if isinstance(one, str):
            reasons.append(one)
            continue
        covered += one.entries[0].places
        key = tuple(loop.node.start_byte for loop in one.loops) or (-one.before.start_byte,)
        found[key] = one if key not in found else _joined(found[key], one)
    fitting: list[Table] = []
    for table in found.values():
        if table.bytes + sum(one.bytes for one in fitting) <= ROOM:
            fitting.append(table)
    if found and not fitting:
        return "a table of the values would be too large for shared memory"
    return tuple(fitting) or (reasons or ["no loop calls a function that is worth a table"])[0]


def _joined(table: Table, more: Table) -> Table:
    (entry,) = more.entries
    before = max(table.before, more.before, key=lambda node: node.start_byte)
    for at, known in enumerate(table.entries):
        if known.type == entry.type and tokens(known.places[0]) == tokens(entry.places[0]):
            same = evolve(known, places=(*known.places, *entry.places))
            return evolve(table, entries=(*table.entries[:at], same, *table.entries[at + 1 :]), before=before)
    return evolve(table, entries=(*table.entries, entry), before=before)


def _table(view: View, call: Node) -> Table | str:
    """The table for the widest expression around a call."""
    spelled = text(call)
    if any(_in_a_table(view, above) for above in ancestors(call) if above.type == "conditional_expression"):
        return f"`{spelled}` is what a table has no room for"
    if not alike(view, call):
        return f"`{spelled}` is not the same for all threads of a block"
    loops = tuple(loop for loop in view.facts.loops_around(call) if loop.variable in reached(view, call))
    if len(loops) > 2:
        return f"`{spelled}` hangs on more than two loops' counters"
    if not loops and not _dearest(view, call):
        return f"`{spelled}` hangs on no loop's counter, and is not dear enough to be waited for"
    if any(_one_thread(guard.condition, view) for guard in guards(call, view.facts.node) if guard.taken):
        return f"one thread alone comes to `{spelled}`"
    reason = next((why for loop in loops if (why := _uncounted(view, loop)) is not None), None)
    node = _widest(view, call, loops)
    if reason is not None or node is None:
        return reason or f"of which type `{spelled}` is, is not known"
    before = _place(view, node, loops)
    if isinstance(before, str):
        return before
    turns = _turns(view, loops)
    if turns is None or (loops and turns < 2):
        return f"how many turns the loops around `{spelled}` take at the declared sizes is not known, or it is one"
    fixed = all((loop.bound - loop.start).constant is not None for loop in loops)
    if fixed and reached(view, node) <= {loop.variable for loop in loops}:
        return f"`{spelled}` hangs on numbers alone, which the compiler can work out"
    kind = FLOATS[str(_kind(view, node))]
    return Table(loops, (Entry(kind, (node,)),), turns, fixed, before)


def _dearest(view: View, call: Node) -> bool:
    """Whether a function is so long that a block had better wait for one thread to work it out."""
    return callee(call) in ("pow", "powf") or _kind(view, call) == "f64"


def _kind(view: View, node: Node | None) -> str | None:
    """The type of an expression, powers included: of floats alone it is a float, else a double."""
    node = bare(node)
    if callee(node) == "pow" and node is not None:
        given = {_kind(view, one) for one in arguments(node)}
        return None if None in given else "f32" if given == {"f32"} else "f64"
    if callee(node) in OVERLOADED and node is not None and len(arguments(node)) == 1:
        inner = _kind(view, arguments(node)[0])
        return "f64" if inner == "int" else inner
    operator = "" if node is None else text(node.child_by_field_name("operator"))
    if node is not None and node.type == "binary_expression" and operator in ("+", "-", "*", "/"):
        given = {_kind(view, node.child_by_field_name(side)) for side in ("left", "right")}
        return None if None in given else next((one for one in ("f64", "f32") if one in given), "int")
    return type_of(node, view.facts.symbols)


def _in_a_table(view: View, choice: Node) -> bool:
    """Whether a conditional expression looks its value up in shared memory where it can."""
    taken = bare(choice.child_by_field_name("consequence"))
    return taken is not None and any(one.node == taken and one.space == "shared" for one in view.facts.accesses)


def alike(view: View, node: Node) -> bool:
    """Whether all threads of a block get the same value in the same turn, and no memory is read for it."""
    return dependence(node, view.facts.scope) <= BLOCK


def held(view: View, symbol: Symbol) -> bool:
    """Whether a name stands for an expression inside a loop, and can be replaced by it."""
    plain = symbol.space == "local" and not symbol.is_memory and symbol.fixed and symbol.init is not None
    return plain and bool(view.facts.loops_around(symbol.declarator))


def reached(view: View, node: Node) -> frozenset[Symbol]:
    """The variables that an expression hangs on, seen through locals of the loops around it."""
    found: set[Symbol] = set()
    waiting, seen = [node], set[Symbol]()
    while waiting:
        for name in _identifiers(waiting.pop()):
            symbol = view.facts.symbols.resolve(name)
            if symbol is None or symbol in seen:
                continue
            seen.add(symbol)
            if held(view, symbol):
                assert symbol.init is not None
                waiting.append(symbol.init)
            else:
                found.add(symbol)
    return frozenset(found)


def _identifiers(node: Node) -> list[Node]:
    return [node] if node.type == "identifier" else list(descendants(node, "identifier"))


def _uncounted(view: View, loop: Loop) -> str | None:
    """Why a loop's turns cannot be numbered alike for all threads, if they cannot."""
    start = start_of(loop)
    if loop.node.type != "for_statement" or loop.relation not in ("<", "<=") or start is None:
        return "the loop is no `for` that counts up from a plain start to a bound"
    if loop.step_kind != "+" or loop.step != number(1):
        return "the loop's counter does not go up by one"
    if not alike(view, start) or not alike(view, loop.bound_node):
        return "the loop does not take the same turns in all threads of a block"
    return None


def _one_thread(condition: Node | None, view: View) -> bool:
    test = bare(condition)
    return test is not None and text(test.child_by_field_name("operator")) == "==" and not alike(view, test)


def start_of(loop: Loop) -> Node | None:
    """The expression that the header of a ``for`` sets its counter to."""
    header = loop.node.child_by_field_name("initializer")
    if header is None:
        return None
    if contains(header, loop.variable.declarator):
        return loop.variable.init
    return header.child_by_field_name("right") if header.type == "assignment_expression" else None


def _widest(view: View, call: Node, loops: tuple[Loop, ...]) -> Node | None:
    """The largest expression around a call that is alike for all threads and hangs on these loops alone."""
    found: Node | None = None
    counters = frozenset(loop.variable for loop in loops)
    around = frozenset(loop.variable for loop in view.facts.loops_around(call)) - counters
    node: Node | None = call
    while node is not None and (node is call or node.type in WIDE):
        if node.type == "call_expression" and callee(node) not in SAME:
            break
        if node.type != "argument_list":
            if not alike(view, node) or reached(view, node) & around:
                break
            if node.type != "parenthesized_expression" and _kind(view, node) in FLOATS:
                found = node
        node = node.parent
    return found


def _place(view: View, node: Node, loops: tuple[Loop, ...]) -> Node | str:
    """The first statement of the body by which everything is known that the table is made of."""
    body = statements(view.facts.body)
    inner = loops[0].node if loops else node
    own = next((at for at, one in enumerate(body) if contains(one, inner)), None)
    if own is None:
        return "the loop stands in no statement of the kernel's body"
    needed = [node, *(part for loop in loops for part in (start_of(loop), loop.bound_node) if part is not None)]
    first = 0
    for symbol in frozenset().union(*(reached(view, one) for one in needed)) - {loop.variable for loop in loops}:
        if not symbol.fixed or (
            symbol.space != "parameter" and (symbol.init is None or symbol.scope != view.facts.body)
        ):
            return f"`{symbol.name}` may not be known yet where the block's threads all are"
        if symbol.space != "parameter":
            first = max(first, 1 + next(at for at, one in enumerate(body) if contains(one, symbol.declarator)))
    if first > own:
        return "what the loop counts to is not known before it"
    if any(True for one in body[:first] for _ in descendants(one, *EXITS)):
        return "threads may have left before what the table is made of is known"
    return body[first]


def _turns(view: View, loops: tuple[Loop, ...]) -> int | None:
    """The most turns that all the loops take together in any launch, at the declared sizes."""
    most = 0
    for launch in view.launches:
        total = 1
        for loop in loops:
            length = (loop.bound - loop.start).evaluate(view.parameters(launch))
            if length is None:
                return None
            total *= max(0, length + (loop.relation == "<="))
        most = max(most, total)
    return most
