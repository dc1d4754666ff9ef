"""Whether compiling a kernel pays, from the code alone: what runs where must not hang on a clock."""

from agent.execution.emulator.kernel import Kernel

#: Thread-instructions from which compiling pays, and from which code that is there already does: less takes NumPy less
#: time. They are estimated from the code alone, a loop counting as ``ROUNDS`` turns, nested ones up to ``MOST_DEPTH``.
WORTH, WORTH_AGAIN, ROUNDS, MOST_DEPTH = 100_000_000, 1_000_000, 16, 3

#: Instructions that NumPy may execute before compiling would have taken no longer: of any kernel, and for each that it
#: has. (NumPy takes some 15 microseconds for one, however few its lanes are; LLVM 2.4 milliseconds, and 0.2 s before.)
AT_FIRST, FOR_EACH = 12_000, 160


def pays(kernel: Kernel, tracked: bool, threads: int) -> bool:
    """For a launch of that many threads; ``tracked`` is the form of code that it needs. What runs again and again is
    compiled once NumPy has worked as long on it as compiling takes: of blocks with few threads no estimate is large."""
    if threads and kernel.toil.get(tracked, 0.0) >= AT_FIRST + FOR_EACH * len(kernel.sites):
        return True
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
