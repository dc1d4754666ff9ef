"""What can be wrong with a workload, in words that say what to do."""


class WorkloadError(ValueError):
    """The workload contradicts itself, the kernel or CUDA's limits. ``line`` is 1-based where one is to blame."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        self.line = line


class NoWorkload(WorkloadError):
    """No workload was found. ``questions`` are what only the user can tell (``size of `x`?``); ``draft`` is a directive
    with blanks (``?``) to fill in and put above the kernel."""

    def __init__(self, message: str, questions: tuple[str, ...] = (), line: int | None = None, draft: str = "") -> None:
        super().__init__(message, line)
        self.questions = questions
        self.draft = draft
