"""A kernel's body as a straight run of statements behind tests: no thread takes another way through it than to leave.

``if (i >= n) return;`` followed by work, work inside ``if (i < n) { ... }``, and mixtures of both read alike.
"""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.facts import Facts
from agent.analysis.syntax import callee, descendants, statements, text


@frozen(eq=False)
class Piece:
    """``kind``: ``statement``, ``comment`` (a ``#pragma`` too), or ``test``: what follows runs where the condition
    ``node`` is ``holds``. ``around`` is a test's own ``if``, ``comment`` what stands behind a statement, on its
    last line."""

    kind: str
    node: Node
    holds: bool = True
    around: Node | None = None
    comment: Node | None = None


def pieces(facts: Facts) -> tuple[Piece, ...] | str:
    """The body in order, or why it is not straight."""
    for call in facts.calls:
        if callee(call).startswith(("__sync", "__threadfence", "__shfl", "__ballot", "atomic")):
            return f"its threads work together already (`{callee(call)}`)"
    found = flat(facts.body)
    if found is None:
        return "a thread leaves from inside a branch or loop, so its work is no straight run of statements"
    return tuple(found)


def flat(body: Node) -> list[Piece] | None:
    """The pieces of a block; None where a thread may leave from inside a branch or loop in it."""
    found: list[Piece] = []
    real = statements(body)
    for child in body.named_children if body.type == "compound_statement" else [body]:
        pragma = child.type == "preproc_call" and text(child).lstrip().startswith("#pragma")
        if child.type == "comment" and found and _behind(child):
            found[-1] = evolve(found[-1], comment=child)
        elif child.type == "comment" or pragma:
            found.append(Piece("comment", child))
        elif child.type.startswith("preproc"):
            return None
        elif child in real:
            more = _pieces(child, last=child == real[-1])
            if more is None:
                return None
            found += more
    return found


def _behind(comment: Node) -> bool:
    before = comment.prev_named_sibling
    return before is not None and before.end_point.row == comment.start_point.row and before.type != "comment"


def _pieces(statement: Node, last: bool) -> list[Piece] | None:
    if statement.type == "compound_statement" and last:
        return flat(statement)
    if statement.type == "return_statement":
        return [] if last and not statement.named_children else None
    condition, then = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
    plain = statement.type == "if_statement" and statement.child_by_field_name("alternative") is None
    if plain and condition is not None and then is not None:
        leaves = statements(then)
        if len(leaves) == 1 and leaves[0].type == "return_statement":
            return [Piece("test", condition, holds=False, around=statement)]
        if last:
            inside = flat(then)
            return None if inside is None else [Piece("test", condition, around=statement), *inside]
    if any(True for _ in descendants(statement, "return_statement", "goto_statement", "labeled_statement")):
        return None
    return [Piece("statement", statement)]
