"""What the worker can do, one file each: a module here of a task's kind has ``run(task, tell) -> Ended``."""

import importlib
import pkgutil
from collections.abc import Callable

from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Message

Tell = Callable[[Message], None]


def kinds() -> tuple[str, ...]:
    """The kinds of task that there are."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def run(task: Task, tell: Tell) -> Ended:
    """Do the task. Raises CommandError with what the user should know."""
    if task.kind not in kinds():
        return Ended("failed", f"no such task: {task.kind}; there are {', '.join(kinds())}")
    module = importlib.import_module(f"{__name__}.{task.kind}")
    ended: Ended = module.run(task, tell)
    return ended
