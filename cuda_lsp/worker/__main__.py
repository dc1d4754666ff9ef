"""``python -m cuda_lsp.worker``: one task after the other over our own pipes, until the server is gone."""

import traceback

from agent.execution.children.serve import serve
from agent.execution.wire import Channel
from cuda_lsp.terminal.exits import TOO_DEEP, CommandError
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.tasks import run


def handle(channel: Channel) -> None:
    """One task. Whatever goes wrong in it is said in its Ended; only a crash of the process ends without one."""
    task: Task = channel.receive(Task)
    try:
        ended = run(task, channel.send)
    except CommandError as error:
        ended = Ended("failed", str(error))
    except RecursionError:
        ended = Ended("failed", TOO_DEEP)
    except Exception as error:
        ended = Ended("fault", f"a fault of cuda-lsp ({type(error).__name__}: {error})", detail=traceback.format_exc())
    channel.send(ended)


if __name__ == "__main__":
    serve(handle)
