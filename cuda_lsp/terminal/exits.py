"""Exit codes of every command, in one place. They are part of the interface and documented in docs/cli.md."""

import enum


class Exit(enum.IntEnum):
    OK = 0
    """A rewrite is proposed; a change is right; a listing was printed."""
    NEGATIVE = 1
    """The work was done and the answer is no: nothing faster, a change that is wrong, undecided or less precise."""
    USAGE = 2
    """The command line is wrong."""
    INPUT = 3
    """The file, the kernel or the workload cannot be used as it is, or the result cannot be written."""
    MACHINE = 4
    """Something that this command needs is missing on this machine; `cuda-lsp doctor` says what."""
    BROKEN = 5
    """The original kernel breaks its own contract (a race, an access out of bounds, a hang): mend it first."""
    INTERNAL = 70
    """A fault of cuda-lsp itself. A report was written; its path is in the message."""
    INTERRUPTED = 130
    """Ctrl-C. What was judged is kept, and the same command goes on from there."""


TOO_DEEP = "something is nested too deeply to be read: take it apart, or leave its file out"
"""Of generated code: a sum of a thousand terms is a tree a thousand deep."""


class CommandError(Exception):
    """Ends a command with a message that says what is wrong and what to do."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
