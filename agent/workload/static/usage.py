"""How a kernel uses its pointer parameters: what is read and written, and which values serve as indices of what.

Read off the syntax alone; where that cannot tell, a parameter counts as both read and written.
"""

import itertools
import re
from collections.abc import Iterator

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.nodes import ancestors, declared_name, kernel_node, text_of, walk
from agent.source.nodes import field as child
from agent.workload import types
from agent.workload.static import accesses, struct_use
from agent.workload.static.accesses import Body, pointer_root, root
from agent.workload.static.deciding import decided
from agent.workload.static.device_shapes import shapes


@frozen
class Indexing:
    """Values of ``holder`` serve as indices of ``target``; ``exact`` if a value is the whole index, ``rows`` if two
    neighbouring values bound a walk (CSR row pointers)."""

    holder: str
    target: str
    exact: bool
    rows: bool


@frozen
class Usage:
    """Parameters (and symbols) that are read, those written, and who indexes whom. ``bounds`` hold loop bounds, the
    values of ``turning`` decide whether a loop goes on, those of ``deciding`` any branch that is followed, or one that
    may be: they are handed to a function. ``members`` are the paths of pointers in structs that are looked at,
    ``mentioned`` all paths that are named, ``structs`` the parameters that they begin with. ``before`` are surely read
    before they are written, if they are."""

    read: frozenset[str]
    written: frozenset[str]
    indexing: tuple[Indexing, ...]
    bounds: frozenset[str]
    turning: frozenset[str] = frozenset()
    deciding: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()
    structs: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()

    def role(self, name: str) -> tuple[bool, bool]:
        """Whether a parameter, or a pointer in a struct, is read and written; both where it is not looked at."""
        known = "." not in name or name in self.members
        return (name in self.read, name in self.written) if known else (True, True)

    def uses(self, path: str) -> bool:
        """Whether a member of a struct is named, or its struct is not looked at."""
        return path.split(".")[0].split("[")[0] not in self.structs or struct_use.touched(path, self.mentioned)


def usage(document: Document, kernel: Kernel, extra: frozenset[str] = frozenset()) -> Usage:
    """How ``kernel`` uses its pointer parameters and the ``extra`` names (device symbols)."""
    pointers = {p.name for p in kernel.parameters if p.pointer_depth or types.is_texture(p)} | extra
    inside = struct_use.paths(document, kernel)
    pointers |= inside.pointers.keys()
    const = frozenset(p.name for p in kernel.parameters if p.const) | {
        path for path, constant in inside.pointers.items() if constant
    }
    try:
        node = child(kernel_node(document, kernel), "body")
    except SourceError:
        node = None
    levels = {p.name: p.pointer_depth for p in kernel.parameters if p.arrays}
    body = Body(document.text, {name: name for name in pointers}, const, shapes(document), levels)
    if node is None or any(0 < count < levels[name] for name, count in accesses.subscripted(node, body)):
        everything = frozenset(pointers)
        return Usage(everything, everything - const, (), frozenset(), everything, everything)
    accesses.find_aliases(node, body)
    read, written, before = accesses.accesses(node, body)
    mentioned = struct_use.seen(node, inside, body.text)
    handed_on = {path for path in inside.pointers if _within(path, mentioned & inside.structs)}
    read, written = read | handed_on, written | handed_on
    _find_taints(node, body)
    indexing, bounds = _indexing(node, body)
    told = decided(node, body.aliases, _held(node, body), body.text)
    members = frozenset(inside.pointers)
    turning, deciding = told[0], told[1] | handed_on
    return Usage(
        frozenset(read), frozenset(written) - const, indexing, frozenset(bounds), turning, deciding, members, mentioned,
        inside.roots, frozenset(before),
    )  # fmt: skip


def _within(path: str, structs: frozenset[str]) -> bool:
    """Whether a path lies in a struct that is handed on as a whole."""
    return any(path.startswith(f"{one}.") for one in structs)


