"""Sums of products that a tensor core makes: what types both factors have, and that nothing else is added."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.patterns.combination import combination
from agent.analysis.patterns.product_nest import Load
from agent.analysis.symbols import Symbol
from agent.analysis.syntax import arguments, bare, callee, contains, enclosing, expression_of, text
from agent.execution.toolkit import include_folders
from agent.ideas.product.launching import GRID_LIMIT, layers, places
from agent.ideas.product.shape import Product, product
from agent.ideas.product.texts import text_at
from agent.ideas.product.write import is_zero, plainly_set
from agent.ideas.view import View
from agent.workload.dtypes import from_c_type

HEADER = "mma.h"
FEWEST = 64
"""A square of so many outputs a side fills one block."""


@frozen
class Kind:
    """What a tensor core multiplies: elements of ``dtype``, ``words`` for users, ``turns`` of the sum in one
    instruction, from compute capability ``since`` on (PTX ISA, "wmma.mma")."""

    dtype: str
    words: str
    turns: int
    since: int
    padding: int


KINDS = {
    "f16": Kind("f16", "half", 16, 70, 8),
    "bf16": Kind("bf16", "bfloat16", 16, 80, 8),
    "f32": Kind("f32", "tf32", 8, 80, 4),
}
_TO_FLOAT = {"f16": ("__half2float",), "bf16": ("__bfloat162float",), "f32": ()}
_FUSED = ("fma", "fmaf", "__fmaf_rn")


@frozen(eq=False)
class Site:
    """``total`` is the float that sums up products of an element of ``rows`` and one of ``cols``, from zero on."""

    product: Product
    kind: Kind
    total: Symbol
    rows: Load
    cols: Load


def site(view: View) -> Site | str:
    """Where a kernel's products may be made by tensor cores, or why nowhere."""
    found = product(view, (2, 4))
    if isinstance(found, str):
        return found
    types = {from_c_type(load.access.element) for side in (found.rows, found.cols) for load in side.loads}
    kind = KINDS.get(str(next(iter(types)))) if len(types) == 1 else None
    if kind is None:
        return "its operands are not both half, both bfloat16 or both float"
    made = _summed(found, kind)
    if isinstance(made, str):
        return made
    reason = _opened(made) or _allowed(made) or _worth(found)
    return made if reason is None else reason


def _summed(found: Product, kind: Kind) -> Site | str:
    nest = found.frame.nest
    if len(found.rows.loads) != 1 or len(found.cols.loads) != 1 or len(nest.loads) != 2 or len(nest.updates) != 1:
        return "a turn does something else than add the product of two elements"
    if nest.cells or len(nest.accumulators) != 1:
        return "what it adds to is no local variable"
    total = nest.accumulators[0]
    if total.type != "float":
        return f"the sum is of type {total.type}, where a tensor core adds in float"
    if not found.frame.after:
        return f"{total.name} is used nowhere"
    declared = enclosing(total.declarator, "declaration")
    if declared is None or len(declared.children_by_field_name("declarator")) != 1:
        return f"{total.name} is declared together with something else"
    rows, cols = found.rows.loads[0], found.cols.loads[0]
    factors = _factors(nest.updates[0], total, found)
    if factors is None:
        return "a turn does something else than add the product of two elements"
    ends = [_element(one, (rows, cols), kind, found) for one in factors]
    if {id(one) for one in ends} != {id(rows), id(cols)}:
        return "a turn does not multiply its two elements in float, each as it is"
    return Site(found, kind, total, rows, cols)


def _factors(update: Node, total: Symbol, found: Product) -> tuple[Node, Node] | None:
    """The two factors of what a statement adds to ``total``."""
    resolve = found.facts.symbols.resolve

    def is_total(node: Node) -> bool:
        return node.type == "identifier" and resolve(node) is total

    added = combination(update, is_total)
    if added is not None:
        one = _seen_through(added.operand, found) if added.op == "sum" else None
        if one is None or one.type != "binary_expression" or text(one.child_by_field_name("operator")) != "*":
            return None
        left, right = one.child_by_field_name("left"), one.child_by_field_name("right")
        return None if left is None or right is None else (left, right)
    assignment = expression_of(update)
    if assignment is None or assignment.type != "assignment_expression":
        return None
    target, value = bare(assignment.child_by_field_name("left")), bare(assignment.child_by_field_name("right"))
    given = arguments(value) if value is not None and callee(value) in _FUSED else []
    last = bare(given[2]) if len(given) == 3 else None
    if target is None or last is None or not is_total(target) or not is_total(last):
        return None
    return given[0], given[1]


