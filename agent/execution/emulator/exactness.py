"""Which instructions PTX does not define to the last bit: a card's result and the emulator's agree within error only.

Functions named ``.approx`` and quotients named ``.full`` (PTX ISA gives each its largest error), matrix products of
floats (see ``semantics.matrices`` for theirs), sums of floats by atomics, which depend on who comes first, and
textures, whose filter has 8 bits for a weight.
"""

from collections.abc import Iterable

from agent.execution.emulator.ptx.instruction import Instruction
from agent.execution.emulator.semantics.matrices import INEXACT

_FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))


def is_inexact(instruction: Instruction) -> bool:
    """Whether the bits of its result are left open."""
    base, words, types = instruction.base, instruction.modifiers, instruction.types
    if base == "tex":
        return types[:1] == ("f32",)  # where the object is filtered, or its coordinates are normalised
    if base in ("mma", "wmma"):
        # two types are those of the result and the accumulator: A and B are f16
        return not {"load", "store"} & set(words) and (len(types) == 2 or bool(set(types[1:2]) & INEXACT))
    if base in ("atom", "red"):
        return "add" in words and bool(_FLOATS & set(types))
    return bool({"approx", "full"} & set(words))


def inexact(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """The opcodes among them that are."""
    return tuple(sorted({instruction.opcode for instruction in instructions if is_inexact(instruction)}))
