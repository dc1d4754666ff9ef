"""For a scan: the kernels of a file, or one of them (by its place among them) with what it costs.

The file is read here, so that nothing strange in it can harm the scan.
"""

import os
from functools import lru_cache
from pathlib import Path

from agent.source.document import Document
from agent.source.errors import SourceError
from agent.workload.settings import SettingsError, settings_of
from cuda_lsp.scanning import store
from cuda_lsp.scanning.kernel import Asked, listed, scanned
from cuda_lsp.scanning.values import ListedFile, Scanned
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.hints.project import projects
from cuda_lsp.terminal.hints.reported import document_of, holds_kernels
from cuda_lsp.terminal.hints.walk import CUDA
from cuda_lsp.terminal.opening import open_target
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended
from cuda_lsp.worker.tasks import Tell


def run(task: Task, tell: Tell) -> Ended:
    """``task.kernel`` is empty for the list, else a number from 0 on; ``task.path`` is absolute."""
    try:
        if not task.kernel:
            return Ended("done", "", listed=_listed(task.path))
        return Ended("done", "", scanned=_scanned(task))
    except (SourceError, SettingsError) as error:
        raise CommandError(Exit.INPUT, str(error)) from None
    except RecursionError:
        raise CommandError(Exit.INPUT, f"{task.path} is nested too deeply to be read; exclude it") from None


def _listed(path: str) -> ListedFile:
    if os.path.splitext(path)[1].lower() not in CUDA and not holds_kernels(path):  # noqa: PTH122
        return ListedFile(path)
    return ListedFile(path, listed(_document(path)))


def _document(path: str) -> Document:
    status = os.stat(path)  # noqa: PTH116
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)
def _read(path: str, changed: int, size: int) -> Document:
    """Tasks for the kernels of a file come one after the other."""
    return document_of(path)


def _scanned(task: Task) -> Scanned:
    document = _document(task.path)
    index = int(task.kernel)
    if index >= len(document.kernels):
        raise CommandError(Exit.INPUT, f"{task.path} changed meanwhile: scan again")
    folder = Path(task.path).parent
    project = settings_of(task.path)
    asked = Asked(
        target=open_target(task.options.target or None, project),
        seconds=task.options.seconds,
        flags=task.options.flags,
        settings=project,
        hints=projects((), ())(str(folder)).settings,
    )
    one = listed(document)[index]
    name = store.key(document.text, one, asked)
    found = None if task.options.fresh else store.get(name, one)
    if found is None:
        found = scanned(one, document, document.kernels[index], asked)
        store.put(name, found)
    return found
