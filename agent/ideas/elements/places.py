"""The coordinate that a kernel's threads stand at along one axis, and the bound that a test keeps it below."""

from collections.abc import Iterator, Sequence

from attrs import frozen
from tree_sitter import Node

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.patterns.straight import Piece
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, contains, descendants, text
from agent.analysis.values import value
from agent.ideas.elements.reach import covers, in_launch_names
from agent.ideas.view import AXES, View
from agent.workload.expression import Expression
from agent.workload.plan import Launch


@frozen(eq=False)
class Place:
    """``symbol`` is declared as ``blockIdx.a * blockDim.a + threadIdx.a`` (``init``), and these built-in variables of
    the axis are used for nothing else."""

    axis: int
    symbol: Symbol
    init: Node
    start: Poly


def thread_number(view: View, axis: int) -> Poly:
    """``blockIdx.a * blockDim.a + threadIdx.a``, with the block's extent as a number where it is one."""
    name, extent = AXES[axis], view.block[axis]
    width = number(extent) if extent is not None else unknown(Atom(f"blockDim.{name}"))
    return _built_in(f"blockIdx.{name}") * width + _built_in(f"threadIdx.{name}")


def _built_in(name: str) -> Poly:
    return unknown(Atom(name, frozenset({name})))


def place(view: View, axis: int) -> Place | None:
    wanted, name = thread_number(view, axis), AXES[axis]
    uses = [node for node in descendants(view.facts.body, "field_expression") if _of_axis(node, name)]
    for symbol in view.facts.symbols.all():
        init = symbol.init
        if init is None or not symbol.fixed or symbol.is_memory or not uses:
            continue
        if value(init, view.facts.scope) == wanted and all(contains(init, use) for use in uses):
            return Place(axis, symbol, init, wanted)
    return None


def _of_axis(node: Node, axis: str) -> bool:
    return text(node) in (f"blockIdx.{axis}", f"threadIdx.{axis}", f"blockDim.{axis}", f"gridDim.{axis}")


def comparisons(piece: Piece) -> Iterator[tuple[Node, Node | None]]:
    """What a test asks, part by part: (left, right) of ``left < right`` that must hold for a thread to go on
    (``left >= right`` where one leaves), (condition, None) for anything else."""
    joint, relation = ("&&", "<") if piece.holds else ("||", ">=")
    waiting = [bare(piece.node)]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        operator = text(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operator == joint:
            waiting += [bare(right), bare(left)]
        elif operator == relation and left is not None and right is not None:
            yield left, right
        else:
            yield node, None


def bound(view: View, parts: Sequence[Piece], start: Poly) -> Node | None:
    """What a test keeps a coordinate below."""
    for piece in parts:
        if piece.kind == "test":
            for left, right in comparisons(piece):
                if right is not None and value(left, view.facts.scope) == start:
                    return right
    return None


def reached(view: View, axis: int, limit: Node) -> bool:
    """Whether every launch has a thread for each number below the bound, at every size tried."""
    return all((end := in_launch_names(view, one, limit)) and covers(view, one, axis, end) for one in view.launches)


def end_of(view: View, launch: Launch, limit: Node) -> Expression:
    """The bound over the workload's names, where it was found reached."""
    found = in_launch_names(view, launch, limit)
    if found is None:
        raise ValueError("a bound that the launch does not know")
    return found
