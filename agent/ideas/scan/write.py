"""Writing the scan in three launches: within tiles, over the tiles' totals, and both put together."""

from attrs import evolve

from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import Rewrite, fresh_name, indent_unit, replace_between, with_unit
from agent.ideas.scan.site import Scan
from agent.ideas.view import View
from agent.source.nodes import kernel_node
from agent.workload.dtypes import from_c_type
from agent.workload.expression import Expression, build, name, number
from agent.workload.plan import Launch, Plan, Scratch, Step

THREADS = 256
"""Of a tile."""

WIDE = 1024
"""Threads of the one block that scans the totals."""


def in_three_launches(view: View, found: Scan, items: int) -> Rewrite:
    names = _names(view)
    kind = found.type
    helpers = (
        f"constexpr int {names['items']} = {items};  // elements of each thread\n"
        f"constexpr int {names['tile']} = {THREADS} * {names['items']};  // elements of each block",
        _warp_scan(names["warp_scan"], kind),
        _up_to(names, kind),
    )
    unit = indent_unit(view.document, view.kernel)
    kernels = (with_unit(_tiles(names, kind), unit), with_unit(_totals(names, kind), unit))
    node = kernel_node(view.document, view.kernel)
    made = with_unit(_finish(view, names, found), unit)
    edit = replace_between(node, node, made)
    return Rewrite((edit,), helpers, _plan(view, found, names, items), kernels)


def _names(view: View) -> dict[str, str]:
    kernel = view.kernel.name
    camel = styled("a_b", view) != "a_b"
    wanted = {
        "items": styled("scan_items", view),
        "tile": styled("scan_tile", view),
        "warp_scan": styled("warp_scan", view),
        "up_to": styled("sum_up_to", view),
        "tiles": f"{kernel}Tiles" if camel else f"{kernel}_tiles",
        "totals": f"{kernel}Totals" if camel else f"{kernel}_totals",
        "sums": styled("tile_sums", view),
        "ends": styled("tile_totals", view),
        "count": styled("tiles", view),
    }
    taken = [*view.sizes, *(one.name for one in view.request.workload.buffers)]
    found: dict[str, str] = {}
    for key, one in wanted.items():
        found[key] = fresh_name(one, view.document, *taken, *found.values())
    return found


def _warp_scan(name: str, kind: str) -> str:
    return f"""\
// The sum of `value` over the lanes of a warp up to this one.
__device__ __forceinline__ {kind} {name}({kind} value) {{
    for (unsigned offset = 1; offset < 32; offset *= 2) {{
        const {kind} below = __shfl_up_sync(0xffffffffu, value, offset);
        if (threadIdx.x % 32 >= offset) value += below;
    }}
    return value;
}}
"""


def _up_to(names: dict[str, str], kind: str) -> str:
    return f"""\
// The sum of all elements up to the i-th.
__device__ __forceinline__ {kind} {names["up_to"]}(const {kind}* sums, const {kind}* totals, int i) {{
    const int tile = i / {names["tile"]};
    return tile == 0 ? sums[i] : sums[i] + totals[tile - 1];
}}
"""


def _tiles(names: dict[str, str], kind: str) -> str:
    items, tile = names["items"], names["tile"]
    return f"""\
// Launched first: sums within each block's tile, and the tile's total. A warp walks over neighbouring elements.
__global__ void {names["tiles"]}(const {kind}* in, {kind}* sums, {kind}* totals, int n) {{
    __shared__ {kind} warps[{THREADS // 32}];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * {tile} + warp * 32 * {items} + lane;
    {kind} own[{items}];
    {kind} carry = 0;
    #pragma unroll
    for (int k = 0; k < {items}; ++k) {{
        const int i = first + 32 * k;
        own[k] = carry + {names["warp_scan"]}(i < n ? in[i] : 0);
        carry = __shfl_sync(0xffffffffu, own[k], 31);
    }}
    if (lane == 0) warps[warp] = carry;
    __syncthreads();

    {kind} before = 0;
    for (int w = 0; w < warp; ++w) before += warps[w];
    #pragma unroll
    for (int k = 0; k < {items}; ++k) {{
        const int i = first + 32 * k;
        if (i < n) sums[i] = before + own[k];
    }}
    if (threadIdx.x == {THREADS - 1}) totals[blockIdx.x] = before + carry;
}}"""


