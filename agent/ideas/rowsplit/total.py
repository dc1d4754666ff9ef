"""Putting together what the threads of all blocks of a row have found, thread by thread."""

from collections.abc import Sequence

from agent.analysis.patterns.reduction_loop import Accumulator
from agent.ideas.reduction.helpers import fold, shape_of
from agent.ideas.rewriting import indent_unit, with_unit
from agent.ideas.rowsplit.copies import wrapped
from agent.ideas.rowsplit.site import Pass
from agent.ideas.view import View


def total_kernel(view: View, one: Pass, name: str, buffers: Sequence[str], count: str) -> str:
    """A kernel, launched with a block for each row, that leaves in each thread's first place what the threads of its
    number have in all blocks."""
    pairs = list(zip(one.walk.accumulators, buffers, strict=True))
    head = f"__global__ void {name}"
    given = [f"{accumulator.symbol.type}* {buffer}" for accumulator, buffer in pairs]
    listing = wrapped([*given, f"int {count}"], len(head))
    names = [accumulator.symbol.name for accumulator, _ in pairs]
    starts = [f"    {acc.symbol.type} {acc.symbol.name} = {buffer}[first];" for acc, buffer in pairs]
    steps = [f"        {step_of(acc, f'{buffer}[first + part * blockDim.x]')}" for acc, buffer in pairs]
    ends = [f"    {buffer}[first] = {own};" for own, (_, buffer) in zip(names, pairs, strict=True)]
    lines = (
        "// Launched behind it, a block for each row: what all blocks of the row have found, thread by thread.",
        f"{head}{listing} {{",
        f"    const int first = blockIdx.x * {count} * blockDim.x + threadIdx.x;",
        *starts,
        f"    for (int part = 1; part < {count}; ++part) {{",
        *steps,
        "    }",
        *ends,
        "}",
    )
    return with_unit("\n".join(lines), indent_unit(view.document, view.kernel))


def step_of(accumulator: Accumulator, operand: str) -> str:
    """The statement that folds an operand into an accumulator, as the user spells it."""
    target = accumulator.symbol.name
    shape = shape_of(accumulator.fold, accumulator.symbol.type, planar=False, template=False)
    if shape.function in "+*&|^":
        return f"{target} {shape.function}= {operand};"
    return f"{target} = {fold(shape, target, operand)};"
