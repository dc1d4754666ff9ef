"""Whether compiling a kernel pays, from the code alone: what runs where must not hang on a clock."""

from agent.execution.emulator.kernel import Kernel

#: Thread-instructions from which compiling pays, and from which code that is there already does: less takes NumPy less
#: time. They are estimated from the code alone, a loop counting as ``ROUNDS`` turns, nested ones up to ``MOST_DEPTH``.
WORTH, WORTH_AGAIN, ROUNDS, MOST_DEPTH = 100_000_000, 1_000_000, 16, 3


def pays(kernel: Kernel, tracked: bool, threads: int) -> bool:
    """For a launch of that many threads; ``tracked`` is the form of code that it needs."""
    return estimate(kernel) * threads >= (WORTH_AGAIN if tracked in kernel.compiled else WORTH)


def estimate(kernel: Kernel) -> int:
    """Thread-instructions of one thread, from the code alone: each loop counts as ``ROUNDS`` turns."""
    inner = [
        (target, block.number) for block in kernel.blocks for target in block.end.targets if target <= block.number
    ]
    heads: dict[int, int] = {}
    for head, tail in inner:
        heads[head] = max(tail, heads.get(head, 0))
    return sum(
        block.weight * ROUNDS ** min(sum(head <= block.number <= tail for head, tail in heads.items()), MOST_DEPTH)
        for block in kernel.blocks
    )
