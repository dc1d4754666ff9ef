"""A counter from which each thread takes a place of its own: `out[atomicAdd(count, 1)] = v`."""

import re
from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.accesses import Access
from agent.analysis.patterns.straight import Piece, flat
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import LOOPS, ancestors, arguments, bare, callee, contains, text
from agent.ideas.atomics.site import Atomics, touched
from agent.ideas.atomics.total import WARP, one_target, several_threads, symbols_in
from agent.ideas.elements.pieces import at, condition, given, lines_for, used
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indented, replace_between, source_text
from agent.ideas.view import View

ONES = ("1", "1u", "1U", "1ull", "1ULL")
BRANCHES = (*LOOPS, "if_statement", "conditional_expression", "switch_statement")
TYPES = ("int", "unsigned", "unsigned int", "unsigned long long", "uint32_t")


@frozen(eq=False)
class Places:
    """``call`` takes a place from the counter ``root`` at ``target``; it stands in the piece number ``at`` of the
    kernel's body."""

    call: Access
    root: Symbol
    target: Node
    pieces: tuple[Piece, ...]
    at: int

    @property
    def statement(self) -> Node:
        return self.pieces[self.at].node


def places(view: View) -> Places | str:
    """Where the kernel's threads take places, or why a block cannot take them at once."""
    calls = [one for one in view.facts.accesses if one.atomic and one.space == "global"]
    if len(calls) != 1 or callee(calls[0].node) != "atomicAdd" or len(arguments(calls[0].node)) != 2:
        return "no single atomicAdd hands out places"
    call = calls[0]
    root, parent = call.root, call.node.parent
    if root is None or root.type not in TYPES or parent is None or parent.type == "expression_statement":
        return f"nobody uses what `{text(call.node)}` returns"
    if text(bare(arguments(call.node)[1])) not in ONES:
        return f"`{text(call.node)}` takes more than one place"
    reason = touched(root, view)
    target = one_target(Atomics(root, "atomicAdd", (call,)), view)
    if reason is not None or isinstance(target, str):
        return reason or str(target)
    if any(symbol.space != "parameter" for symbol in symbols_in(target, view)):
        return f"the address of {root.name} that is updated hangs on a local"
    threads = view.block[0]
    if threads is None or view.block[1:] != (1, 1) or threads % WARP or threads > WARP * WARP:
        return "the launches do not all have one-dimensional blocks of a fixed whole number of warps"
    if not several_threads(view, (call,)):
        return "one thread of a block alone takes a place"
    found = _straight(view, call)
    return found if isinstance(found, str) else Places(call, root, target, *found)


def _straight(view: View, call: Access) -> tuple[tuple[Piece, ...], int] | str:
    """The body's pieces, and which of them takes the place."""
    others = [callee(one) for one in view.facts.calls if one != call.node]
    together = next((name for name in others if name.startswith(("__sync", "__shfl", "__ballot", "__any"))), None)
    if together is not None:
        return f"its threads work together already (`{together}`)"
    found = flat(view.facts.body)
    if found is None:
        return "a thread leaves from inside a branch or loop"
    inside = [place for place, piece in enumerate(found) if contains(piece.node, call.node)]
    if len(inside) != 1 or found[inside[0]].kind != "statement":
        return f"`{text(call.node)}` is part of a test"
    for above in ancestors(call.node):
        operator = text(above.child_by_field_name("operator")) if above.type == "binary_expression" else ""
        if above.type in BRANCHES or operator in ("&&", "||"):
            return f"`{text(call.node)}` stands in a loop or branch of its own"
        if above == found[inside[0]].node:
            break
    tests = [place for place, piece in enumerate(found[: inside[0]]) if piece.kind == "test"]
    if not tests:
        return "every thread takes a place: its own index would do"
    reason = next((why for piece in found[tests[0] : inside[0]] if (why := _fixed(view, piece.node)) is not None), None)
    return reason or (tuple(found), inside[0])


def _fixed(view: View, node: Node) -> str | None:
    """Why a declaration cannot be parted from its value, if it cannot."""
    if node.type != "declaration":
        return None
    plain = [one for one in node.named_children if one.type == "init_declarator"]
    names = [one.child_by_field_name("declarator") for one in plain]
    others = [one for one in node.children_by_field_name("declarator") if one not in plain]
    kept = any(one.type == "storage_class_specifier" for one in node.named_children)
    auto = text(node.child_by_field_name("type")) == "auto"
    if others or kept or auto or any(name is None or name.type != "identifier" for name in names):
        return f"`{text(node)}` cannot be parted from its declaration"
    inside = [symbol for symbol in view.facts.symbols.all() if contains(node, symbol.declarator)]
    if any(len([one for one in view.facts.symbols.all() if one.name == symbol.name]) > 1 for symbol in inside):
        return f"`{text(node)}` hides another name"
    return None