def _totals(names: dict[str, str], kind: str) -> str:
    return f"""\
// Launched second, as one block: the totals of all tiles up to each.
__global__ void {names["totals"]}({kind}* totals, int tiles) {{
    __shared__ {kind} warps[{WIDE // 32}];
    const int warp = threadIdx.x / 32;
    {kind} carry = 0;
    for (int first = 0; first < tiles; first += {WIDE}) {{
        const int i = first + threadIdx.x;
        const {kind} own = {names["warp_scan"]}(i < tiles ? totals[i] : 0);
        if (threadIdx.x % 32 == 31) warps[warp] = own;
        __syncthreads();
        {kind} before = carry;
        for (int w = 0; w < {WIDE // 32}; ++w) {{
            if (w < warp) before += warps[w];
            carry += warps[w];
        }}
        if (i < tiles) totals[i] = before + own;
        __syncthreads();
    }}
}}"""


def _finish(view: View, names: dict[str, str], found: Scan) -> str:
    kind = found.type
    step = found.step
    inside = {"i", "sum", "half"}
    result = step.target.name if step.target.name not in inside else "out"
    count = step.count.name if step.count.name not in inside else "n"
    own = {result, count, *inside}
    other, sums, totals = (_apart(wanted, own) for wanted in ("window", "sums", "totals"))
    head = f"__global__ void {view.kernel.name}("
    listing = f"const {kind}* {sums}, const {kind}* {totals}, {kind}* {result}, {kind}* {other}, int {count}"
    if len(head) + len(listing) > 100:
        listing = listing.replace(f", {kind}* {result}", f",\n{' ' * len(head)}{kind}* {result}")
    return f"""\
{head}{listing}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= {count} || {count} < 2) return;
    const {kind} sum = {names["up_to"]}({sums}, {totals}, i);
    {result}[i] = sum;
    // The other buffer gets what doubling would have left there: the sums of the last `half` elements.
    const int half = 1 << (31 - __clz({count} - 1));
    {other}[i] = i < half ? sum : sum - {names["up_to"]}({sums}, {totals}, i - half);
}}"""


def _apart(wanted: str, own: set[str]) -> str:
    while wanted in own:
        wanted += "_"
    own.add(wanted)
    return wanted


def _plan(view: View, found: Scan, names: dict[str, str], items: int) -> Plan:
    one, zero = number(1), number(0)
    places = {parameter.name: at for at, parameter in enumerate(view.kernel.parameters)}
    source = found.launch.arguments[places[found.step.source.name]]
    target = found.launch.arguments[places[found.step.target.name]]
    tile = THREADS * items
    count: Expression = build("/", [build("+", [found.count, number(tile - 1)]), number(tile)])
    tiles = name(names["count"])
    sums, ends = name(names["sums"]), name(names["ends"])

    def launch(kernel: str, grid: Expression, block: int, *arguments: Expression) -> Launch:
        return Launch(kernel, (grid, one, one), (number(block), one, one), zero, arguments)

    steps: tuple[Step, ...] = (
        launch(names["tiles"], tiles, THREADS, source, sums, ends, found.count),
        launch(names["totals"], one, WIDE, ends, tiles),
        evolve(found.repeat, body=(found.swap,)),  # the names end up as they did
        evolve(found.launch, arguments=(sums, ends, source, target, found.count)),
    )
    place = view.request.plan.steps.index(found.repeat)
    whole = view.request.plan.steps
    dtype = str(from_c_type(found.type))
    scratch = (Scratch(names["sums"], dtype, found.count, False), Scratch(names["ends"], dtype, tiles, False))
    return evolve(
        view.request.plan,
        steps=(*whole[:place], *steps, *whole[place + 1 :]),
        scratch=(*view.request.plan.scratch, *scratch),
        locals=(*view.request.plan.locals, (names["count"], count)),
    )
