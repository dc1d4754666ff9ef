"""Write the records of an array of structures through shared memory, a warp's together."""

from math import ceil

from agent.analysis.accesses import Access
from agent.analysis.patterns.lane_bounds import lane_bounds
from agent.analysis.patterns.record_stores import RecordStores, record_stores
from agent.analysis.syntax import LOOPS, ancestors, contains, descendants, text
from agent.ideas.idea import Expectation, Scope
from agent.ideas.records.write import WARP, Site, staged
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rowkeep.room import static_shared
from agent.ideas.terms import apart_from
from agent.ideas.view import View

MOST_SHARED = 48 * 1024
SECTOR = 32
"""Bytes. Records of 12 bytes: 0.76x and 0.99x; of 36 bytes: 2.42x (on an H200)."""

EXAMPLE = """\
// cuda-lsp: workload
//   size     n = 1048576
//   buffer   axes: f32[n * 3] in normal
//   buffer   outer: f32[n * 9] out
//   launch   products<<<(n + 255) / 256, 256>>>(axes, outer, n)
__global__ void products(const float* axes, float* outer, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c) outer[9 * i + 3 * r + c] = axes[3 * i + r] * axes[3 * i + c];
    }
}
"""


@catalogued(
    name="record-stores",
    title="Write a warp's records as one run, through shared memory",
    rationale=(
        "Where each thread writes the elements of its own record, one store of a warp touches up to 32 sectors and "
        "fills 4 bytes of each, and the next store touches the same sectors again: writes go through to L2, which has "
        "to merge them. The 32 records of a warp are one run of memory; put together in shared memory first, they "
        "leave as full sectors. A warp needs no barrier for that."
    ),
    needs=(
        "each thread writes every element of a record of 3 to 64 elements, lanes side by side, once it writes at all",
        "records of 32 bytes and more, so that no two lanes of a store share a sector",
        "the block's first extent is a multiple of 32; lanes are kept away by an upper bound of their index at most",
        "nothing reads or synchronises what is written before the last element is",
    ),
    effect="sectors of the stores fall to what the bytes need",
    risk="shared memory for a record a thread may lower the occupancy",
    example=EXAMPLE,
)
def record_stores_(view: View) -> Match | Refusal:
    extent, threads = view.block[0], view.threads
    if extent is None or threads is None or extent % WARP:
        return Refusal("the block's rows are not a fixed number of whole warps")
    records = record_stores(view.facts)
    if not records:
        return Refusal("no thread writes all elements of a record that lies beside its neighbour's")
    sites = [_site(record, view) for record in records]
    found = [one for one in sites if isinstance(one, Site)]
    if not found:
        return Refusal(next(one for one in sites if isinstance(one, str)))
    return _match(max(found, key=lambda one: one.record.size), view)


def _site(record: RecordStores, view: View) -> Site | str:
    facts = view.facts
    bounds = lane_bounds(record.first, facts)
    if isinstance(bounds, str):
        return bounds
    if len(bounds) > 1:
        return f"lanes are kept away by `{text(bounds[0].bound)}` and by `{text(bounds[1].bound)}`"
    reason = _disturbed(record, view)
    if reason is not None:
        return reason
    threads, element = view.threads, view.element_bytes(record.stores[0].access)
    if threads is None or element is None or element not in (4, 8):
        return f"elements of {record.root.name} are not 4 or 8 bytes wide"
    site = Site(record, bounds[0] if bounds else None, _loops_again(record), threads, _depth(view))
    if record.size * element < SECTOR:
        return (
            f"records of {record.size * element} bytes lie so close that the lanes of a store share sectors, which L2 "
            "merges at no more cost than shared memory"
        )
    if threads * site.pitch * element + static_shared(facts) > MOST_SHARED:
        return f"the records of {threads} threads take more than {MOST_SHARED >> 10} KB of shared memory"
    return site


def _loops_again(record: RecordStores) -> bool:
    return any(parent.type in LOOPS for parent in ancestors(record.first))


def _depth(view: View) -> int:
    return 3 if view.block[2] != 1 else 2 if view.block[1] != 1 else 1


def _disturbed(record: RecordStores, view: View) -> str | None:
    """What reads the records, leaves or waits between the first store and the last."""
    facts, start, end = view.facts, record.first.start_byte, record.last.end_byte
    if b"volatile" in view.document.text[view.kernel.span.start : facts.body.start_byte]:
        return "a parameter is volatile: its accesses are meant to be as they are"
    apart = apart_from(record.root, view)
    stored = {store.access.node for store in record.stores}
    for access in facts.accesses:
        if access.node in stored or access.space != "global" or access.root in apart:
            continue
        touched = _loops_again(record) or access.node.start_byte >= start
        if touched and not _own_before(access, record):
            return f"`{text(access.node)}` may be part of a record that is put together"
    for node in descendants(facts.body, "return_statement", "break_statement", "goto_statement", "call_expression"):
        called = text(node.child_by_field_name("function")) if node.type == "call_expression" else ""
        waits = node.type != "call_expression" or called.startswith(("__sync", "__threadfence"))
        if start <= node.start_byte < end and waits:
            return f"`{called or text(node)}` stands between the stores of a record"
    return None


def _own_before(access: Access, record: RecordStores) -> bool:
    """Whether an access reads an element of the thread's own record, and surely before that is written."""
    if access.index is None or access.writes:
        return False
    for store in record.stores:
        assignment = store.access.node.parent
        inside = assignment is not None and contains(assignment, access.node)
        same = record.once and inside and access.index == store.access.index
        apart = None if store.access.index is None else (access.index - store.access.index).constant
        before = access.node.start_byte < record.first.start_byte
        if same or (before and apart is not None and abs(apart) < record.size):
            return True
    return False


def _match(site: Site, view: View) -> Match:
    record = site.record
    element = view.element_bytes(record.stores[0].access) or 4
    wide = min(WARP, ceil(record.size * element * WARP / SECTOR))
    needed = ceil(element * WARP / SECTOR)
    return Match(
        line=view.document.line(record.first.start_byte),
        title=f"write a warp's records of {record.root.name} as one run, through shared memory",
        why=(
            f"each thread writes {record.size} elements side by side to {record.root.name}, so a store of a warp "
            f"touches {wide} sectors where {needed} would do"
        ),
        expects=(Expectation("sectors", round(needed / wide, 2), f"sectors of a store {wide} -> {needed}"),),
        variants=(
            Variant(
                "staged by warps",
                "each warp puts its 32 records together in shared memory and writes them in order",
                Scope.DROP_IN,
                lambda: staged(site, view),
            ),
        ),
    )
