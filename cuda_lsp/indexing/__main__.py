"""``python -m cuda_lsp.indexing``: holds the index, and answers message after message until the server is gone."""

import contextlib
import os

from agent.execution.children.serve import serve
from agent.execution.wire import Channel
from cuda_lsp.indexing.answering import answer
from cuda_lsp.indexing.messages import Look, Progress, Question, Work
from cuda_lsp.indexing.workspace import Workspace

MEMORY = 3 << 30
"""Bytes of address space: a text that needs more ends the process, and is not read again."""
_NICE = 10
"""Whoever types goes first."""


def main() -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICE)
    workspace = Workspace()
    serve(lambda channel: _handle(channel, workspace), MEMORY)


def _handle(channel: Channel, workspace: Workspace) -> None:
    message: Look | Work | Question = channel.receive(Look, Work, Question)
    if isinstance(message, Question):
        channel.send(answer(workspace, message))
    elif isinstance(message, Work):
        channel.send(workspace.work(message.seconds))
    else:
        workspace.look(message)
        channel.send(Progress(0, 0, 0, False, False))


if __name__ == "__main__":
    main()
