"""Small questions about syntax trees that every analysis asks. Nodes are tree-sitter nodes of a (blanked) parse."""

from tree_sitter import Node

from agent.source.nodes import LOOPS, ancestors, descendants, enclosing, walk

__all__ = [
    "LOOPS", "ancestors", "arguments", "bare", "callee", "contains", "descendants", "enclosing", "expression_of",
    "is_barrier", "next_statement", "previous_statement", "same", "statement_of", "statements", "text", "tokens",
    "walk",
]  # fmt: skip

STATEMENT_PARENTS = ("compound_statement", "else_clause", "case_statement", "labeled_statement")


def text(node: Node | None) -> str:
    """The source of a node; empty where there is none."""
    source = None if node is None else node.text
    return "" if source is None else source.decode("utf-8", "replace")


def bare(node: Node | None) -> Node | None:
    """The expression without parentheses around it (a condition's own included)."""
    while node is not None and node.type in ("parenthesized_expression", "condition_clause"):
        inner = [child for child in node.named_children if child.type != "comment"]
        if len(inner) != 1:
            return node
        node = inner[0]
    return node


def tokens(node: Node | None) -> tuple[str, ...]:
    """The leaves as written, comments left out: equal for sources that differ in layout only."""
    if node is None:
        return ()
    return tuple(text(leaf) for leaf in walk(node, named=False) if leaf.child_count == 0 and leaf.type != "comment")


def same(one: Node | None, other: Node | None) -> bool:
    """Whether two expressions are spelled alike, parentheses around them and layout apart."""
    return tokens(bare(one)) == tokens(bare(other))


def contains(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def statement_of(node: Node) -> Node:
    """The statement that a node belongs to: the nearest ancestor (or itself) that stands where a statement may."""
    current = node
    while current.parent is not None:
        parent = current.parent
        if parent.type in STATEMENT_PARENTS or _is_body(current, parent):
            return current
        current = parent
    return current


def _is_body(node: Node, parent: Node) -> bool:
    field = "consequence" if parent.type == "if_statement" else "body"
    return parent.type in (*LOOPS, "if_statement") and parent.child_by_field_name(field) == node


def statements(node: Node | None) -> list[Node]:
    """The statements of a body: of a block its children, otherwise the statement alone. Comments and empty ones are
    left out."""
    if node is None:
        return []
    if node.type != "compound_statement":
        return [node]
    return [child for child in node.named_children if not _is_nothing(child)]


def _is_nothing(node: Node) -> bool:
    return node.type == "comment" or (node.type == "expression_statement" and not node.named_children)


def next_statement(node: Node) -> Node | None:
    return _sibling(node, 1)


def previous_statement(node: Node) -> Node | None:
    return _sibling(node, -1)


def _sibling(node: Node, step: int) -> Node | None:
    if node.parent is None or node.parent.type != "compound_statement":
        return None
    siblings = [child for child in statements(node.parent) if child.type != "preproc_call"]
    if node not in siblings:
        return None
    at = siblings.index(node) + step
    return siblings[at] if 0 <= at < len(siblings) else None


def expression_of(statement: Node) -> Node | None:
    """The expression of an expression statement."""
    if statement.type != "expression_statement":
        return None
    inner = [child for child in statement.named_children if child.type != "comment"]
    return bare(inner[0]) if len(inner) == 1 else None


def callee(node: Node | None) -> str:
    """The name that a call expression calls, without namespace and template arguments; empty for anything else."""
    if node is None or node.type != "call_expression":
        return ""
    function = node.child_by_field_name("function")
    while function is not None and function.type in ("qualified_identifier", "template_function"):
        function = function.child_by_field_name("name")
    return text(function)


def arguments(call: Node) -> list[Node]:
    given = call.child_by_field_name("arguments")
    return [] if given is None else [child for child in given.named_children if child.type != "comment"]


def is_barrier(statement: Node) -> bool:
    """A statement that is ``__syncthreads();`` and nothing else."""
    return callee(expression_of(statement)) == "__syncthreads"
