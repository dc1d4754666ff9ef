"""The names that a kernel declares: parameters, locals and shared arrays, with every place that changes them."""

import re
from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen
from tree_sitter import Node

from agent.analysis.formulas import Formula
from agent.analysis.syntax import ancestors, arguments, bare, callee, descendants, text

STANDARD = frozenset(
    (
        *("warpSize", "INFINITY", "NAN", "M_PI", "FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN"),
        *("INT_MAX", "INT_MIN", "UINT_MAX", "LLONG_MAX", "LLONG_MIN", "ULLONG_MAX", "CHAR_BIT", "NULL"),
    )
)
"""Names of the language's own headers that have one value."""

_WHOLE = re.compile(r"u?int\d*_t|u?intptr_t|s?size_t|ptrdiff_t|uint|ushort|uchar|ulong")
SCOPES = ("compound_statement", "for_statement", "if_statement", "while_statement", "function_definition")


@frozen(eq=False)
class Symbol:
    """A declared name.

    ``space``: ``parameter``, ``local`` or ``shared``. ``pointer`` counts the stars, ``dims`` holds an array's extents
    (None for ``[]``). ``type`` is the element type without qualifiers. ``writes`` are the assignments and updates after
    the declaration; ``escapes`` says that its address or a reference to it is given away, so that it may change unseen.
    ``scope`` is the node inside which the name means this.
    """

    name: str
    type: str
    pointer: int
    dims: tuple[Node | None, ...]
    space: str
    extern: bool
    restrict: bool
    const: bool
    declarator: Node
    init: Node | None
    scope: Node
    writes: tuple[Node, ...] = ()
    escapes: bool = False

    @property
    def is_memory(self) -> bool:
        """Whether subscripting it touches an array or what a pointer points at."""
        return self.pointer > 0 or bool(self.dims)

    @property
    def fixed(self) -> bool:
        """Whether it keeps the value that it is declared with."""
        return not self.writes and not self.escapes

    @property
    def key(self) -> str:
        """A name for it that shadowing cannot confuse."""
        return self.name if self.space == "parameter" else f"{self.name}@{self.declarator.start_byte}"


@frozen(eq=False)
class Symbols:
    """The symbol table of one kernel. ``constants`` are the file's folded integers, ``steady`` the arrays that no
    kernel can change, ``fixed`` the names from outside that mean one value for all threads, ``formulas`` the
    macros and functions of the file that are one expression, ``takers`` those that may take an argument's address,
    ``casts`` the macros that take another type there (see :func:`cast_of`)."""

    node: Node
    table: Mapping[str, tuple[Symbol, ...]]
    constants: Mapping[str, int] = field(factory=dict)
    steady: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    formulas: Mapping[str, Formula] = field(factory=dict)
    takers: frozenset[str] = frozenset()
    casts: Mapping[str, str] = field(factory=dict)

    def outside(self, name: str) -> frozenset[str]:
        """What a name that the kernel does not declare depends on: nothing, or something that is not known (a macro
        may stand for ``threadIdx.x``)."""
        return frozenset() if name in self.constants or name in self.fixed else frozenset({"unknown"})

    def resolve(self, identifier: Node) -> Symbol | None:
        """What an identifier in the kernel refers to; None for names from outside it."""
        inside = [
            symbol
            for symbol in self.table.get(text(identifier), ())
            if symbol.scope.start_byte <= identifier.start_byte < symbol.scope.end_byte
            and symbol.declarator.start_byte <= identifier.start_byte
        ]
        return max(inside, key=lambda symbol: symbol.declarator.start_byte, default=None)

    def is_alone(self, symbol: Symbol) -> bool:
        """Whether no branch of an ``#if`` declares its name again in the same scope: a use may mean either then."""
        return [one.scope for one in self.table[symbol.name]].count(symbol.scope) == 1

    def all(self) -> Iterator[Symbol]:
        return (symbol for symbols in self.table.values() for symbol in symbols)


