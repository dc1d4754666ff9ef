"""Device functions that reduce over a block by warp shuffles, as text."""

from attrs import frozen

from agent.analysis.patterns.combination import IDEMPOTENT, Combination

WORDS = {
    "sum": "sum",
    "product": "product",
    "max": "maximum",
    "min": "minimum",
    "and": "bitwise and",
    "or": "bitwise or",
    "xor": "bitwise exclusive or",
}
NAMES = {op: f"block_{op}" for op in WORDS} | {"and": "block_and_bits", "or": "block_or_bits", "xor": "block_xor"}


@frozen
class Shape:
    """What a helper is made for: the fold as the user spells it, the element's type, and how the block is laid out."""

    op: str
    function: str
    type: str
    planar: bool
    template: bool

    @property
    def thread(self) -> str:
        return "(threadIdx.y * blockDim.x + threadIdx.x)" if self.planar else "threadIdx.x"

    @property
    def threads(self) -> str:
        return "(blockDim.x * blockDim.y)" if self.planar else "blockDim.x"


def fold(shape: Shape, one: str, other: str) -> str:
    """``one op other`` in the user's own spelling."""
    if shape.function == "compare":
        return f"{one} {'<' if shape.op == 'max' else '>'} {other} ? {other} : {one}"
    if shape.function in "+*&|^":
        return f"{one} {shape.function} {other}"
    return f"{shape.function}({one}, {other})"


def shape_of(combination: Combination, element: str, planar: bool, template: bool) -> Shape:
    return Shape(combination.op, combination.function, element, planar, template)


def every_thread(shape: Shape, name: str) -> str:
    """A function whose result every thread of the block gets. One barrier inside; the caller's next write to ``slots``
    must be behind another. The butterfly folds the same pairs in every lane, so that all threads get the same bits."""
    return f"""\
// The {WORDS[shape.op]} of `value` over the block, in every thread: by shuffles within each warp, then across the
// warps through `slots`, one element a warp. The block is a whole number of warps. A barrier must come before `slots`
// is written again.
{head(shape, name)}
    const unsigned lane = {shape.thread} % 32;
{_shuffles(shape, 1)}
    if (lane == 0) slots[{shape.thread} / 32] = value;
    __syncthreads();
    value = {slot(shape)};
{_shuffles(shape, 1)}
    return value;
}}
"""


def first_thread(shape: Shape, name: str) -> str:
    """A function whose result thread 0 gets. One barrier inside, after which only the first warp has work; the caller's
    next write to ``slots`` must be behind another."""
    return f"""\
// The {WORDS[shape.op]} of `value` over the block, in thread 0 alone: by shuffles within each warp, then across the
// warps in the first one, through `slots`. The block is a whole number of warps. A barrier must come before `slots`
// is written again.
{head(shape, name)}
    const unsigned lane = {shape.thread} % 32;
{_shuffles(shape, 1)}
    if (lane == 0) slots[{shape.thread} / 32] = value;
    __syncthreads();
    if ({shape.thread} < 32) {{
        value = {slot(shape)};
{_shuffles(shape, 2)}
    }}
    return value;
}}
"""


def first_element(shape: Shape, name: str) -> str:
    """A function that leaves the result in ``slots[0]`` for all threads, as the tree did. Two barriers inside."""
    return f"""\
// Leaves the {WORDS[shape.op]} of `value` over the block in slots[0], visible to every thread: by shuffles within each
// warp, then across the warps in the first one. The block is a whole number of warps.
{head(shape, name, "void")}
    const unsigned lane = {shape.thread} % 32;
{_shuffles(shape, 1)}
    if (lane == 0) slots[{shape.thread} / 32] = value;
    __syncthreads();
    if ({shape.thread} < 32) {{
        value = {slot(shape)};
{_shuffles(shape, 2)}
        __syncwarp();
        if (lane == 0) slots[0] = value;
    }}
    __syncthreads();
}}
"""


def slot(shape: Shape, warps: str | None = None) -> str:
    """The partial result of one warp for each lane. Lanes beyond the last warp take what changes nothing: the neutral
    element, or the first warp's once more where folding it twice does not matter. ``warps``: their number, as text."""
    count = warps or f"{shape.threads} / 32"
    if shape.op in IDEMPOTENT:
        return f"slots[lane < {count} ? lane : 0]"
    return f"lane < {count} ? slots[lane] : {'1' if shape.op == 'product' else '0'}"


def _shuffles(shape: Shape, depth: int) -> str:
    indent = "    " * depth
    folded = step(shape, "offset")
    return f"{indent}for (int offset = 16; offset > 0; offset /= 2)\n{indent}    {folded}"


def head(shape: Shape, name: str, result: str | None = None, slots: bool = True) -> str:
    template = f"template <typename {shape.type}>\n" if shape.template else ""
    element = shape.type
    given = f"{element} value, {element}* slots" if slots else f"{element} value"
    return f"{template}__device__ __forceinline__ {result or element} {name}({given}) {{"


def step(shape: Shape, offset: str, mask: str = "0xffffffffu") -> str:
    """The statement that folds in the value of the lane at a distance."""
    shuffled = f"__shfl_xor_sync({mask}, value, {offset})"
    if shape.function == "compare":
        return f"{{ const {shape.type} other = {shuffled}; value = {fold(shape, 'value', 'other')}; }}"
    if shape.function in "+*&|^":
        return f"value {shape.function}= {shuffled};"
    return f"value = {fold(shape, 'value', shuffled)};"