def _seen_through(node: Node, found: Product) -> Node | None:
    """What a float local that keeps its value stands for, or the expression itself."""
    inner = bare(node)
    symbol = found.facts.symbols.resolve(inner) if inner is not None and inner.type == "identifier" else None
    if symbol is not None and symbol.type == "float" and symbol.fixed and symbol.init is not None and not symbol.dims:
        return _seen_through(symbol.init, found)
    return inner


def _element(node: Node, loads: tuple[Load, ...], kind: Kind, found: Product) -> Load | None:
    """The load that a factor is, made a float on the way where its elements are none; None for anything else."""
    converted = kind.dtype == "f32"
    at = bare(node)
    while at is not None:
        reached = next((load for load in loads if any(one == at for one in load.nodes)), None)
        if reached is not None:
            return reached if converted else None
        step = _step(at, kind, found)
        if step is None:
            return None
        at, floats = bare(step[0]), step[1]
        converted = converted or floats
    return None


def _step(node: Node, kind: Kind, found: Product) -> tuple[Node, bool] | None:
    """One conversion or local further in, and whether it makes a float."""
    if node.type == "cast_expression":
        kept, value = text(node.child_by_field_name("type")), node.child_by_field_name("value")
        return (value, True) if kept == "float" and value is not None else None
    if node.type == "call_expression":
        given = arguments(node)
        plain = text(node.child_by_field_name("function")).replace(" ", "")
        floats = plain in ("float", "static_cast<float>", *_TO_FLOAT[kind.dtype])
        return (given[0], True) if floats and len(given) == 1 else None
    symbol = found.facts.symbols.resolve(node) if node.type == "identifier" else None
    if symbol is None or not symbol.fixed or symbol.init is None or symbol.dims or contains(symbol.init, node):
        return None
    if symbol.type == "float" or from_c_type(symbol.type) == kind.dtype:
        return symbol.init, symbol.type == "float"
    return None


def _opened(found: Site) -> str | None:
    """The sum begins at zero."""
    shape, total = found.product, found.total
    starts = [] if total.init is None else [total.init]
    for statement in shape.frame.opening:
        assignment = expression_of(statement)
        left = None if assignment is None else bare(assignment.child_by_field_name("left"))
        if left is not None and left.type == "identifier" and shape.facts.symbols.resolve(left) is total:
            value = plainly_set(statement)
            if value is None:
                return f"{total.name} does not begin at zero"
            starts.append(value)
    if not starts or not all(is_zero(text_at(shape, one)) for one in starts):
        return f"{total.name} does not begin at zero"
    return None


def _allowed(found: Site) -> str | None:
    """What users, their cards and their toolkit must allow."""
    view, kind = found.product.view, found.kind
    if kind.dtype == "f32" and not (view.request.lossy or view.request.workload.lossy):
        return (
            "tensor cores keep 10 of a float's 23 bits of fraction (tf32), and less precision is not allowed: the "
            "workload's statement `lossy`, or --lossy, allows it"
        )
    older = next((one for one in view.request.architectures if _capability(one) < kind.since), None)
    if older is not None:
        return f"{older} has no tensor cores for {kind.words}: they come with sm_{kind.since}"
    if "::" in view.kernel.qualified_name:
        return f"the kernel stands in a namespace, where {HEADER} cannot be included"
    folders = include_folders()
    if not all(any((folder / name).is_file() for folder in folders) for name in (HEADER, f"crt/{HEADER}")):
        return (
            f"there is no {HEADER} beside the compiler: it comes with the CUDA toolkit, or with NVIDIA's wheels of "
            "the runtime and of crt (CUDA 13) or nvcc (CUDA 12)"
        )
    return None


def _capability(arch: str) -> int:
    digits = "".join(one for one in arch if one.isdigit())
    return int(digits) if digits else 0


def _worth(found: Product) -> str | None:
    rows, cols = places(found, found.rows), places(found, found.cols)
    if min(rows, cols) < FEWEST // 4 or rows * cols < FEWEST * FEWEST:
        return f"{rows} x {cols} outputs are too few for tiles"
    if 0 < found.turns < 16:
        return f"{found.turns} turns of the loop over {found.step.variable.name} do not fill one step"
    if found.view.kernel.launch_bounds:
        return "its launch bounds were chosen for the block that it has"
    if -(-rows // FEWEST) > GRID_LIMIT or layers(found) > GRID_LIMIT:
        return "the grid would be larger than a card can launch"
    return None