def symbols(
    function: Node,
    constants: Mapping[str, int],
    takers: frozenset[str],
    steady: frozenset[str] = frozenset(),
    fixed: frozenset[str] = frozenset(),
    formulas: Mapping[str, Formula] | None = None,
    promised: frozenset[str] = frozenset(),
    casts: Mapping[str, str] | None = None,
) -> Symbols:
    """The table of a ``function_definition`` node. ``takers`` are the functions that may change an argument. The
    definition's template parameters join ``fixed``, and hide constants of their name. ``promised`` are parameters that
    are known to be ``__restrict__`` (a spelling that the grammar lacks is blanked)."""
    own = template_names(function)
    constants = {name: value for name, value in constants.items() if name not in own}
    given = [evolve(one, restrict=True) if one.name in promised else one for one in _parameters(function)]
    found = [*given, *_locals(function)]
    bare_table = Symbols(function, _by_name(found), constants)
    writes: dict[Symbol, list[Node]] = {symbol: [] for symbol in found}
    escaped: set[Symbol] = set()
    for change, target in _changes(function, takers):
        symbol = bare_table.resolve(target)
        if symbol is None:
            continue
        if change is None:
            escaped.add(symbol)
        else:
            writes[symbol].append(change)
    return Symbols(
        function,
        _by_name([evolve(symbol, writes=tuple(writes[symbol]), escapes=symbol in escaped) for symbol in found]),
        constants,
        steady,
        fixed | own | STANDARD,
        formulas or {},
        takers,
        casts or {},
    )


def is_constant(node: Node | None, table: Symbols) -> bool:
    """Whether the compiler knows an expression's value: numbers, the file's constants, template parameters, and names
    that are set to such once, put together without calls or loads."""
    if node is None or next(descendants(node, "call_expression", "subscript_expression", "pointer_expression"), None):
        return False
    return all(_is_constant_name(name, table) for name in descendants(node, "identifier", "field_expression"))


def _is_constant_name(name: Node, table: Symbols) -> bool:
    symbol = table.resolve(name) if name.type == "identifier" else None
    if symbol is None:
        return text(name) in table.constants or text(name) in table.fixed
    return symbol.space == "local" and symbol.fixed and not symbol.is_memory and is_constant(symbol.init, table)


def template_names(function: Node) -> frozenset[str]:
    """The template parameters that are in scope in a function definition."""
    found: set[str] = set()
    above = function.parent
    while above is not None:
        listing = above.child_by_field_name("parameters") if above.type == "template_declaration" else None
        if listing is not None:
            found |= {text(name) for name in descendants(listing, "identifier")}
        above = above.parent
    return frozenset(found)


def _by_name(found: list[Symbol]) -> Mapping[str, tuple[Symbol, ...]]:
    table: dict[str, tuple[Symbol, ...]] = {}
    for symbol in found:
        table[symbol.name] = (*table.get(symbol.name, ()), symbol)
    return table


def _parameters(function: Node) -> list[Symbol]:
    declarator = function.child_by_field_name("declarator")
    listing = declarator.child_by_field_name("parameters") if declarator is not None else None
    if listing is None:
        return []
    return [
        symbol
        for node in listing.named_children
        if node.type in ("parameter_declaration", "optional_parameter_declaration")
        for symbol in _declared(node, "parameter", function)
    ]


def _locals(function: Node) -> list[Symbol]:
    body = function.child_by_field_name("body")
    if body is None:
        return []
    found = []
    for node in descendants(body, "declaration"):
        qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
        scope = next((parent for parent in ancestors(node) if parent.type in SCOPES), function)
        found += _declared(node, "shared" if "__shared__" in qualifiers else "local", scope)
    return found


def _declared(node: Node, space: str, scope: Node) -> list[Symbol]:
    qualifiers = {text(child) for child in node.children if child.type == "type_qualifier"}
    storage = {text(child) for child in node.children if child.type == "storage_class_specifier"}
    found = []
    for declarator in node.children_by_field_name("declarator"):
        init = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        inner: Node | None = declarator.child_by_field_name("declarator") if init is not None else declarator
        pointer, dims, restrict = 0, [], False
        while inner is not None and inner.type != "identifier":
            if inner.type == "pointer_declarator":
                pointer += 1
            elif inner.type == "array_declarator":
                dims.append(inner.child_by_field_name("size"))
            elif inner.type not in ("reference_declarator", "parenthesized_declarator"):
                inner = None
                break
            restrict |= any(text(child) in ("__restrict__", "__restrict") for child in inner.children)
            inner = inner.child_by_field_name("declarator") or (
                inner.named_children[-1] if inner.named_children else None
            )
        if inner is None:
            continue
        if space == "parameter" and dims:
            pointer, dims = 1, []
        found.append(
            Symbol(
                name=text(inner),
                type=text(node.child_by_field_name("type")),
                pointer=pointer,
                dims=tuple(reversed(dims)),
                space=space,
                extern="extern" in storage,
                restrict=restrict,
                const=bool(qualifiers & {"const", "constexpr"}),
                declarator=inner,
                init=_single(init, node, pointer) if not dims else init,
                scope=scope,
            )
        )
    return found


