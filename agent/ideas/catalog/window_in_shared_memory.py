"""Bring what a block's windows reach over into shared memory once."""

from agent.analysis.patterns.window import Window, windows
from agent.analysis.syntax import text
from agent.analysis.values import leaves
from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.rowkeep.room import static_shared
from agent.ideas.view import View, evaluate, fixed_names
from agent.ideas.window.edges import asked
from agent.ideas.window.site import Site, site
from agent.ideas.window.write import in_shared

FEW = 9
SERVED = 48
"""Bytes of a window up to which reads from L1 cost as much as from shared memory (5 x 5 bytes: 1.02x, on an H200)."""

MOST_SHARED = 48 * 1024

EXAMPLE = """\
// cuda-lsp: workload
//   size     height = 4096, width = 4096
//   buffer   in: f32[height * width] in normal
//   buffer   out: f32[height * width] out
//   launch   blur<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(in, out, height, width)
__global__ void blur(const float* in, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; ++dy) {
        for (int dx = -2; dx <= 2; ++dx) {
            int row = min(max(y + dy, 0), height - 1);
            int col = min(max(x + dx, 0), width - 1);
            sum += in[row * width + col];
        }
    }
    out[y * width + x] = sum / 25.0f;
}
"""


@catalogued(
    name="window-in-shared-memory",
    title="Bring the windows of a block into shared memory once",
    rationale=(
        "Neighbouring threads read nearly the same elements around their places: with a window of k by k, each element "
        "is asked for k * k times, each with the arithmetic for its address and for the array's edge. A block can "
        "fetch what all its windows reach over once, edges included, and its loops read from shared memory at "
        "addresses that differ by constants."
    ),
    needs=(
        "two loops over offsets from the thread's own place, one of them along the lanes of a warp, whose bounds are "
        "fixed, or hang on parameters that every launch gives the same number",
        "where an element lies, and whether it is read, hang on place plus offset only",
        "nothing is written to the array before; places are declared before any thread leaves",
    ),
    effect="global sectors fall by up to the number of elements in a window, and so does the arithmetic for addresses",
    risk=(
        "shared memory and a barrier cost more than they bring where windows are small; where zeros stand beyond the "
        "edge, a weight that is infinite or NaN meets one"
    ),
    example=EXAMPLE,
)
def window_in_shared_memory(view: View) -> Match | Refusal:
    if None in view.block:
        return Refusal("the block's size is not fixed")
    given = _given(view)
    found = windows(view.facts, given)
    if not found:
        return Refusal("no two loops with fixed bounds walk over offsets from the thread's own place")
    if found[0].taps < FEW:
        return Refusal(f"a window of {found[0].taps} elements is served well by the L1 cache")
    if view.threads != found[0].rows.place.extent * found[0].cols.place.extent:
        return Refusal("the block has more dimensions than the window")
    if not _along_memory(found[0], view):
        return Refusal("the lanes of a warp do not read side by side; exchange the thread indices first")
    made = site(found[0], view)
    if isinstance(made, str):
        return Refusal(made)
    size = view.element_bytes(found[0].reads[0])
    if size is None:
        return Refusal(f"the type of {found[0].reads[0].name}'s elements is not a plain one")
    if found[0].taps * size < SERVED:
        return Refusal(
            f"a window of {found[0].taps} elements of {size} bytes is served well by the L1 cache: "
            "a warp's read lies in few of its lines, and costs no more there than in shared memory"
        )
    needed = made.pitch * found[0].rows.width * size
    if needed + static_shared(view.facts) > MOST_SHARED or any(launch.shared.constant != 0 for launch in view.launches):
        return Refusal(f"the windows of a block take {needed >> 10} KB, more shared memory than is left")
    return _match(made, found[0], view, {name: given[name] for name in sorted(found[0].given)})


def _given(view: View) -> dict[str, int]:
    """The parameters that nothing changes and that are the same number in every launch, at every size."""
    fixed = fixed_names(view.request.workload, view.request.plan)
    found: dict[str, int] = {}
    for place, parameter in enumerate(view.kernel.parameters):
        symbol = next((one for one in view.facts.symbols.all() if one.name == parameter.name), None)
        values = {evaluate(launch.arguments[place], fixed) for launch in view.launches}
        value = next(iter(values)) if len(values) == 1 else None
        whole = isinstance(value, int) and parameter.pointer_depth == 0
        if whole and isinstance(value, int) and symbol is not None and symbol.space == "parameter" and symbol.fixed:
            found[parameter.name] = value
    return found


def _along_memory(window: Window, view: View) -> bool:
    """Whether the next lane reads the next element, in a block that no edge is near to."""
    values = {atom.name: 0 for atom in leaves(window.index)} | dict(view.parameters(view.launches[0]))
    values |= {name: 1 for name in values if name.startswith("blockIdx")} | {window.rows.place.lane: 1}
    here, beside = (window.index.evaluate(values | {window.cols.place.lane: lane}) for lane in (4, 5))
    return here is not None and beside is not None and beside - here == 1


def _match(made: Site, window: Window, view: View, given: dict[str, int]) -> Match:
    block = window.rows.place.extent * window.cols.place.extent
    fetched = window.rows.width * window.cols.width / block
    read = window.reads[0]
    zeros = asked(made, view)
    plain = Variant(
        "one element a thread",
        "the launch stays as it is; the block fetches its window before any thread leaves",
        Scope.DROP_IN,
        lambda: in_shared(made, view, given),
    )
    edges = (
        Variant(
            "zeros beyond the edge",
            "the launch stays as it is; the loops need not ask for the edge any more",
            Scope.DROP_IN,
            lambda: in_shared(made, view, given, zeros),
        ),
    )[: 1 if zeros else 0]
    return Match(
        line=view.document.line(window.nest.start_byte),
        title=f"bring the windows of a block on {read.name} into shared memory once",
        why=(
            f"each thread reads {window.taps} elements around its own, `{text(read.node)}`; the windows of a block "
            f"cover {fetched:.1f} elements a thread"
        ),
        expects=(
            Expectation(
                "sectors", round(fetched / window.taps, 3), f"global reads {window.taps} -> {fetched:.1f} a thread"
            ),
        ),
        variants=(*edges, plain),
    )
