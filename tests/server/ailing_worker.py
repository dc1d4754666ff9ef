"""A worker as the server starts it, on a card that is ill: the file's name says what it has."""

from pathlib import Path

from agent.evaluation.setting import Setting
from agent.execution.children.serve import serve
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker import opening
from cuda_lsp.worker.__main__ import handle
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.tasks import verify
from tests.execution.gpu.ailing import Ailing


def _ill(task: Task, opened: Opened, full: bool = False) -> Setting:
    """A screen: seconds where a full verdict takes the half of a minute."""
    vars(opening)["open_device"] = lambda choice: Ailing(Path(task.path).stem)
    return opening.setting_of(task, opened)


if __name__ == "__main__":
    vars(verify)["setting_of"] = _ill
    serve(handle)
