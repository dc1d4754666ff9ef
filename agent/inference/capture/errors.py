"""What can keep launches from being captured, in words that say what to do."""


class CaptureError(Exception):
    """Nothing can be captured: the message says what is missing or wrong, and what to do. ``machine``: on this machine
    (a compiler, CUPTI, a card); else in what was asked for."""

    def __init__(self, message: str, machine: bool = True) -> None:
        super().__init__(message)
        self.machine = machine
