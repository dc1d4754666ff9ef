"""Every ``<<<>>>`` launch that the parser sees, its parts as written."""

from collections.abc import Sequence

from tree_sitter import Node, Tree

from agent.source.blanking import Blank
from agent.source.launch import LaunchSite
from agent.source.nodes import captured, declared_name, first_error, span_of, text_of
from agent.source.span import Span

# launches, and what may stand around them
_RELEVANT = (
    "[(call_expression (kernel_call_syntax)) (function_definition) (for_statement) (while_statement) (do_statement)"
    " (for_range_loop)] @found"
)


def find_launches(text: bytes, tree: Tree, blanks: Sequence[Blank]) -> tuple[LaunchSite, ...]:
    """All launch sites in text order. A launch inside a macro's body is not seen.

    What encloses each is read off in one pass over the text: asking a node for its parent walks down from the root.
    """
    return find_launches_in(text, tree) if b"<<" in text else ()


def find_launches_in(text: bytes, tree: Tree, within: Span | None = None) -> tuple[LaunchSite, ...]:
    """The launch sites in a stretch of whole functions."""
    if within is not None and text.find(b"<<", within.start, within.end) < 0:
        return ()
    sites: list[LaunchSite] = []
    around: list[Node] = []
    for node in captured(_RELEVANT, tree.root_node, within):
        while around and around[-1].end_byte <= node.start_byte:
            around.pop()
        if node.type != "call_expression":
            around.append(node)
        elif (site := _launch(text, node, around)) is not None:
            sites.append(site)
    return tuple(sites)


def _launch(text: bytes, node: Node, around: Sequence[Node]) -> LaunchSite | None:
    callee = node.child_by_field_name("function")
    arguments = node.child_by_field_name("arguments")
    configuration = next((child for child in node.children if child.type == "kernel_call_syntax"), None)
    if callee is None or configuration is None:
        return None
    parts = [child for child in configuration.named_children if child.type != "comment"]
    if len(parts) < 2:
        return None
    given = [child for child in arguments.named_children if child.type != "comment"] if arguments else []
    place = next((i for i in reversed(range(len(around))) if around[i].type == "function_definition"), None)
    function = around[place] if place is not None else None
    loops = around[place + 1 :] if place is not None else around
    shared = parts[2] if len(parts) > 2 else None
    error = first_error(node)
    return LaunchSite(
        kernel=bare_name(text, callee),
        callee=text_of(text, callee),
        template_arguments=template_arguments(text, callee),
        grid=text_of(text, parts[0]),
        block=text_of(text, parts[1]),
        shared=text_of(text, shared) if shared else None,
        stream=text_of(text, parts[3]) if len(parts) > 3 else None,
        arguments=tuple(text_of(text, child) for child in given),
        span=span_of(node),
        grid_span=span_of(parts[0]),
        block_span=span_of(parts[1]),
        shared_span=span_of(shared) if shared else None,
        argument_spans=tuple(span_of(child) for child in given),
        line=node.start_point.row + 1,
        function=function_name(text, function) if function else None,
        function_span=span_of(function) if function else None,
        loops=tuple(span_of(loop) for loop in loops),
        damage=f"a parse error at line {error.start_point.row + 1}" if error else None,
    )


def _last(node: Node) -> Node:
    """The innermost name of ``ns::k<float>``, ``&k``, ``(k)``, ``s.k``."""
    while True:
        inner = (
            node.child_by_field_name("name")
            or node.child_by_field_name("field")
            or node.child_by_field_name("argument")
        )
        if node.type == "field_expression":
            inner = node.child_by_field_name("field")
        if inner is None and node.type == "parenthesized_expression":
            inner = next((child for child in node.named_children if child.type != "comment"), None)
        if inner is None:
            return node
        node = inner


def bare_name(text: bytes, callee: Node) -> str:
    """``k`` of ``ns::k<float>``, ``&k`` and ``(k)``."""
    return text_of(text, _last(callee))


def template_arguments(text: bytes, callee: Node) -> tuple[str, ...]:
    """What stands in the angle brackets of a name, each argument as written."""
    node: Node | None = callee
    while node is not None and node.type not in ("template_function", "template_method"):
        node = (
            node.child_by_field_name("name")
            or node.child_by_field_name("field")
            or node.child_by_field_name("argument")
            or next((c for c in node.named_children if node.type == "parenthesized_expression"), None)
        )
    arguments = node.child_by_field_name("arguments") if node else None
    if arguments is None:
        return ()
    return tuple(text_of(text, child) for child in arguments.named_children if child.type != "comment")


def function_name(text: bytes, function: Node) -> str | None:
    """The bare name of a function definition (``run`` of ``void Solver::run()``)."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = (
        declarator.child_by_field_name("declarator")
        if declarator
        else declared_name(function.child_by_field_name("declarator"))
    )
    return text_of(text, _last(name)) if name else None
