"""A8: an index computed in 32 bits and then widened."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.rules.finding import Cost, Hit, Mend, Severity, hit
from agent.analysis.rules.mending import before
from agent.analysis.rules.registry import rule
from agent.analysis.rules.view import View
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import bare, text
from agent.analysis.values import value
from agent.analysis.widths import integer_type
from agent.workload.dtypes import from_c_type

FIRES = """\
__global__ void scale(float* x, size_t n) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;  // A8
    if (i < n) x[i] *= 2.0f;
}
"""
WIDENED = """\
__global__ void scale(float* x, size_t n, int cols) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t j = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    size_t k = threadIdx.x * 4;
    if (i < n) x[i] *= x[j] + x[k];
}
"""
SHORT = """\
__global__ void scale(float* x, int n) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""
FAR = """\
// A grid has 65535 rows of blocks at most, of 1024 threads each; and a loop over the rest needs no large grid.
__global__ void scale(float* x, size_t rows, size_t n) {
    size_t row = blockIdx.y * blockDim.y + threadIdx.y;
    size_t col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < n) x[row * n + col] *= 2.0f;
}
__global__ void all(float* x, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] *= 2.0f;
}
"""
WIDE = ("i64", "u64")


@rule(
    id="A8",
    name="narrow-product",
    title="An index is computed in 32 bits and widened afterwards",
    why="A product of two 32-bit numbers wraps at 2^32 (signed: 2^31) before it is put into 64 bits.",
    cost=Cost.RESULT,
    severity=Severity.INFORMATION,
    silent_when=(
        "no parameter that it is compared with or multiplied by has 64 bits: sizes are small then",
        "a factor is a number, or a factor is widened first",
        "it is of blockIdx.y or .z, of which there are few, or one of several coordinates",
        "a loop goes on from it in steps of the whole grid, which need not be large then",
    ),
    fires=(FIRES,),
    silent=(WIDENED, SHORT, FAR),
)
def narrow_product(view: View) -> Iterator[Hit]:
    if b"blockIdx.y" in view.facts.document.blanked:
        return
    for symbol in view.facts.symbols.all():
        if (
            symbol.writes
            or symbol.space != "local"
            or symbol.init is None
            or symbol.is_memory
            or not _is_wide(symbol.type)
        ):
            continue
        product = _product(bare(symbol.init), view)
        if product is not None and _meets_wide(symbol, view):
            left = product.child_by_field_name("left")
            yield hit(
                product,
                f"`{text(product)}` is multiplied in 32 bits, where it may wrap, before it becomes the 64-bit "
                f"{symbol.name}",
                mend=_widened(left, symbol),
            )


def _is_wide(written: str) -> bool:
    return any(word in written for word in ("64", "long", "size_t")) and from_c_type(written) in WIDE


def _widened(left: Node | None, symbol: Symbol) -> Mend | None:
    if left is None or left.type not in ("identifier", "field_expression"):
        return None
    return Mend("Widen before multiplying", ((before(left), f"({symbol.type})"),))


def _product(node: Node | None, view: View) -> Node | None:
    """The product of block and its size in a sum, all of it in 32 bits."""
    if node is None or node.type != "binary_expression" or integer_type(node, view.facts.symbols) not in ("i32", "u32"):
        return None
    operator = text(node.child_by_field_name("operator"))
    sides = [bare(node.child_by_field_name(side)) for side in ("left", "right")]
    if operator == "*":
        factors = [value(side, view.facts.scope) for side in sides]
        if any(factor.constant is not None for factor in factors):
            return None
        return node if any(source.startswith("blockIdx") for one in factors for source in one.depends) else None
    if operator not in ("+", "-"):
        return None
    return next((found for side in sides if (found := _product(side, view)) is not None), None)


def _meets_wide(symbol: Symbol, view: View) -> bool:
    """Whether it is compared with a parameter of 64 bits somewhere."""
    for test in view.operations("<", ">", "<=", ">="):
        sides = [bare(test.child_by_field_name(side)) for side in ("left", "right")]
        for one, other in (sides, sides[::-1]):
            if one is None or one.type != "identifier" or view.facts.symbols.resolve(one) is not symbol:
                continue
            if integer_type(other, view.facts.symbols) in WIDE:
                return True
    return False