def _find_taints(node: Node, body: Body) -> None:
    """Locals that hold loaded values."""
    for part in walk(node):
        if part.type in ("if_statement", "conditional_expression"):
            condition = child(part, "condition")
            body.checked |= _compared(condition, body) if condition is not None else set()
    for _ in range(3):
        for part in walk(node):
            if part.type == "init_declarator":
                name, value = declared_name(child(part, "declarator")), child(part, "value")
            elif part.type == "assignment_expression":
                left = child(part, "left")
                name = left if left is not None and left.type == "identifier" else None
                value = child(part, "right")
            else:
                continue
            if name is not None and value is not None and body.of(name) not in body.aliases:
                found = _loads(value, body)
                if found:
                    body.tainted.setdefault(body.of(name), set()).update(found)


def _held(node: Node, body: Body) -> dict[str, set[str]]:
    """Locals that hold something of a buffer, worked on in any way: masked and clamped values still decide."""
    found: dict[str, set[str]] = {}
    for _ in range(3):
        for part in walk(node):
            target, value = None, None
            if part.type == "init_declarator":
                target, value = declared_name(child(part, "declarator")), child(part, "value")
            elif part.type == "assignment_expression":
                target, value = child(part, "left"), child(part, "right")
            if target is None or value is None or target.type != "identifier" or body.of(target) in body.aliases:
                continue
            loaded = {root for one in _value_parts(value) if (root := _loaded(one, body)) is not None}
            for one in _value_parts(value):
                loaded |= found.get(body.of(one), set()) if one.type == "identifier" else set()
            if loaded:
                found.setdefault(body.of(target), set()).update(loaded)
    return found


def _loaded(node: Node, body: Body) -> str | None:
    """The buffer that a part of an expression loads from."""
    if node.type == "subscript_expression" or (node.type == "pointer_expression" and body.of(node).startswith("*")):
        return root(child(node, "argument") or node, body)
    return None


def _compared(condition: Node, body: Body) -> set[str]:
    found = set()
    for part in walk(condition):
        if part.type == "binary_expression" and body.of(child(part, "operator") or part.children[1]) in (
            "<",
            "<=",
            ">",
            ">=",
        ):
            found |= {body.of(inner) for inner in part.named_children if inner.type == "identifier"}
    return found


def _loads(node: Node, body: Body) -> set[tuple[str, bool]]:
    """(holder, exact) for the loaded values that decide ``node``; what is clamped or wrapped is under control."""
    text = body.of(node)
    if re.search(r"%|\bmin\b|\bmax\b|\bclamp\b|(?<!&)&(?!&)|\bf?min\w?\(|\bf?max\w?\(", text):
        return set()
    bare = node
    while bare.type in ("parenthesized_expression", "cast_expression") and bare.named_children:
        bare = bare.named_children[-1]
    found: set[tuple[str, bool]] = set()
    for part in _value_parts(node):
        exact = part == bare
        if part.type == "subscript_expression" or part.type == "pointer_expression":
            holder = root(child(part, "argument") or part, body)
            if holder is not None:
                found.add((holder, exact))
        elif part.type == "identifier":
            inherited = body.tainted.get(body.of(part), set())
            found |= {(holder, was and exact) for holder, was in inherited}
    return found


