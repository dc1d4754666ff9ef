"""Device functions that reduce over the threads that share one row: some lanes of a warp, or the whole block."""

from agent.ideas.reduction.helpers import WORDS, Shape, head, slot, step

WARP = 32


def among_lanes(shape: Shape, name: str, lanes: int) -> str:
    """A function that folds over ``lanes`` neighbouring lanes (a power of two up to 32); each of them gets the result,
    the same bits in all."""
    if lanes == WARP:
        mask, who = "", "the 32 lanes of a warp"
        shuffled = step(shape, "offset", "0xffffffffu")
    else:
        bits = f"{(1 << lanes) - 1:#x}u"
        mask = f"    const unsigned lanes = {bits} << (threadIdx.x % 32 / {lanes} * {lanes});\n"
        who = f"the {lanes} neighbouring lanes that share a row"
        shuffled = step(shape, "offset", "lanes")
    return f"""\
// The {WORDS[shape.op]} of `value` over {who}, in each of them.
{head(shape, name, slots=False)}
{mask}    for (int offset = {lanes // 2}; offset > 0; offset /= 2)
        {shuffled}
    return value;
}}
"""


def among_block(shape: Shape, name: str, threads: int) -> str:
    """A function that folds over a one-dimensional block of ``threads`` (whole warps), in every thread. Two barriers
    inside, the second so that it may be called again."""
    warps = threads // WARP
    shuffled = step(shape, "offset", "0xffffffffu")
    return f"""\
// The {WORDS[shape.op]} of `value` over the block, in every thread: by shuffles within each warp, then
// across the warps.
{head(shape, name, slots=False)}
    __shared__ {shape.type} slots[{warps}];
    const unsigned lane = threadIdx.x % 32;
    for (int offset = 16; offset > 0; offset /= 2)
        {shuffled}
    if (lane == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = {slot(shape, str(warps))};
    for (int offset = 16; offset > 0; offset /= 2)
        {shuffled}
    __syncthreads();  // the slots may be written again
    return value;
}}
"""
