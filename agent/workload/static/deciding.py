"""Which buffers decide by their values what a kernel does: whether a loop goes on, which branch is taken."""

from collections.abc import Iterator, Mapping, Set

from tree_sitter import Node

from agent.source.nodes import ancestors, text_of, walk
from agent.source.nodes import field as child

_LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
_BRANCHES = frozenset({"if_statement", "switch_statement", "conditional_expression"})
_LEAVES = frozenset({"break_statement", "continue_statement", "return_statement", "goto_statement"})


def decided(
    body: Node, aliases: Mapping[str, str], held: Mapping[str, Set[str]], text: bytes
) -> tuple[frozenset[str], frozenset[str]]:
    """Buffers whose values decide whether a loop goes on, and those that decide any branch.

    ``aliases`` are the names that lead into each buffer, ``held`` the locals that hold values of it. A pointer that is
    handed to a function counts as deciding a branch there.
    """
    turning: set[str] = set()
    deciding: set[str] = set()
    for part in walk(body):
        if part.type in _LOOPS or part.type in _BRANCHES:
            condition = child(part, "condition")
            found = set(_named(condition, aliases, held, text)) if condition is not None else set()
            deciding |= found
            turning |= found if part.type in _LOOPS or _leaves_loop(part) else set()
        elif part.type == "call_expression":
            arguments = child(part, "arguments")
            for given in arguments.named_children if arguments is not None else ():
                deciding |= {aliases[text_of(text, given)]} if text_of(text, given) in aliases else set()
    return frozenset(turning), frozenset(deciding | turning)


def _named(node: Node, aliases: Mapping[str, str], held: Mapping[str, Set[str]], text: bytes) -> Iterator[str]:
    for part in walk(node):
        if part.type in ("identifier", "field_expression"):
            name = text_of(text, part)
            yield from held.get(name, ())
            if name in aliases:
                yield aliases[name]


def _leaves_loop(branch: Node) -> bool:
    """``if (*flag == 1) break;`` inside a loop."""
    inside = any(above.type in _LOOPS for above in ancestors(branch))
    return inside and branch.type == "if_statement" and any(part.type in _LEAVES for part in walk(branch))
