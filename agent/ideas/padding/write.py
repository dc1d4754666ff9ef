"""How spread arrays are written."""

from attrs import evolve
from tree_sitter import Node

from agent.analysis.accesses import subscripts_of
from agent.analysis.formulas import ATOMIC
from agent.ideas.padding.site import Site
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite, fresh_name, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.workload.expression import Expression, build, number
from agent.workload.plan import Launch

SPREAD = """\
// The place of element `i` in an array that leaves one element out after every {every}: elements {every} apart lie in
// different banks.
__device__ __forceinline__ int {name}(int i) {{ return i + i / {every}; }}
"""


def padded(view: View, site: Site) -> Rewrite:
    """The innermost extent made larger."""
    inner = site.array.dims[-1]
    assert inner is not None
    return Rewrite((replace(inner, f"{source_text(view.document, inner)} + {site.pad}"),))


def swizzled(view: View, site: Site) -> Rewrite:
    """Columns exchanged within each row, differently in neighbouring rows: no element more."""
    edits: list[Edit] = []
    for node in site.nodes:
        *_, row, column = subscripts_of(node)
        edits.append(replace(column, f"{_operand(view, column)} ^ {_operand(view, row)} % 32"))
    return Rewrite(tuple(edits))


def _operand(view: View, node: Node) -> str:
    written = source_text(view.document, node)
    return written if node.type in ATOMIC else f"({written})"


def spread(view: View, site: Site) -> Rewrite:
    """One element left out after every ``every``, in an array of one dimension."""
    name = fresh_name("spread", view.document)
    edits: list[Edit] = []
    for node in site.nodes:
        (index,) = subscripts_of(node)
        edits.append(replace(index, f"{name}({source_text(view.document, index)})"))
    extent = site.array.dims[0]
    helper = SPREAD.format(every=site.every, name=name)
    if extent is None:
        return Rewrite(
            tuple(edits), (helper,), each_launch(view.request.plan, view.kernel, lambda one: _more(one, site))
        )
    plain = _operand(view, extent)
    edits.append(replace(extent, f"{plain} + {plain} / {site.every}"))
    return Rewrite(tuple(edits), (helper,))


def _more(launch: Launch, site: Site) -> Launch:
    assert site.every is not None
    shared: Expression = build("+", (launch.shared, build("/", (launch.shared, number(site.every)))))
    return evolve(launch, shared=shared)
