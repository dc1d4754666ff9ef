"""Every access to memory that a kernel makes: which array, at which index, under which loops and conditions."""

from collections.abc import Iterable

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number
from agent.analysis.stepping import after_steps, stepped
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, descendants, text
from agent.analysis.values import Scope, value
from agent.workload.dtypes import from_c_type, size_of

_PLAIN = frozenset(("MIN", "MAX", "ABS", "SQR"))
LOADS = frozenset(("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldcv", "__ldlu"))
STORES = frozenset(("__stwb", "__stcg", "__stcs", "__stwt"))
"""What CUDA calls functions that load and store one element whole, and say which caches are to keep it."""


@frozen(eq=False)
class Access:
    """One access, by subscript or ``*``.

    ``space``: ``global`` (through a pointer parameter), ``shared``, ``local`` (an array of the thread's own),
    ``constant`` (an array that the file declares outside the kernel) or ``unknown``. ``root`` is the parameter or
    array, None where it cannot be traced. ``index`` counts elements from the root's start and is None where it cannot
    be followed. ``element`` is the element's type, empty where that is not known: ``FLOAT4(x[i])`` may be a macro
    that loads four of them. ``spread`` is the index up to a summand that is the same for all threads of a warp at that
    moment, where it can be followed so far: through pointers that are moved (``p += n``), and numbers that are stepped.
    It is for comparing the lanes of one access, and says nothing of two. ``cast`` is the array's own type and that
    which a macro of the file, or a cast, takes at the element in its place (``float``, ``float4``)."""

    node: Node
    root: Symbol | None
    name: str
    space: str
    element: str
    index: Poly | None
    reads: bool
    writes: bool
    atomic: bool
    spread: Poly | None = None
    cast: tuple[str, str] | None = None

    @property
    def member(self) -> str:
        """The member that is taken of the element (``x`` of ``bodies[i].x``), empty where all of it is."""
        node, parent = self.node, self.node.parent
        if node.type == "call_expression":
            return ""
        while parent is not None and parent.type == "parenthesized_expression":
            node, parent = parent, parent.parent
        if parent is None or parent.type != "field_expression" or parent.child_by_field_name("argument") != node:
            return ""
        return text(parent.child_by_field_name("field"))


def accesses(function: Node, scope: Scope) -> tuple[Access, ...]:
    """All accesses in source order."""
    body = function.child_by_field_name("body")
    if body is None:
        return ()
    found = []
    for node in descendants(body, "subscript_expression", "pointer_expression"):
        if node.type == "pointer_expression" and text(node.child_by_field_name("operator")) != "*":
            continue
        if _inside_another(node) or _only_address(node):
            continue
        found.append(access(node, scope))
    found += [
        _atomic(node, scope) for node in descendants(body, "call_expression") if callee(node).startswith("atomic")
    ]
    return tuple(sorted(found, key=lambda entry: entry.node.start_byte))


def hinted(calls: Iterable[Node], scope: Scope) -> tuple[Access, ...]:
    """The accesses of functions that say which caches are to keep what they move (``__ldg(p + i)``), of these calls.
    They are none of :func:`accesses`: what takes one of those for a subscript may write another in its place."""
    return tuple(_hinted(call, scope) for call in calls if callee(call) in LOADS | STORES and arguments(call))


def _hinted(call: Node, scope: Scope) -> Access:
    target = arguments(call)[0]
    root, index = pointer(target, scope)
    stores = callee(call) in STORES
    made = _made(call, root, index, scope, not stores, stores, atomic=False)
    beyond = pointer(target, scope, loose=True)[1] if isinstance(root, Symbol) else None
    spread = None if beyond is None else stepped(beyond, scope)
    return evolve(made, element=pointee(target, scope) or made.element, spread=spread)


def access(node: Node, scope: Scope) -> Access:
    """The access that a subscript or ``*`` expression makes."""
    root, index = address(node, scope)
    reads, writes = _direction(node)
    made = _made(node, root, index, scope, reads, writes, atomic=False)
    beyond = address(node, scope, loose=True)[1] if isinstance(root, Symbol) else None
    spread = None if beyond is None else stepped(beyond, scope)
    element = pointee(node, scope) or made.element
    if not _given_away(node, scope):
        wide = _widened(node, scope) if spread is None and isinstance(root, Symbol) else None
        return evolve(made, element=element, spread=wide[0] if wide else spread, cast=wide[1] if wide else None)
    taken = scope.symbols.casts.get(callee(node.parent.parent), "") if node.parent is not None else ""
    return evolve(made, element="", spread=spread, cast=(element, taken) if taken else None)


