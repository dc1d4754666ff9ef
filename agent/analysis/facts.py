"""What is known about one kernel, in one value: symbols, loops, accesses, barriers."""

from collections.abc import Mapping

from attrs import field, frozen
from tree_sitter import Node

from agent.analysis.accesses import Access, accesses, hinted
from agent.analysis.file import FileFacts, file_facts
from agent.analysis.layouts import Layout
from agent.analysis.loops import Loop, loop_of
from agent.analysis.symbols import Symbols, symbols
from agent.analysis.syntax import LOOPS, callee, contains, descendants
from agent.analysis.values import Scope
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.nodes import kernel_node


@frozen(eq=False)
class Facts:
    """``loops`` holds every loop in canonical form; ``calls`` every call; ``barriers`` the ``__syncthreads()``
    calls; ``structs`` what the file's structs are made of; ``hinted`` the accesses beside ``accesses`` that functions
    make (``__ldg(p + i)``)."""

    document: Document
    kernel: Kernel
    node: Node
    body: Node
    symbols: Symbols
    scope: Scope
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    barriers: tuple[Node, ...]
    calls: tuple[Node, ...] = field(repr=False)
    structs: Mapping[str, Layout] = field(factory=dict, repr=False)
    hinted: tuple[Access, ...] = ()

    def accesses_in(self, node: Node) -> tuple[Access, ...]:
        return tuple(access for access in self.accesses if contains(node, access.node))

    def accesses_between(self, start: int, end: int) -> tuple[Access, ...]:
        """Accesses whose text lies in ``start <= offset < end``."""
        return tuple(
            access for access in self.accesses if start <= access.node.start_byte and access.node.end_byte <= end
        )

    def loop(self, node: Node) -> Loop | None:
        return next((loop for loop in self.loops if loop.node == node), None)

    def loops_around(self, node: Node) -> tuple[Loop, ...]:
        """The canonical loops around a node, outermost first."""
        return tuple(loop for loop in self.loops if contains(loop.body, node))


def analyse(
    document: Document, kernel: Kernel, known: Mapping[str, int] | None = None, shared: FileFacts | None = None
) -> Facts:
    """The facts of one kernel. ``known`` gives launch dimensions that are the same at every launch (``blockDim.x``:
    256). ``shared`` is what the kernel's file says, where ``document`` holds the kernel alone."""
    node = kernel_node(document, kernel)
    body = node.child_by_field_name("body")
    if body is None:
        raise ValueError(f"kernel {kernel.name} has no body")
    shared = shared or file_facts(document)
    promised = frozenset(parameter.name for parameter in kernel.parameters if parameter.restrict)
    table = symbols(
        node, shared.constants, shared.takers, shared.arrays, shared.fixed, shared.formulas, promised, shared.casts
    )
    scope = Scope(table, dict(known or {}))
    calls = tuple(descendants(body, "call_expression"))
    return Facts(
        document=document,
        kernel=kernel,
        node=node,
        body=body,
        symbols=table,
        scope=scope,
        loops=tuple(loop for found in descendants(body, *LOOPS) if (loop := loop_of(found, scope)) is not None),
        accesses=accesses(node, scope),
        barriers=tuple(call for call in calls if callee(call) == "__syncthreads"),
        calls=calls,
        structs=shared.structs,
        hinted=hinted(calls, scope),
    )