def _value_parts(node: Node) -> Iterator[Node]:
    """Parts whose value goes into the value of ``node``: not the indices of loads."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        if part.type not in ("subscript_expression", "pointer_expression", "comparison", "lambda_expression"):
            stack.extend(part.named_children)


def _indexing(node: Node, body: Body) -> tuple[tuple[Indexing, ...], set[str]]:
    bounds: set[str] = set()
    for part in walk(node):
        if part.type in ("for_statement", "while_statement"):
            _walk_bounds(part, body, bounds)
    found: dict[Indexing, None] = {}
    for part in walk(node):
        found |= dict.fromkeys(_offsets(part, body))
        if part.type != "subscript_expression":
            continue
        base, indices = child(part, "argument"), child(part, "indices") or child(part, "index")
        target = root(base, body) if base is not None else None
        if target is None or indices is None:
            continue
        index = (
            indices.named_children[0]
            if indices.type == "subscript_argument_list" and indices.named_children
            else indices
        )
        for indexing in _of_index(index, target, body):
            found[indexing] = None
    return tuple(found), bounds


def _offsets(sum_node: Node, body: Body) -> Iterator[Indexing]:
    """``weights + id[i] * n``: the same as an index, of which a value is the whole only in ``*(weights + id[i])``."""
    if sum_node.type != "binary_expression" or body.of(child(sum_node, "operator") or sum_node.children[1]) not in "+-":
        return
    for pointer, offset in itertools.permutations(sum_node.named_children[:2], 2):
        target = pointer_root(pointer, body)
        if target is None or pointer_root(offset, body) is not None:
            continue
        above = sum_node.parent
        while above is not None and above.type == "parenthesized_expression":
            above = above.parent
        direct = above is not None and above.type == "pointer_expression" and body.of(above).startswith("*")
        for found in _of_index(offset, target, body):
            yield Indexing(found.holder, target, found.exact and direct, found.rows)


def _of_index(index: Node, target: str, body: Body) -> Iterator[Indexing]:
    names = {body.of(part) for part in _value_parts(index) if part.type == "identifier"}
    for name in names & body.rows.keys():
        yield Indexing(body.rows[name], target, index.type == "identifier", True)
    if names & body.checked & body.tainted.keys():
        return
    for holder, exact in _loads(index, body):
        if not any(body.rows.get(name) == holder for name in names):
            yield Indexing(holder, target, exact, False)


def _walk_bounds(loop: Node, body: Body, bounds: set[str]) -> None:
    """``for (int i = offsets[row]; i < offsets[row + 1]; ...)``: i walks the range between two values of one buffer."""
    condition = child(loop, "condition")
    if condition is None:
        return
    inner = child(condition, "value") or condition
    comparison = next((part for part in walk(inner) if part.type == "binary_expression"), None)
    left, right = (child(comparison, side) if comparison is not None else None for side in ("left", "right"))
    if left is None or right is None:
        return
    ends = {holder for holder, _ in _loads(right, body)}
    first = child(loop, "initializer")
    starts: set[str] = set()
    if first is not None:
        for part in walk(first):
            value = child(part, "value") or child(part, "right")
            if part.type in ("init_declarator", "assignment_expression") and value is not None:
                starts |= {holder for holder, _ in _loads(value, body)}
    if left.type == "identifier":
        starts |= {holder for holder, _ in body.tainted.get(body.of(left), set())}
        for holder in starts & ends:
            body.rows[body.of(left)] = holder
    bounds |= ends - starts


def device_symbols(document: Document) -> Iterator[tuple[str, str, list[str], bool, str, int]]:
    """File-level ``__constant__``/``__device__`` variables: name, type, extents, constant?, initialiser, line."""
    for node in walk(document.tree.root_node):
        if node.type != "declaration" or any(above.type == "function_definition" for above in ancestors(node)):
            continue
        text = text_of(document.text, node)
        head = text.split("=")[0]
        constant = "__constant__" in head
        if not (constant or re.search(r"\b__device__\b|\b__managed__\b", head)) or "__shared__" in head:
            continue
        type_node = child(node, "type")
        for declarator in node.children_by_field_name("declarator"):
            value = child(declarator, "value") if declarator.type == "init_declarator" else None
            inner = child(declarator, "declarator") if declarator.type == "init_declarator" else declarator
            initial = text_of(document.text, value) if value is not None else ""
            name = declared_name(inner)
            if inner is None or name is None or type_node is None or inner.type == "function_declarator":
                continue
            extents = re.findall(r"\[([^\]]*)\]", text_of(document.text, inner))
            if inner.type == "pointer_declarator":
                continue
            immutable = constant or re.search(r"\bconst(expr)?\b", head) is not None
            yield (
                text_of(document.text, name), text_of(document.text, type_node), extents, immutable, initial,
                node.start_point.row + 1,
            )  # fmt: skip
