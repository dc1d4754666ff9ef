"""The compiled back end: a launch as machine code, thread by thread, where that gives what the NumPy back end gives.

Both stand on one table of semantics: the rules that compute arrays of lanes are run once on a lane that writes down
LLVM instructions (``symbolic``). All else has a form of its own here (accesses, what lanes of a warp do together,
copies by ``cp.async``), and what has none is left to the NumPy back end, by kernel: ``mbarrier``, bulk copies,
clusters, atomics that somebody looks at.

It finds out *that* something is wrong, never what. Every access is checked, and every access to memory that threads
share is noted (``records``): where one is not sound, two threads meet with nothing to order them, or the limit of
thread-instructions is reached, the launch is taken back and run by the NumPy back end, whose report is the report. So
answers are the same whichever back end ran, down to the last bit of the last fault.
"""

from typing import TYPE_CHECKING

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.compiled.worth import pays

if TYPE_CHECKING:
    from agent.execution.emulator.launch import Setting


def attempt(setting: "Setting", numbers: Array, threads: int, always: bool = False) -> bool:
    """Run the launch's blocks ``numbers``, if that pays (or ``always``) and this back end can; whether it did. LLVM is
    only loaded where it is used. Raises Cancelled, TimeLimit."""
    if not always and not pays(setting.kernel, "initialised" in setting.checks, threads * len(numbers)):
        return False
    try:
        from agent.execution.emulator.compiled import launching
    except ImportError:
        return False
    return launching.attempt(setting, numbers, threads)


def toiled(setting: "Setting", steps: int, lanes: int) -> None:
    """NumPy has done ``steps`` thread-instructions of a launch, ``lanes`` at a time. It counts where compiled code
    could have run it."""
    if observed(setting):
        return
    tracked = "initialised" in setting.checks
    setting.kernel.toil[tracked] = setting.kernel.toil.get(tracked, 0.0) + steps / max(1, lanes)


def observed(setting: "Setting") -> bool:
    """Whether somebody watches each instruction, or buffers are made page by page: only NumPy does that."""
    watched = any(one is not None for one in (setting.totals, setting.reach, setting.twins))
    return watched or any(buffer.present is not None for buffer in setting.memory.buffers.values())
