"""A worker as the server starts it, but for one thing: a change gets a screen's verdict, seconds where a full one takes
the half of a minute on a card. ``python -m tests.chaos.worker``"""

from agent.evaluation.setting import Setting
from agent.execution.children.serve import serve
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker.__main__ import handle
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.opening import setting_of
from cuda_lsp.worker.tasks import verify


def _screen(task: Task, opened: Opened, full: bool = False) -> Setting:
    return setting_of(task, opened)


if __name__ == "__main__":
    vars(verify)["setting_of"] = _screen
    serve(handle)