def _widened(node: Node, scope: Scope) -> tuple[Poly, tuple[str, str]] | None:
    """Of ``reinterpret_cast<float2*>(p + i)[0]``: the spread of ``i``, in elements of ``p``, and the two types. The
    lanes differ by it alone where they all take the same one from there."""
    subscripts, base = subscripts_of(node), node.child_by_field_name("argument")
    cast = bare(base)
    same = all(_uniform(product) for one in subscripts for product, _ in value(one, scope).terms)
    if len(subscripts) > 1 or not same or cast is None or cast.type not in ("cast_expression", "call_expression"):
        return None
    given = cast.child_by_field_name("value") if cast.type == "cast_expression" else next(iter(arguments(cast)), None)
    if given is None or (cast.type == "call_expression" and not callee(cast).endswith("_cast")):
        return None
    was, now = pointee(given, scope), pointee(cast, scope)
    offset = pointer(given, scope, loose=True)[1]
    spread = None if offset is None or not was or not now else stepped(offset, scope)
    return None if spread is None else (spread, (was, now))


def pointee(node: Node, scope: Scope) -> str:
    """The type of the elements that an expression points at or takes one of, as its casts and declarations say; empty
    where they do not."""
    inner = bare(node)
    if inner is None:
        return ""
    if inner.type == "identifier":
        symbol = scope.symbols.resolve(inner)
        return symbol.type if symbol is not None and symbol.is_memory and symbol.type != "auto" else ""
    if inner.type == "cast_expression":
        return text(inner.child_by_field_name("type")).rstrip("* ") if "*" in text(inner) else ""
    if inner.type == "call_expression" and callee(inner).endswith("_cast"):
        function = inner.child_by_field_name("function")
        kind = text(function.child_by_field_name("arguments")) if function is not None else ""
        return kind.strip("<>").rstrip("*& ")
    sides = (inner.child_by_field_name(name) for name in ("argument", "left", "right"))
    return next((found for side in sides if side is not None and (found := pointee(side, scope))), "")


def address(node: Node, scope: Scope, loose: bool = False) -> tuple[Node | Symbol | None, Poly | None]:
    """(root, element index) of what a subscript or ``*`` expression names. The root is a symbol of the kernel, or the
    identifier of an array outside it. ``loose``: up to what is the same for all threads (see ``Access.spread``)."""
    subscripts: list[Node] = []
    base: Node | None = node
    while base is not None and base.type == "subscript_expression":
        listing = base.child_by_field_name("indices")
        given = [] if listing is None else [child for child in listing.named_children if child.type != "comment"]
        if len(given) != 1:
            return None, None
        subscripts.insert(0, given[0])
        base = bare(base.child_by_field_name("argument"))
    if base is not None and not subscripts and base.type == "pointer_expression":
        subscripts = []
        base = bare(base.child_by_field_name("argument"))
    if base is None:
        return None, None
    root, offset = pointer(base, scope, loose)
    if not subscripts:
        return root, offset
    if isinstance(root, Symbol) and len(root.dims) == len(subscripts) > 1:
        index: Poly | None = number(0)
        for dim, subscript in zip(root.dims, subscripts, strict=True):
            index = index * (value(dim, scope) if dim is not None else number(1)) + value(subscript, scope)  # type: ignore[operator]
        return root, index
    if len(subscripts) > 1 or offset is None:
        return root, None
    return root, offset + value(subscripts[0], scope)


def subscripts_of(node: Node) -> list[Node]:
    """The subscripts of ``a[i][j]``, outermost array first; those of one bracket each."""
    found: list[Node] = []
    base: Node | None = node
    while base is not None and base.type == "subscript_expression":
        listing = base.child_by_field_name("indices")
        given = [] if listing is None else [child for child in listing.named_children if child.type != "comment"]
        found = given + found
        base = bare(base.child_by_field_name("argument"))
    return found


