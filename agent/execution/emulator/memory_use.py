"""What an instruction does to memory, told from the instruction alone: does it read, or write, how narrowly, where.

The one place that knows which opcodes touch memory; checks, counters and flow analysis ask here.
"""

from agent.execution.emulator.ptx.instruction import Instruction, Operand
from agent.execution.emulator.semantics.fragments import BITS
from agent.execution.emulator.values import width_of

_ON_CHIP = frozenset(("shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func"))
_ATOMIC = ("atom", "red")
_SHARED_ONLY = ("ldmatrix", "stmatrix", "mbarrier")
_VIEWS = ("tex", "tld4", "suld", "sust")


def loads(instruction: Instruction) -> bool:
    """Whether it reads memory, and does nothing else to it."""
    base = instruction.base
    return base in ("ld", "ldu", "ldmatrix", "tex", "tld4", "suld") or (
        base == "wmma" and "load" in instruction.modifiers
    )


def writes_to(instruction: Instruction) -> Operand | None:
    """The address that it writes to; None where it writes nothing."""
    base, words = instruction.base, instruction.modifiers
    if base in ("st", "stmatrix", "mbarrier", "cp", "sust", *_ATOMIC) or (base == "wmma" and "store" in words):
        return instruction.sources[0] if instruction.sources else None
    return None


def synchronises(instruction: Instruction) -> bool:
    """Whether what it does to memory is one step that others may take at the same time: an atomic, or an operation of
    an ``mbarrier`` but for the first, which others must be kept from by other means."""
    base, words = instruction.base, instruction.modifiers
    if base == "mbarrier":
        return words[:1] != ("init",)
    return base in _ATOMIC or (base == "cp" and bool({"mbarrier", "reduce"} & set(words)))


def touches(instruction: Instruction) -> bool:
    """Whether it reads or writes memory."""
    return loads(instruction) or writes_to(instruction) is not None


def narrowest(instruction: Instruction) -> int:
    """Bytes of its narrowest access, at most four."""
    if instruction.base == "wmma":
        return min(max(BITS.get(instruction.types[0], 32) // 8, 1), 4)
    if instruction.base in _VIEWS:
        return 1  # a texel's type is the object's
    if instruction.base in ("cp", *_SHARED_ONLY) or not instruction.types:
        return 4
    return min(width_of(instruction.types[0]), 4)


def may_be_global(instruction: Instruction) -> bool:
    """Whether what it touches may lie in global memory."""
    if not touches(instruction) or instruction.base in _SHARED_ONLY:
        return False
    if instruction.base == "cp":
        # the first space is the target's
        spaces = [word for word in instruction.modifiers if word.split("::")[0] in ("shared", "global")]
        return spaces[:1] == ["global"]
    return not _ON_CHIP & set(instruction.modifiers)


def changes_global(instruction: Instruction) -> bool:
    """Whether what it does to global memory, if anything, is to write."""
    return writes_to(instruction) is not None and may_be_global(instruction)


def may_be_shared(instruction: Instruction) -> bool:
    """Whether what it touches may lie in shared memory."""
    elsewhere = {"global", "local", "param", "const", "param::entry", "param::func"}
    if instruction.base in _VIEWS:
        return False
    return touches(instruction) and (instruction.base == "cp" or not elsewhere & set(instruction.modifiers))
