"""What compiled code and those who call it agree on: where each number is that the code reads or leaves behind.

The code gets the address of a *context*, 64-bit words that :class:`Word` numbers. Buffers have a row of words each in a
table, by tag (:class:`Row`). All of it lives in NumPy arrays of the caller.
"""

from enum import IntEnum


class Word(IntEnum):
    """``FIRST`` to ``LAST`` are the blocks to run (places in the launch's list of blocks). ``LIMIT`` is the address of
    the thread-instructions allowed, which may be lowered from outside at any time to stop the code. ``STEPS`` comes
    back. ``ENTRIES`` is the address of as many addresses, one for each entry that the launch fills. ``BARRIERS``:
    whether it is looked at who has left the kernel when others come to a barrier. ``COPIES``: what each thread has
    asked to be copied (``MOST_COPIES``, of ``COPY_WORDS`` words each), ``COPY_HEADS``: of each thread, how many copies
    these are and how many groups of them it has committed."""

    FIRST = 0
    LAST = 1
    THREADS = 2
    LIMIT = 3
    STEPS = 4
    SHARED = 5
    SHARED_SIZE = 6
    SHARED_ENDS = 7
    SHARED_WRITTEN = 8
    SHARED_READ = 9
    SHARED_CELLS = 10
    LOCAL = 11
    LOCAL_KNOWN = 12
    TABLE = 13
    TAGS = 14
    ENTRIES = 15
    PARAMETERS = 16
    PARAMETERS_SIZE = 17
    FRAMES = 18
    STATES = 19
    SITE = 20
    WARPS = 21
    EXCHANGE = 22
    GROUPS = 23
    TURNS = 24
    BARRIERS = 25
    COPIES = 26
    COPY_HEADS = 27
    COUNT = 28


class Row(IntEnum):
    """``FITS`` + k: how many places an access of 2**k bytes may begin at. ``MARKS``: the address of the marks of bytes
    written, 0 where nobody asked; ``WRITTEN``/``READ``: records of who did so last; ``CHECKED``: whether reading what
    is not marked is a fault."""

    DATA = 0
    START = 1
    FITS = 2
    MARKS = 8
    WRITABLE = 9
    WRITTEN = 10
    READ = 11
    CHECKED = 12
    COUNT = 16


#: What the code answers: all blocks are done; something happened that only the other back end can tell about; the limit
#: was reached.
DONE, SUSPECT, LIMIT = 0, 1, 2

MOST_COPIES, COPY_WORDS, COPY_HEAD = 64, 4, 2

# Records: the block's place in the launch, plus one | barriers passed | thread
BLOCK_SHIFT, PHASE_SHIFT = 32, 11
SEVERAL = (1 << PHASE_SHIFT) - 1  # in place of a thread: several, of one block and phase
ATOMICS = SEVERAL - 1  # in place of a thread: atomics, of any number of threads
MOST_PHASES = 1 << (BLOCK_SHIFT - PHASE_SHIFT)
ANYBODY = 0xFFFF_FFFF_FFFF_FFFF  # threads of several blocks have read it
ALL_ATOMIC = 0xFFFF_FFFE_0000_0000  # of global memory: atomics, of any number of blocks
