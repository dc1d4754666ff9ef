"""What every pure PTX instruction computes: one table keyed by base opcode, generic over types and modifiers.

``lower(instruction)`` gives an :class:`Operation` or raises :class:`Unsupported` with the full opcode. How an engine
uses it:

- ``operation.sources`` and ``operation.results`` are the PTX types of the operands after flattening (``flatten``: a
  vector ``{a, b}`` counts as two operands, a sink as one). A register is passed as the array that holds it: ``uint16``,
  ``uint32``, ``uint64`` or ``bool`` by its register file. An immediate is ``constant(immediate, type)``, a 0-d array;
  special registers and addresses have the dtype ``dtype_of(type)``. Sources may be any mix of shapes that broadcast.
- ``operation.apply(sources)`` returns one array per result, in the dtype of the destination's register file. A result
  may be (or share memory with) a source, as in ``mov``, is a NumPy scalar where all sources are 0-d, and has a smaller
  shape (that broadcasts) where it does not depend on every source.
- ``operation.into(sources, outs)`` writes the results into the arrays ``outs`` (of the full broadcast shape), which
  may be the very arrays of the sources. It is the fast way where all lanes take part.
- ``reads_carry``: the condition code (a ``bool`` array) comes as one more source, the last. ``writes_carry``: it goes
  out as one more result, the last.
- Call inside ``numpy.errstate(all="ignore")``: nothing here silences warnings by itself.

Everything that PTX defines to the bit is exact to the bit, NaN included (0x7fffffff for f32, 0x7fff for halves; f64
keeps the payload of an operand). Functions named ``.approx`` and ``div.full`` are computed in float64 and rounded once:
a card differs in the last bits. Each rule is written with element-wise NumPy functions only, apart from corrections of
rare lanes.

What the engine does itself, since it needs memory, other lanes or control flow: see ``ENGINE``.
"""

import importlib
import pkgutil

from agent.execution.emulator.semantics.arrays import constant, dtype_of
from agent.execution.emulator.semantics.table import Operation, Unsupported, flatten, lower

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

#: Base opcodes that are no pure function of their operands: the engine's, or refused.
ENGINE = frozenset(
    """
    ld ldu st atom red cvta isspacep bra brx call ret exit trap brkpt bar barrier membar fence vote match
    activemask redux shfl nanosleep prefetch prefetchu discard applypriority cp mbarrier griddepcontrol elect
    mma wmma ldmatrix stmatrix movmatrix wgmma tcgen05 tex tld4 txq suld sust sured suq istypep alloca stacksave
    stackrestore getctarank mapa createpolicy pmevent setmaxnreg multimem tensormap clusterlaunchcontrol
    """.split()  # noqa: SIM905
)

__all__ = ["ENGINE", "Operation", "Unsupported", "constant", "dtype_of", "flatten", "lower"]