def _single(init: Node | None, declaration: Node, pointer: int) -> Node | None:
    """The value of a number or pointer, also where it is written in brackets: ``int i{n}``, ``int i(n)``."""
    if init is None or init.type not in ("initializer_list", "argument_list") or len(init.named_children) != 1:
        return init
    named = declaration.child_by_field_name("type")
    plain = named is not None and (named.type != "type_identifier" or _WHOLE.fullmatch(text(named)) is not None)
    return init.named_children[0] if pointer or plain else init


def _changes(function: Node, takers: frozenset[str]) -> Iterator[tuple[Node | None, Node]]:
    """Pairs (changing expression, identifier); the expression is None where the name is given away."""
    for node in descendants(
        function, "assignment_expression", "update_expression", "pointer_expression", "call_expression"
    ):
        if node.type == "assignment_expression":
            target = bare(node.child_by_field_name("left"))
            if target is not None and target.type == "field_expression":
                target = bare(target.child_by_field_name("argument"))
            if target is not None and target.type == "identifier":
                yield node, target
        elif node.type == "update_expression":
            target = bare(node.child_by_field_name("argument"))
            if target is not None and target.type == "identifier":
                yield node, target
        elif node.type == "pointer_expression":
            target = bare(node.child_by_field_name("argument"))
            if text(node.child_by_field_name("operator")) == "&" and target is not None and target.type == "identifier":
                yield None, target
        else:
            yield from ((None, name) for name in _given_by_reference(node, takers))
    for node in descendants(function, "reference_declarator"):
        holder = node.parent
        value = bare(holder.child_by_field_name("value")) if holder is not None else None
        if value is not None and value.type == "identifier":
            yield None, value


def _given_by_reference(call: Node, takers: frozenset[str]) -> list[Node]:
    """The identifiers that a call may take by reference: those handed to a function of this file with a ``&``
    parameter, or to a ``swap``."""
    if callee(call) not in takers:
        return []
    given = [bare(argument) for argument in arguments(call)]
    return [argument for argument in given if argument is not None and argument.type == "identifier"]


_CAST = re.compile(
    r"\(?\*?\(?(?:reinterpret_cast<(?:const )?(\w+) ?\*>\(|\((?:const )?(\w+) ?\*\) ?\(?)&\(?(\w+)\)?\)*(?:\[0\])?\)*"
)


def cast_of(macro: Node) -> str:
    """``float4`` of a macro that is ``(reinterpret_cast<float4*>(&(value))[0])`` or ``*(float4*)(&(value))``, else
    nothing."""
    listing, body = macro.child_by_field_name("parameters"), text(macro.child_by_field_name("value")).strip()
    found = _CAST.fullmatch(body)
    names = [] if listing is None else [text(name) for name in listing.named_children]
    return (found[1] or found[2]) if found is not None and names == [found[3]] else ""


def takes_address(macro: Node) -> bool:
    """Whether a macro with parameters takes the address of one: ``reinterpret_cast<float4*>(&(value))[0]``."""
    listing = macro.child_by_field_name("parameters")
    names = [] if listing is None else [text(name) for name in listing.named_children if name.type == "identifier"]
    body = text(macro.child_by_field_name("value"))
    return any(re.search(rf"(?<!&)&\s*\(*\s*{name}\b", body) for name in names)


def reference_takers(root: Node) -> frozenset[str]:
    """The functions of a translation unit that have a reference parameter, and ``swap``."""
    found = {"swap"}
    for reference in descendants(root, "reference_declarator"):
        function = next((parent for parent in ancestors(reference) if parent.type == "function_declarator"), None)
        if function is not None:
            found.add(text(function.child_by_field_name("declarator")).split("::")[-1])
    return frozenset(found)
