"""Launches that do not name their kernel in front of ``<<<``: through a pointer, and by calls of the runtime and of the
driver.

Only what the function around says is followed: what a pointer is set to there, and which members of a
``cudaLaunchConfig_t`` are set once; and by which names the file asks the driver for its kernels. What is not fixed that
way stays as it is written (``config.gridDim``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from tree_sitter import Node

from agent.source.launch import LaunchSite
from agent.source.launches import bare_name, function_name, template_arguments
from agent.source.nodes import LOOPS, ancestors, declared_name, descendants, enclosing, first_error, span_of, text_of
from agent.source.span import Span

if TYPE_CHECKING:
    from agent.source.document import Document

_CALL = re.compile(rb"\b(?:cudaLaunch(?:Cooperative)?Kernel(?:ExC?)?|cuLaunch(?:Cooperative)?Kernel(?:Ex)?)(?=\s*[(<])")
_NAMED = re.compile(rb"\b(?:cuModuleGetFunction|cuLibraryGetKernel|cudaLibraryGetKernel)\s*\(")
"""Calls that set what their first argument leads to, to the kernel of the name that is their third."""
_MANGLED = re.compile(r"_ZN?(\d+)")
_FIELDS = ("gridDim", "blockDim", "dynamicSmemBytes", "stream")
_VARIABLE = re.compile(r"[.\[]")
_DEPTH = 4
_MOST = 64


@frozen(eq=False)
class _Function:
    """A function and what it sets: for each name (``f``, ``config.gridDim.x``, without blanks) the values in order.
    ``scopes`` are the blocks in which a variable of a name is declared. ``asked``: see :func:`_asked`."""

    document: "Document"
    node: Node
    sets: dict[str, list[Node]]
    scopes: dict[str, list[Span]]
    asked: Mapping[str, list[Node]] = field(factory=dict)

    def values(self, name: str, use: Node) -> list[Node]:
        """What is set where a name means what it means at ``use``: another block may have a variable of that name."""
        around = [one for one in self.scopes.get(_VARIABLE.split(name)[0], ()) if _holds(one, use)]
        where = min(around, key=len, default=span_of(self.node))
        return [value for value in self.sets.get(name, ()) if _holds(where, value)]

    def text(self, node: Node) -> str:
        return text_of(self.document.text, node)


def indirect_launches(document: "Document") -> tuple[LaunchSite, ...]:
    """The launches of the document's own kernels that are made in such a way, in text order; where a pointer may hold
    several kernels, one for each."""
    names = frozenset(kernel.name for kernel in document.kernels.as_read)
    found = [*_pointed(document, names), *_called(document, names)] if names else []
    return tuple(sorted(found, key=lambda site: site.span.start))


def launched_at(document: "Document", kernel: str) -> tuple[int, ...]:
    """The lines at which a kernel of that bare name is launched, in whatever way."""
    sites = [*document.launches, *document.indirect_launches]
    return tuple(sorted({site.line for site in sites if site.kernel == kernel}))


def _pointed(document: "Document", names: frozenset[str]) -> Iterator[LaunchSite]:
    launches = document.launches
    for at, read in enumerate(launches.as_read):
        if read.kernel in names or read.function_span is None:
            continue
        site = launches[at]
        node = document.tree.root_node.descendant_for_byte_range(site.span.start, site.span.end)
        function = _function(document, node) if node is not None else None
        callee = node.child_by_field_name("function") if node is not None else None
        if function is not None and callee is not None:
            for kernel, template in _kernels(callee, function, names):
                yield evolve(site, kernel=kernel, template_arguments=template, how="a pointer")


def _called(document: "Document", names: frozenset[str]) -> Iterator[LaunchSite]:
    calls = list(_CALL.finditer(document.blanked))[:_MOST]
    asked = _asked(document) if calls else {}
    functions: dict[int, _Function | None] = {}
    for match in calls:
        named = document.tree.root_node.descendant_for_byte_range(match.start(), match.end())
        call = enclosing(named, "call_expression") if named is not None and named.type == "identifier" else None
        callee = call.child_by_field_name("function") if call is not None else None
        if call is None or callee is None or callee.start_byte != match.start():
            continue
        outer = enclosing(call, "function_definition")
        if outer is not None and outer.start_byte not in functions:
            functions[outer.start_byte] = _function(document, call, asked)
        function = functions.get(outer.start_byte) if outer is not None else None
        if function is not None:
            yield from _sites(call, match.group().decode(), function, names)


def _asked(document: "Document") -> dict[str, list[Node]]:
    """By variable, the names of the kernels that it is asked to hold, anywhere in the file."""
    found: dict[str, list[Node]] = {}
    for match in list(_NAMED.finditer(document.blanked))[:_MOST]:
        named = document.tree.root_node.descendant_for_byte_range(match.start(), match.start() + 1)
        call = enclosing(named, "call_expression") if named is not None else None
        given = _given(call) if call is not None else []
        if len(given) == 3 and given[0].type == "pointer_expression" and given[2].type == "string_literal":
            inner = given[0].child_by_field_name("argument")
            name = "".join(text_of(document.text, inner).split()).replace("->", ".") if inner is not None else ""
            found.setdefault(name, []).append(given[2])
    return found


def _function(document: "Document", node: Node, asked: Mapping[str, list[Node]] | None = None) -> _Function | None:
    function = enclosing(node, "function_definition")
    if function is None:
        return None
    sets: dict[str, list[Node]] = {}
    scopes: dict[str, list[Span]] = {}
    for one in descendants(function, "declaration"):
        block = enclosing(one, "compound_statement")
        for declarator in one.children_by_field_name("declarator") if block is not None else ():
            name = declared_name(declarator.child_by_field_name("declarator") or declarator)
            if name is not None and block is not None:
                scopes.setdefault(text_of(document.text, name), []).append(span_of(block))
    for one in descendants(function, "init_declarator", "assignment_expression"):
        left = one.child_by_field_name("declarator") or one.child_by_field_name("left")
        value = one.child_by_field_name("value") or one.child_by_field_name("right")
        if left is None or value is None:
            continue
        while "declarator" in left.type and (inner := _inner(left)) is not None:
            left = inner
        sets.setdefault("".join(text_of(document.text, left).split()).replace("->", "."), []).append(value)
    return _Function(document, function, sets, scopes, asked or {})


def _holds(span: Span, node: Node) -> bool:
    return span.start <= node.start_byte < span.end


def _inner(declarator: Node) -> Node | None:
    """What stands in ``*f``, ``(*f)(int)`` and ``fs[2]``."""
    inner = declarator.child_by_field_name("declarator")
    return inner or next((one for one in declarator.named_children if one.type != "comment"), None)


def _kernels(
    node: Node, function: _Function, names: frozenset[str], depth: int = 0
) -> list[tuple[str, tuple[str, ...]]]:
    """Name and template arguments of each kernel that an expression may stand for."""
    if depth > _DEPTH:
        return []
    name = bare_name(function.document.text, node)
    if node.type in ("identifier", "qualified_identifier", "template_function") and name in names:
        return [(name, template_arguments(function.document.text, node))]
    if node.type == "string_literal":
        told = _kernel_of(function.text(node).strip('"'))
        return [(told, ())] if told in names else []
    if node.type == "identifier":
        below: Sequence[Node] = function.values(name, node) or _named_by(name, function)
    elif node.type == "field_expression":
        below = _named_by("".join(function.text(node).split()).replace("->", "."), function)
    elif node.type == "subscript_expression":
        held = node.child_by_field_name("argument")
        lists = function.values(function.text(held), node) if held is not None else []
        below = [one for value in lists for one in value.named_children]
    elif node.type == "conditional_expression":
        below = [one for one in map(node.child_by_field_name, ("consequence", "alternative")) if one is not None]
    elif node.type == "call_expression" and "_cast" in function.text(node).partition("(")[0]:
        below = _given(node)
    elif node.type in ("cast_expression", "pointer_expression", "parenthesized_expression"):
        inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
        below = [inner] if inner is not None else [one for one in node.named_children if one.type != "comment"]
    else:
        below = []
    return list(dict.fromkeys(found for one in below for found in _kernels(one, function, names, depth + 1)))


def _named_by(name: str, function: _Function) -> list[Node]:
    """The names by which a variable is set to kernels: in the function where it is, else anywhere."""
    everywhere = function.asked.get(name, [])
    here = [one for one in everywhere if _holds(span_of(function.node), one)]
    head = function.node.child_by_field_name("declarator")
    own = name in function.scopes or (head is not None and name in re.findall(r"\w+", function.text(head)))
    return here if here or own else everywhere


def _kernel_of(name: str) -> str:
    """The kernel's own name, where the driver is asked for the mangled one."""
    mangled = _MANGLED.match(name)
    return name[mangled.end() : mangled.end() + int(mangled[1])] if mangled is not None else name


