"""Standard output that takes no more: a full disk, a limit on files, a reader that went away."""

import errno
import os
import sys

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO} | {getattr(errno, "EDQUOT", errno.ENOSPC)})


def unwritable(error: BaseException) -> str:
    """What to say of an error that says that there is no room for what is written; empty of any other."""
    if not isinstance(error, OSError) or error.errno not in FULL:
        return ""
    what = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "the result"
    return f"{what} cannot be written: {error.strerror}; free some room, or write elsewhere"


def shut() -> None:
    """What is still held back goes nowhere, so that the interpreter has nothing to complain about as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def flush() -> None:
    """Now, where an error can be answered. Raises OSError."""
    if sys.stdout is not None:
        sys.stdout.flush()