def pointer(node: Node, scope: Scope, loose: bool = False) -> tuple[Node | Symbol | None, Poly | None]:
    """(root, offset in elements) of a pointer expression, through local pointers that are set once."""
    node = bare(node) or node
    if node.type == "identifier":
        symbol = scope.symbols.resolve(node)
        if symbol is None:
            return node, number(0)
        if not symbol.is_memory:
            return None, None
        if symbol.space == "local" and symbol.pointer and not symbol.dims:
            if symbol.init is None or symbol.escapes:
                return None, None
            root, offset = pointer(symbol.init, scope, loose)
            moved = bool(symbol.writes)
            if loose and moved and offset is not None:
                return root, after_steps(offset, symbol, node, scope)
            return root if not moved or _stays(symbol, scope) else None, None if moved else offset
        moved = symbol.space == "parameter" and not symbol.fixed
        if loose and moved and not symbol.escapes:
            return symbol, after_steps(number(0), symbol, node, scope)
        return symbol, None if moved else number(0)
    if node.type == "binary_expression" and text(node.child_by_field_name("operator")) in ("+", "-"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None, None
        minus = text(node.child_by_field_name("operator")) == "-"
        for base, distance in ((left, right), (right, left)):
            root, offset = pointer(base, scope, loose)
            if root is not None and (isinstance(root, Symbol) or not _looks_like_number(base)):
                step = value(distance, scope)
                return root, None if offset is None else offset - step if minus else offset + step
        return None, None
    if node.type == "pointer_expression" and text(node.child_by_field_name("operator")) == "&":
        target = bare(node.child_by_field_name("argument"))
        return (
            address(target, scope, loose)
            if target is not None and target.type == "subscript_expression"
            else (None, None)
        )
    if node.type == "subscript_expression":  # a row of a two-dimensional array decays to a pointer
        root, _ = address(node, scope)
        return root, None
    if node.type in ("cast_expression", "call_expression"):
        return _cast_pointer(node, scope, loose)
    return None, None


def _cast_pointer(node: Node, scope: Scope, loose: bool) -> tuple[Node | Symbol | None, Poly | None]:
    """A cast keeps the root; the offset counts other elements afterwards, so only zero survives."""
    given = [node.child_by_field_name("value")] if node.type == "cast_expression" else arguments(node)
    if len(given) != 1 or given[0] is None or (node.type == "call_expression" and not callee(node).endswith("_cast")):
        return None, None
    root, offset = pointer(given[0], scope, loose)
    if loose:
        return root, _rescaled(offset, pointee(given[0], scope), pointee(node, scope))
    return root, offset if offset is not None and offset.constant == 0 else None


def _rescaled(index: Poly | None, was: str, now: str) -> Poly | None:
    """An index that counted elements of one type, in those of another: exactly where it is a multiple, up to a summand
    that is the same for all threads."""
    one, other = from_c_type(was) if was else None, from_c_type(now) if now else None
    if index is None or one is None or other is None:
        return None
    before, after = size_of(one), size_of(other)
    terms = [(product, factor * before) for product, factor in index.terms if not _uniform(product)]
    if any(bytes_ % after for _, bytes_ in terms):
        return None
    return Poly(tuple((product, bytes_ // after) for product, bytes_ in terms))


def _uniform(product: tuple[Atom, ...]) -> bool:
    return all(atom.same_for_all for atom in product)


def _stays(symbol: Symbol, scope: Scope) -> bool:
    """Whether a pointer that moves stays inside one array: every change steps it (``p += n``, ``++p``)."""
    return all(
        write.type == "update_expression" or text(write.child_by_field_name("operator")) in ("+=", "-=")
        for write in symbol.writes
    )


def _looks_like_number(node: Node) -> bool:
    return node.type in ("number_literal", "field_expression", "sizeof_expression")


def _made(
    node: Node, root: Node | Symbol | None, index: Poly | None, scope: Scope, reads: bool, writes: bool, atomic: bool
) -> Access:
    if isinstance(root, Symbol):
        space = "shared" if root.space == "shared" else "global" if root.space == "parameter" else "local"
        return Access(node, root, root.name, space, root.type, index, reads, writes, atomic)
    if root is not None:
        return Access(node, None, text(root), "constant", "", index, reads, writes, atomic)
    return Access(node, None, "", "unknown", "", None, reads, writes, atomic)


def _atomic(call: Node, scope: Scope) -> Access:
    given = arguments(call)
    root, index = pointer(given[0], scope) if given else (None, None)
    return _made(call, root, index, scope, True, True, atomic=True)


def _inside_another(node: Node) -> bool:
    """``a[i]`` of ``a[i][j]`` is no access of its own."""
    parent = node.parent
    return (
        parent is not None and parent.type == "subscript_expression" and parent.child_by_field_name("argument") == node
    )


def _given_away(node: Node, scope: Scope) -> bool:
    """Whether it is an argument of something that may take its address, to access more than one element."""
    listing = node.parent
    if listing is None or listing.type != "argument_list" or listing.parent is None:
        return False
    name = callee(listing.parent)
    table = scope.symbols
    return name in table.takers or (name.isupper() and name not in table.formulas and name not in _PLAIN)


def _only_address(node: Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    return (
        parent is not None
        and parent.type == "pointer_expression"
        and text(parent.child_by_field_name("operator")) == "&"
    )


def _direction(node: Node) -> tuple[bool, bool]:
    target = node
    parent = node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "field_expression"):
        target, parent = parent, parent.parent
    if parent is not None and parent.type == "assignment_expression" and parent.child_by_field_name("left") == target:
        return text(parent.child_by_field_name("operator")) != "=", True
    if parent is not None and parent.type == "update_expression":
        return True, True
    return True, False
