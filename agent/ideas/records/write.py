"""Writing it: each thread's record goes to shared memory, and each warp copies its records as one run."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.lane_bounds import LaneBound
from agent.analysis.patterns.record_stores import RecordStore, RecordStores
from agent.analysis.syntax import bare, text
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    indent_of,
    indent_unit,
    indented,
    insert_after,
    replace,
    source_text,
)
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span

WARP = 32


@frozen(eq=False)
class Site:
    """``bound`` keeps lanes away (None: all 32 are there); ``again``: the stores stand in a loop that goes on after
    them. ``threads`` a block, in ``depth`` dimensions."""

    record: RecordStores
    bound: LaneBound | None
    again: bool
    threads: int
    depth: int

    @property
    def pitch(self) -> int:
        """Elements from one record to the next in shared memory: odd where the lanes would otherwise meet in a few
        banks."""
        return self.record.size + (1 if self.record.size % 4 == 0 else 0)


@frozen
class _Names:
    records: str
    lane: str
    staged: str
    lanes: str
    run: str
    k: str


def staged(site: Site, view: View) -> Rewrite:
    wanted = ("records", "lane", "staged", "lanes", "run", "k")
    names = _Names(*(fresh_local(one, view.document, view.kernel) for one in wanted))
    document, record = view.document, site.record
    above = indented(document, record.first, _above(site, names)) + "\n" + indent_of(document, record.first)
    return Rewrite(
        (
            Edit(Span(record.first.start_byte, record.first.start_byte), above.encode()),
            *(_stored(store, site, names, view) for store in record.stores),
            insert_after(document, record.last, _below(site, names, view)),
        )
    )


def _above(site: Site, names: _Names) -> str:
    row = "(threadIdx.z * blockDim.y + threadIdx.y)" if site.depth > 2 else "threadIdx.y"
    thread = "threadIdx.x" if site.depth == 1 else f"{row} * blockDim.x + threadIdx.x"
    return (
        "// Records are put together in shared memory first, so that each warp writes its own as one run of memory.\n"
        f"__shared__ {site.record.root.type} {names.records}[{site.threads} * {site.pitch}];\n"
        f"const int {names.lane} = threadIdx.x % {WARP};\n"
        f"{site.record.root.type}* const {names.staged} = "
        f"{names.records} + ({thread} - {names.lane}) * {site.pitch};"
    )


def _stored(store: RecordStore, site: Site, names: _Names, view: View) -> Edit:
    offset = " + ".join(source_text(view.document, node) for node in store.offsets) or "0"
    index = f"{names.lane} * {site.pitch}" + ("" if offset == "0" else f" + {offset}")
    return replace(store.access.node, f"{names.staged}[{index}]")


def _below(site: Site, names: _Names, view: View) -> str:
    """The copying: unrolled where the warp is whole, so that its loads do not wait for its stores."""
    size, lanes, lane, k = site.record.size, names.lanes, names.lane, names.k
    element = f"{k} * {WARP} + {lane}"
    whole = [
        "#pragma unroll",
        f"for (int {k} = 0; {k} < {size}; ++{k}) {names.run}[{element}] = {names.staged}[{_kept(site, element)}];",
    ]
    lines: list[str] = []
    together = ""
    if site.bound is not None:
        left = _left(site.bound, lane, view)
        lines.append(
            f"const int {lanes} = {left} < {WARP} ? {left} : {WARP};  // the last warp of a row may have fewer"
        )
        together = f"{lanes} < {WARP} ? (1u << {lanes}) - 1 : 0xffffffffu"
    lines += [f"{site.record.root.type}* const {names.run} = {_start(site, names, view)};", f"__syncwarp({together});"]
    if site.bound is None:
        lines += whole
    else:
        unit = indent_unit(view.document, view.kernel)
        copy = f"{names.run}[{k}] = {names.staged}[{_kept(site, k)}];"
        lines += [
            f"if ({lanes} == {WARP}) {{",
            *(unit + one for one in whole),
            "} else {",
            f"{unit}for (int {k} = {lane}; {k} < {lanes} * {size}; {k} += {lanes}) {copy}",
            "}",
        ]
    if site.again:
        lines.append(f"__syncwarp({together});")
    return "\n".join(lines)


def _kept(site: Site, element: str) -> str:
    """Where an element of the warp's run lies in shared memory."""
    size, pitch = site.record.size, site.pitch
    grouped = element if element.isidentifier() else f"({element})"
    return element if size == pitch else f"{grouped} / {size} * {pitch} + {grouped} % {size}"


def _left(bound: LaneBound, lane: str, view: View) -> str:
    limit, index = (_wrapped(node, view) for node in (bound.bound, bound.index))
    return f"{limit} - ({index} - {lane})"


def _wrapped(node: Node, view: View) -> str:
    simple = ("identifier", "field_expression", "number_literal", "subscript_expression", "call_expression")
    inner = bare(node)
    spelled = source_text(view.document, inner or node)
    return spelled if inner is not None and inner.type in simple else f"({spelled})"


def _start(site: Site, names: _Names, view: View) -> str:
    """Where the records of the warp's first lane begin, spelled as the first store spells its own."""
    store = site.record.stores[0]
    base = text(store.access.node.child_by_field_name("argument"))
    back = f"{names.lane} * {site.record.size}"
    if store.start is None:
        return f"{base} - {back}"
    return f"&{base}[{source_text(view.document, store.start)} - {back}]"