def _given(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return [one for one in arguments.named_children if one.type != "comment"] if arguments is not None else []


def _sites(call: Node, how: str, function: _Function, names: frozenset[str]) -> Iterator[LaunchSite]:
    given = _given(call)
    configured, driver = "Ex" in how, how.startswith("cuL")
    if len(given) < (2 if configured else 9 if driver else 4):
        return
    kernel, passed = (given[1], given[2:]) if configured else (given[0], [])
    if configured:
        parts = (_configured_for_driver if driver else _configured)(given[0], function)
    elif driver:
        parts = [_axes(given[at : at + 3], function) for at in (1, 4)] + [_part(one, function) for one in given[7:9]]
    else:
        parts = [_part(one, function) for one in (*given[1:3], *given[4:6])]
    if driver or not configured or how.endswith("ExC"):
        at = 2 if configured else 9 if driver else 3
        passed = _packed(given[at], function) if len(given) > at else []
    grid, block, shared, stream = [*parts, None, None][:4]
    error = first_error(call)
    if grid is None or block is None:
        return
    for name, template in _kernels(kernel, function, names):
        yield LaunchSite(
            kernel=name,
            callee=function.text(kernel),
            template_arguments=template,
            grid=grid[0],
            block=block[0],
            shared=shared[0] if shared else None,
            stream=stream[0] if stream else None,
            arguments=tuple(function.text(one) for one in passed),
            span=span_of(call),
            grid_span=grid[1],
            block_span=block[1],
            shared_span=shared[1] if shared else None,
            argument_spans=tuple(span_of(one) for one in passed),
            line=call.start_point.row + 1,
            function=function_name(function.document.text, function.node),
            function_span=span_of(function.node),
            loops=tuple(span_of(one) for one in ancestors(call) if one.type in LOOPS)[::-1],
            damage=f"a parse error at line {error.start_point.row + 1}" if error else None,
            how=how,
            cluster=_cluster(function) if configured else None,
        )


Part = tuple[str, Span] | None


def _part(node: Node, function: _Function) -> Part:
    return function.text(node), span_of(node)


def _axes(nodes: Sequence[Node], function: _Function) -> Part:
    """Three numbers as a grid."""
    return f"dim3({', '.join(map(function.text, nodes))})", Span(nodes[0].start_byte, nodes[-1].end_byte)


def _configured_for_driver(node: Node, function: _Function) -> list[Part]:
    """The same of ``&config`` where that is the driver's: its axes are members of their own."""
    inner = node.child_by_field_name("argument") if node.type == "pointer_expression" else node
    name = function.text(inner or node)
    found: list[Part] = []
    for field_name in ("gridDim", "blockDim"):
        axes = [function.values(f"{name}.{field_name}{axis}", node) for axis in "XYZ"]
        if not all(len(values) <= 1 for values in axes) or not any(axes):
            found.append((f"{name}.{field_name}", span_of(node)))
            continue
        written = ", ".join(function.text(values[0]) if values else "1" for values in axes)
        found.append((f"dim3({written})", next(span_of(values[0]) for values in axes if values)))
    for field_name in ("sharedMemBytes", "hStream"):
        values = function.values(f"{name}.{field_name}", node)
        found.append(_part(values[0], function) if len(values) == 1 else None)
    return found


def _configured(node: Node, function: _Function) -> list[Part]:
    """Grid, block, shared bytes and stream of ``&config``, each as it is set."""
    inner = node.child_by_field_name("argument") if node.type == "pointer_expression" else node
    name = function.text(inner or node)
    return [_set(name, field, place, node, function) for place, field in enumerate(_FIELDS)]


def _set(name: str, field: str, place: int, at: Node, function: _Function) -> Part:
    whole = function.values(f"{name}.{field}", at)
    axes = [function.values(f"{name}.{field}.{axis}", at) for axis in "xyz"]
    if len(whole) == 1 and not any(axes):
        return _as_grid(whole[0], function), span_of(whole[0])
    if not whole and any(axes) and all(len(values) <= 1 for values in axes):
        written = ", ".join(function.text(values[0]) if values else "1" for values in axes)
        return f"dim3({written})", next(span_of(values[0]) for values in axes if values)
    listed = _listed(name, field, place, at, function)
    if not whole and not any(axes) and listed is not None:
        return _as_grid(listed, function), span_of(listed)
    optional = place > 1 and not whole
    return None if optional else (f"{name}.{field}", span_of(at))


def _listed(name: str, field: str, place: int, at: Node, function: _Function) -> Node | None:
    """What ``cudaLaunchConfig_t config = {...}`` says of a member."""
    lists = [value for value in function.values(name, at) if value.type == "initializer_list"]
    parts = [one for one in lists[0].named_children if one.type != "comment"] if len(lists) == 1 else []
    for one in parts:
        designator, value = one.child_by_field_name("designator"), one.child_by_field_name("value")
        if one.type == "initializer_pair" and designator is not None and function.text(designator) == f".{field}":
            return value
    return parts[place] if place < len(parts) and all(one.type != "initializer_pair" for one in parts) else None


def _as_grid(node: Node, function: _Function) -> str:
    written = function.text(node)
    return f"dim3({written[1:-1]})" if node.type == "initializer_list" else written


def _packed(node: Node, function: _Function) -> list[Node]:
    """The arguments behind an array of their addresses, where one list names them."""
    lists = [value for value in function.values(function.text(node), node) if value.type == "initializer_list"]
    addresses = [one for one in lists[0].named_children if one.type != "comment"] if len(lists) == 1 else []
    found = []
    for one in addresses:
        inner: Node | None = one
        while inner is not None and inner.type == "cast_expression":
            inner = inner.child_by_field_name("value")
        found.append((inner.child_by_field_name("argument") if inner is not None else None) or one)
    return found


def _cluster(function: _Function) -> str | None:
    """The clusters that an attribute asks for somewhere in the function, as they are set."""
    if b"cudaLaunchAttributeClusterDimension" not in (function.node.text or b""):
        return None
    for name, values in function.sets.items():
        if name.endswith(".clusterDim") and len(values) == 1:
            return _as_grid(values[0], function)
    axes = [
        [v for name, values in function.sets.items() if name.endswith(f".clusterDim.{a}") for v in values]
        for a in "xyz"
    ]
    if any(axes) and all(len(values) <= 1 for values in axes):
        return f"dim3({', '.join(function.text(values[0]) if values else '1' for values in axes)})"
    return "?"
