"""An idea in the user's own words, turned into code and judged like any other."""

from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.worker.messages import Ended, Task
from cuda_lsp.worker.tasks import Tell

NO_MODEL = (
    "an idea in your own words needs a language model to turn it into code, and none is configured. "
    "The ideas of the catalogue need none: Suggest ideas lists those that apply"
)


def run(task: Task, tell: Tell) -> Ended:
    """Raises CommandError with what is missing."""
    raise CommandError(Exit.INPUT, NO_MODEL)