def by_block(view: View, found: Places) -> Rewrite:
    """Values and tests first; then one atomic for the block; then the work of the threads that took a place."""
    lines, pieces = lines_for(view), found.pieces
    tests = [place for place, piece in enumerate(pieces[: found.at]) if piece.kind == "test"]
    first, last = tests[0], tests[-1]
    takes = fresh_local(styled("takes_place", view), view.document, view.kernel)
    helper = fresh_name(styled("next_place", view), view.document)
    own = _named(found)
    ticket = own or fresh_local(styled("place", view), view.document, view.kernel)
    asked = f"{helper}({source_text(view.document, found.target)}, {takes})"
    rest = [*pieces[last + 1 : found.at], *pieces[found.at + (own is not None) :]]
    written = [
        *_before(view, pieces[first : last + 1], [found.statement, *(piece.node for piece in rest)], takes),
        _declared(view, found, asked) if own else f"const {found.root.type} {ticket} = {asked};",
        *lines.block(f"if ({takes})", lines.body(rest, {at(found.call.node): ticket}, "return")),
    ]
    start = pieces[first].around or pieces[first].node
    end = view.facts.body.named_children[-1]
    made = replace_between(start, end, indented(view.document, start, "\n".join(written)))
    return Rewrite((made,), (next_place(helper, found.root.type),))


def _named(found: Places) -> str | None:
    """``pos`` of ``int pos = atomicAdd(count, 1);``, where that is the whole statement."""
    declared = [one for one in found.statement.named_children if one.type == "init_declarator"]
    if found.statement.type != "declaration" or len(declared) != 1:
        return None
    name, value = declared[0].child_by_field_name("declarator"), bare(declared[0].child_by_field_name("value"))
    return text(name) if name is not None and name.type == "identifier" and value == found.call.node else None


def _declared(view: View, found: Places, asked: str) -> str:
    """The user's own declaration, of what the block hands out."""
    inside = found.call.node
    start = found.statement.start_byte
    raw = source_text(view.document, found.statement)
    before = raw.encode()[: inside.start_byte - start].decode()
    return f"{before}{asked}{raw.encode()[inside.end_byte - start :].decode()}"


def _before(view: View, parts: Sequence[Piece], after: Sequence[Node], takes: str) -> list[str]:
    """The way to the counter: names that are wanted later are declared first, the tests go into ``takes``."""
    groups = _groups(parts)
    lines = lines_for(view)
    declared: list[str] = []
    written: list[str] = []
    for number, (statements, tests) in enumerate(groups):
        later = [*after, *(piece.node for group in groups[number + 1 :] for part in group for piece in part)]
        moved = [piece for piece in statements if piece.node.type == "declaration" and _wanted(view, piece.node, later)]
        declared += [_bare_declaration(piece.node) for piece in moved]
        replaced = {
            (piece.node.start_byte, piece.node.children_by_field_name("declarator")[0].start_byte): ""
            for piece in moved
        }
        said = [condition(view, piece, {}, holds=True) for piece in tests]
        test = said[0] if len(said) == 1 else " && ".join(map(_factor, said))
        if number == 0:
            written.append(f"bool {takes} = {test};")
            continue
        written += lines.block(f"if ({takes})", [*lines.body(statements, replaced), f"{takes} = {test};"])
    return [*declared, *written]


def _groups(parts: Sequence[Piece]) -> list[tuple[list[Piece], list[Piece]]]:
    """(statements and comments, the tests behind them), in order; the first has tests only."""
    groups: list[tuple[list[Piece], list[Piece]]] = [([], [])]
    for piece in parts:
        if piece.kind == "test":
            groups[-1][1].append(piece)
        elif groups[-1][1]:
            groups.append(([piece], []))
        else:
            groups[-1][0].append(piece)
    return groups


def _wanted(view: View, declaration: Node, later: Sequence[Node]) -> bool:
    names = given(view, declaration)
    return any(used(view, node) & names or view.facts.symbols.resolve(node) in names for node in later)


def _bare_declaration(node: Node) -> str:
    names = [text(one.child_by_field_name("declarator")) for one in node.children_by_field_name("declarator")]
    return f"{text(node.child_by_field_name('type'))} {', '.join(names)};"


def _factor(test: str) -> str:
    """A test as one of several that must all hold."""
    return f"({test})" if re.search(r"\|\||\?|(?<![=!<>])=(?!=)", test) else test


def next_place(name: str, kind: str) -> str:
    return f"""\
// A place for each thread that takes one, by one atomic for the whole block; every thread of the block comes here.
__device__ {kind} {name}({kind}* counter, bool takes) {{
    __shared__ {kind} first_of_warp[{WARP}];
    const unsigned takers = __ballot_sync(0xffffffffu, takes);
    const int lane = threadIdx.x % {WARP}, warp = threadIdx.x / {WARP};
    if (lane == 0) first_of_warp[warp] = __popc(takers);
    __syncthreads();
    if (warp == 0) {{
        const {kind} own = lane < blockDim.x / {WARP} ? first_of_warp[lane] : 0;
        {kind} upto = own;
        for (int offset = 1; offset < {WARP}; offset *= 2) {{
            const {kind} below = __shfl_up_sync(0xffffffffu, upto, offset);
            if (lane >= offset) upto += below;
        }}
        {kind} first = 0;
        if (lane == {WARP - 1} && upto > 0) first = atomicAdd(counter, upto);
        first_of_warp[lane] = __shfl_sync(0xffffffffu, first, {WARP - 1}) + upto - own;
    }}
    __syncthreads();
    return first_of_warp[warp] + __popc(takers & ((1u << lane) - 1));
}}
"""
