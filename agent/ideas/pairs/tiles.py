"""A block's threads read the list together, a tile at a time, and meet its elements in shared memory."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.affine import number
from agent.analysis.guards import Guard, guards
from agent.analysis.syntax import bare, contains, descendants, enclosing, statements, text
from agent.ideas.pairs.site import Site
from agent.ideas.product.texts import replaced
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    indent_of,
    indent_unit,
    insert_after,
    insert_before,
    remove,
    replace,
    source_text,
)
from agent.source.edits import Edit
from agent.source.span import Span

SHARED_BYTES = 48 * 1024


@frozen(eq=False)
class Tiles:
    """``streams`` holds one read of each list. ``guard`` is what decides whether a thread has an element: ``if (i >= n)
    return;`` or ``if (i < n) { ... }``; ``bound`` is ``n``, as spelled. None where every thread has one."""

    site: Site
    streams: tuple[Access, ...]
    guard: Guard | None
    bound: str


def tiles(site: Site) -> Tiles | str:
    """What the tiles are made from, or why the list is not staged."""
    view, loop = site.view, site.pairs.loop
    streams: dict[object, Access] = {}
    for access in site.pairs.streams:
        assert access.index is not None
        if access.index.coefficient(loop.atom.name) != number(1):
            return f"`{text(access.node)}` does not run along neighbouring elements"
        streams.setdefault((access.root, access.index), access)
    written = {one.root for one in view.facts.accesses if one.writes}
    if any(one.root in written for one in streams.values()):
        return "the list is written by the kernel as well"
    sizes = [view.element_bytes(one) for one in streams.values()]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or sum(known) * site.threads > SHARED_BYTES:
        return "a tile of the list does not fit, or its element's size is not known"
    found = [one for one in guards(loop.node, view.facts.body) if one.kind != "loop"]
    if not found:
        return Tiles(site, tuple(streams.values()), None, "")
    bound = _bound(found[0], site)
    if len(found) > 1 or bound is None:
        return "more than one bound of the thread's index decides who reaches the loop"
    return Tiles(site, tuple(streams.values()), found[0], bound)


def _bound(guard: Guard, site: Site) -> str | None:
    """``n`` of a guard that lets a thread through where its index is below ``n``."""
    condition = bare(guard.condition)
    if condition is None or condition.type != "binary_expression":
        return None
    left, right = bare(condition.child_by_field_name("left")), bare(condition.child_by_field_name("right"))
    operator = text(condition.child_by_field_name("operator"))
    symbols = site.view.facts.symbols
    if left is None or right is None:
        return None
    if left.type == "identifier" and symbols.resolve(left) is site.own.symbol and right.type == "identifier":
        wanted, bound = ("<" if guard.taken else ">="), right
    elif right.type == "identifier" and symbols.resolve(right) is site.own.symbol and left.type == "identifier":
        wanted, bound = (">" if guard.taken else "<="), left
    else:
        return None
    symbol = symbols.resolve(bound)
    steady = symbol is None or (symbol.space == "parameter" and symbol.fixed)
    return text(bound) if operator == wanted and steady else None


def staged(found: Tiles) -> Rewrite:
    """The kernel with the list in shared memory, a tile of as many elements as the block has threads at a time."""
    site = found.site
    document = site.view.document
    declared = "\n".join(
        f"__shared__ {access.element} {name}[{site.threads}];" for access, name in _named(found).values()
    )
    first = statements(site.view.facts.body)[0]
    return Rewrite((insert_before(document, first, declared), *_everyone_stays(found), _loop(found)))


def _named(found: Tiles) -> dict[int, tuple[Access, str]]:
    """(read, name of its tile) by where the read stands first."""
    document, kernel = found.site.view.document, found.site.view.kernel
    taken: list[str] = []
    for access in found.streams:
        taken.append(fresh_local(f"{access.name}_tile", document, kernel, *taken))
    return {access.node.start_byte: (access, name) for access, name in zip(found.streams, taken, strict=True)}


def _everyone_stays(found: Tiles) -> list[Edit]:
    """Threads without an element work along with the first one up to the loop's end: they help to stage, and a barrier
    waits for them."""
    site, guard = found.site, found.guard
    document, kernel = site.view.document, site.view.kernel
    if guard is None:
        return []
    place, works = (fresh_local(name, document, kernel) for name in ("place", "works"))
    declared = enclosing(site.own.symbol.declarator, "declaration")
    init = site.own.symbol.init
    assert declared is not None and init is not None
    kind = "int" if site.own.symbol.type == "auto" else site.own.symbol.type
    edits = [
        insert_before(
            document,
            declared,
            f"const {kind} {place} = {source_text(document, init)};\n"
            f"const bool {works} = {place} < {found.bound};  // the other threads only help to read the list",
        ),
        replace(init, f"{works} ? {place} : 0"),
        insert_after(document, site.pairs.loop.node, f"if (!{works}) return;"),
    ]
    if guard.kind == "exit":
        edits.append(remove(document, guard.node))
    else:
        inner = guard.node.child_by_field_name("consequence")
        assert inner is not None
        edits.append(Edit(Span(guard.node.start_byte, inner.start_byte), b""))
    return edits


def _loop(found: Tiles) -> Edit:
    """The loop as one over tiles around one over a tile's elements."""
    site = found.site
    document, kernel, loop = site.view.document, site.view.kernel, site.pairs.loop
    name, kind = loop.variable.name, loop.variable.type
    first, last = (fresh_local(f"{word}_{name}", document, kernel) for word in ("first", "last"))
    thread = fresh_local("thread", document, kernel)
    unit, margin = indent_unit(document, kernel), indent_of(document, loop.node)
    bound = source_text(document, loop.bound_node)
    end = bound if loop.relation == "<" else f"{bound} + 1"
    swaps: dict[int, tuple[int, str]] = {}
    copies = []
    for access, tile in _named(found).values():
        moved = {node.start_byte: (node.end_byte, f"({first} + {thread})") for node in _uses(access.node, site)}
        copies.append(f"{tile}[{thread}] = {replaced(document, access.node, access.node, moved)};")
        for other in site.pairs.streams:
            if other.root is access.root and other.index == access.index:
                swaps[other.node.start_byte] = other.node.end_byte, f"{tile}[{name} - {first}]"
    copies = [line.replace(f"[({first} + {thread})]", f"[{first} + {thread}]") for line in copies]
    body = replaced(document, loop.body, loop.body, swaps)
    inner = f"for ({kind} {name} = {first}; {name} < {last}; ++{name}) {body}"
    staging = f"if ({first} + {thread} < {end}) "
    lines = [
        f"const int {thread} = threadIdx.x;",
        f"for ({kind} {first} = {_start(site)}; {first} < {end}; {first} += {site.threads}) {{",
        f"{unit}__syncthreads();  // nobody reads the last tile any more",
        f"{unit}{staging}{copies[0]}" if len(copies) == 1 else f"{unit}{staging}{{",
        *(f"{unit}{unit}{line}" for line in copies if len(copies) > 1),
        *([f"{unit}}}"] if len(copies) > 1 else []),
        f"{unit}__syncthreads();",
        f"{unit}const {kind} {last} = {first} + {site.threads} < {end} ? {first} + {site.threads} : {end};",
        *(f"{unit}{line}" if line.strip() else line for line in inner.split("\n")),
        "}",
    ]
    return replace(loop.node, f"\n{margin}".join(lines))


def _start(site: Site) -> str:
    header = site.pairs.loop.node.child_by_field_name("initializer")
    init = site.pairs.loop.variable.init
    if header is None or init is None or not contains(header, init):
        init = None if header is None else header.child_by_field_name("right")
    assert init is not None
    return source_text(site.view.document, init)


def _uses(node: Node, site: Site) -> list[Node]:
    symbols = site.view.facts.symbols
    return [name for name in descendants(node, "identifier") if symbols.resolve(name) is site.pairs.loop.variable]
