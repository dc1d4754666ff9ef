"""What can be wrong with a source file, in words for its author."""


class SourceError(Exception):
    """A file that cannot be read as CUDA source. The message says what is wrong and what to do."""


class UnknownKernel(SourceError):
    """No kernel of that name in the document. The message names those that exist."""


class SliceError(SourceError):
    """A kernel for which no translation unit can be written (for example: its template arguments are unknown)."""
