"""Walking the tree."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Node

from agent.source.document import parse
from agent.source.nodes import (
    IDENTIFIERS,
    LOOPS,
    ancestors,
    declared_name,
    descendants,
    enclosing,
    field,
    first_error,
    identifiers,
    kernel_node,
    node_text,
    walk,
)

CODE = b"""__global__ void k(float* x, int n) {
  for (int i = 0; i < n; ++i) {
    float *const y[3] = {}, (*z)(int), &w = *x;
    x[i] = y.n + n;
  }
}
"""


def test_walk_is_in_text_order_and_parents_come_first():
    document = parse(CODE)
    seen = [node.start_byte for node in walk(document.tree.root_node)]
    assert seen == sorted(seen)
    assert len(list(walk(document.tree.root_node, named=False))) > len(seen)


def test_identifiers_by_name():
    document = parse(CODE)
    node = kernel_node(document, document.kernels[0])
    assert [n.type for n in identifiers(node, document.text, "n")] == [
        "identifier",
        "identifier",
        "field_identifier",
        "identifier",
    ]


def test_fields_and_ancestors():
    document = parse(CODE)
    node = kernel_node(document, document.kernels[0])
    assert node_text(document, field(node, "declarator", "declarator")) == "k"
    assert field(node, "declarator", "nothing", "at", "all") is None
    inner = next(descendants(node, "assignment_expression"))
    loop = enclosing(inner, "for_statement")
    assert loop is not None and loop.start_point.row == 1
    assert [a.type for a in ancestors(inner)][-2:] == ["function_definition", "translation_unit"]
    assert enclosing(inner, "while_statement") is None


def test_declared_names_behind_stars_brackets_and_parentheses():
    document = parse(CODE)
    declaration = next(d for d in descendants(document.tree.root_node, "declaration") if d.start_point.row == 2)
    names = [declared_name(d) for d in declaration.children_by_field_name("declarator")]
    assert [node_text(document, name) for name in names if name] == ["y", "z", "w"]


def test_the_first_error():
    assert first_error(parse(CODE).tree.root_node) is None
    broken = parse(CODE.replace(b"++i)", b"++i"))
    error = first_error(broken.tree.root_node)
    assert error is not None and error.start_point.row == 1


FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*.cu"))
ASKED = (("identifier",), ("declaration", "identifier"), tuple(LOOPS), tuple(IDENTIFIERS), ("no_such_type",))


def _plainly(node: Node, types: tuple[str, ...]) -> list[Node]:
    return [below for below in walk(node) if below.type in types]


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
@pytest.mark.parametrize("order", [list, lambda nodes: list(nodes)[::-1]], ids=["outer first", "inner first"])
def test_what_is_remembered_is_what_a_walk_finds(file: Path, order: Callable[[list[Node]], list[Node]]) -> None:
    for node in order(list(walk(parse(file.read_bytes()).tree.root_node))[:1500]):
        for types in ASKED:
            assert list(descendants(node, *types)) == _plainly(node, types)


@given(st.integers(0, len(CODE)), st.integers(0, len(CODE)))
def test_what_is_remembered_of_broken_code(start: int, end: int) -> None:
    """With parts missing, there are nodes without width. Two states of a text share nodes, which stand elsewhere."""
    before = parse(CODE)
    after = parse(CODE[:start] + CODE[max(start, end) :], "", before)
    for document in (before, after, before):
        for node in walk(document.tree.root_node):
            for types in ASKED:
                assert list(descendants(node, *types)) == _plainly(node, types)
