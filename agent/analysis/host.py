"""What a host function does: its calls and launches in order, the loops around them, and where its buffers lie.

Only names are followed that the function itself declares once; a buffer that may lie in two places lies nowhere.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen
from tree_sitter import Node

from agent.analysis.syntax import LOOPS, arguments, bare, callee, contains, descendants, text

LAUNCH = "<<<>>>"
ALLOCATES = {
    "cudaMalloc": "device", "cudaMallocAsync": "device", "cudaMallocPitch": "device", "cudaMallocManaged": "managed",
    "cudaMallocHost": "pinned", "cudaHostAlloc": "pinned",
}  # fmt: skip
"""Functions that put the address of a new buffer where their first argument points."""

_LEAVES = ("cudaMemcpy", "printf", "cudaEvent", "cudaMemset", "cudaFree")
_HOST = frozenset(("malloc", "calloc", "realloc", "aligned_alloc"))
_NAMED = ("identifier", "function_declarator")  # `vector<float> v(n)` reads like the declaration of a function
_WRAPPERS = ("cast_expression", "parenthesized_expression")


@frozen(eq=False)
class Call:
    """A call, or a launch (named ``<<<>>>``). ``loops`` are the loop statements around it, outermost first;
    ``discarded`` says that nobody looks at what it returns."""

    name: str
    node: Node
    given: tuple[Node, ...]
    loops: tuple[Node, ...]
    discarded: bool


@frozen(eq=False)
class HostFunction:
    """``places`` says where a buffer lies that a variable points at: ``device``, ``managed``, ``pinned``, ``pageable``
    (``malloc``, ``new``, a vector) or ``stack``; variables that may point elsewhere are left out. ``sizes`` are the
    bytes that were asked for, as written."""

    node: Node
    calls: tuple[Call, ...]
    places: Mapping[str, str]
    sizes: Mapping[str, str]

    def named(self, *names: str) -> list[Call]:
        return [call for call in self.calls if call.name in names]

    def place(self, node: Node | None) -> str:
        """Where the buffer lies that an argument points into; empty where that is not known."""
        return self.places.get(variable(node), "")

    def inside(self, loop: Node) -> list[Call]:
        return [call for call in self.calls if contains(loop, call.node)]


def variable(node: Node | None) -> str:
    """The variable whose buffer an argument points into: ``p``, ``p + n``, ``&p[n]``, ``p.data()``, ``(void*)p``."""
    node = bare(node)
    while node is not None and node.type in ("cast_expression", "binary_expression", "pointer_expression",
                                             "subscript_expression", "parenthesized_expression"):  # fmt: skip
        address = node.type != "pointer_expression" or _operator(node) == "&"
        inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
        if node.type == "binary_expression" and _operator(node) == "+":
            inner = node.child_by_field_name("left")
        if not address or inner is None or (node.type == "pointer_expression" and bare(inner).type == "identifier"):  # type: ignore[union-attr]
            return ""
        if node.type == "subscript_expression" and (node.parent is None or node.parent.type != "pointer_expression"):
            return ""
        node = bare(inner)
    if node is not None and node.type == "call_expression":
        function = node.child_by_field_name("function")
        if function is not None and function.type == "field_expression" and not arguments(node):
            held = function.child_by_field_name("argument")
            return text(held) if text(function.child_by_field_name("field")) == "data" else ""
        if callee(node).endswith("_cast") and len(arguments(node)) == 1:
            return variable(arguments(node)[0])
    return text(node) if node is not None and node.type == "identifier" else ""


def host_function(node: Node) -> HostFunction:
    """Read a ``function_definition``."""
    calls = tuple(_calls(node))
    places: dict[str, set[str]] = {}
    sizes: dict[str, set[str]] = {}
    for name, place, size in (*_declared(node), *_assigned(node), *_allocated(calls)):
        places.setdefault(name, set()).add(place)
        if size:
            sizes.setdefault(name, set()).add(size)
    known = {name: found - {"empty"} for name, found in places.items()}
    return HostFunction(
        node,
        calls,
        {name: next(iter(found)) for name, found in known.items() if len(found) == 1 and found != {"unknown"}},
        {name: next(iter(found)) for name, found in sizes.items() if len(found) == 1},
    )


def _calls(function: Node) -> Iterator[Call]:
    around: list[Node] = []
    for node in descendants(function, "call_expression", *LOOPS):
        while around and around[-1].end_byte <= node.start_byte:
            around.pop()
        if node.type in LOOPS:
            around.append(node)
            continue
        launch = any(child.type == "kernel_call_syntax" for child in node.children)
        discarded = node.parent is not None and node.parent.type == "expression_statement"
        loops = tuple(loop for loop in around if _repeats(loop, node))
        yield Call(LAUNCH if launch else callee(node), node, tuple(arguments(node)), loops, discarded)


def _repeats(loop: Node, node: Node) -> bool:
    start, body = loop.child_by_field_name("initializer"), loop.child_by_field_name("body")
    if (
        body is not None
        and loop.type == "do_statement"
        and re.fullmatch(r"[( ]*(?:0|false)[) ]*", text(loop.child_by_field_name("condition")))
    ):
        return False
    return start is None or not contains(start, node)


def _declared(function: Node) -> Iterator[tuple[str, str, str]]:
    """(name, place, bytes) of each variable: ``empty`` where it points nowhere yet."""
    for node in descendants(function, "declaration", "parameter_declaration", "optional_parameter_declaration"):
        written = text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            inner: Node | None = declarator.child_by_field_name("declarator") if value is not None else declarator
            name, array = _name(inner)
            if not name:
                continue
            if node.type != "declaration":
                yield name, "unknown", ""
            elif array:
                yield name, "stack" if inner is not None and inner.type == "array_declarator" else "unknown", ""
            elif re.match(r"(?:std::)?vector\b", written) and inner is not None and inner.type in _NAMED:
                yield name, "pageable", ""
            elif value is None:
                yield name, "empty", ""
            else:
                yield (name, *_given(value))


def _name(declarator: Node | None) -> tuple[str, bool]:
    """(name, whether it is an array)"""
    array = False
    while declarator is not None and declarator.type != "identifier":
        array |= declarator.type == "array_declarator"
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((one for one in declarator.named_children if one.type == "identifier"), None)
    return text(declarator), array


def _assigned(function: Node) -> Iterator[tuple[str, str, str]]:
    for node in descendants(function, "assignment_expression"):
        left, right = bare(node.child_by_field_name("left")), node.child_by_field_name("right")
        if left is not None and left.type == "identifier" and right is not None:
            plain = _operator(node) == "="
            yield (text(left), *(_given(right) if plain else ("unknown", "")))


def _given(value: Node) -> tuple[str, str]:
    """(place, bytes) of what a pointer is set to."""
    inner: Node | None = bare(value)
    while inner is not None and inner.type in _WRAPPERS:
        inner = bare(inner.child_by_field_name("value"))
    if inner is None:
        return "unknown", ""
    if inner.type == "new_expression":
        return "pageable", ""
    if text(inner) in ("NULL", "nullptr", "0"):
        return "empty", ""
    if callee(inner).endswith("_cast") and len(arguments(inner)) == 1:
        return _given(arguments(inner)[0])
    if callee(inner) in _HOST:
        return "pageable", squeezed(arguments(inner)[0]) if callee(inner) == "malloc" and arguments(inner) else ""
    return "unknown", ""


def _allocated(calls: tuple[Call, ...]) -> Iterator[tuple[str, str, str]]:
    """What calls put where ``&p`` points; another call that takes ``&p`` may put anything there."""
    for call in calls:
        for at, argument in enumerate(call.given):
            name = taken(argument)
            if not name:
                continue
            if call.name in ALLOCATES and at == 0:
                yield name, ALLOCATES[call.name], squeezed(call.given[1]) if len(call.given) > 1 else ""
            elif not call.name.startswith(_LEAVES) and not call.name.endswith("_cast"):
                yield name, "unknown", ""


def taken(node: Node | None) -> str:
    """``p`` of ``&p`` and ``(void**)&p``."""
    node = bare(node)
    while node is not None and node.type == "cast_expression":
        node = bare(node.child_by_field_name("value"))
    if callee(node).endswith("_cast") and node is not None and len(arguments(node)) == 1:
        return taken(arguments(node)[0])
    if node is None or node.type != "pointer_expression" or _operator(node) != "&":
        return ""
    inner = bare(node.child_by_field_name("argument"))
    return text(inner) if inner is not None and inner.type == "identifier" else ""


def squeezed(node: Node | None) -> str:
    """A node's text without blanks."""
    return "".join(text(node).split())


def _operator(node: Node) -> str:
    return text(node.child_by_field_name("operator"))
