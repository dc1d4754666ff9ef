"""Where a kernel's workload comes from, in order: its directive, the project's settings, the host code of its file."""

from pathlib import Path

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.directive import partial_sizes, read_directive
from agent.workload.settings import Settings, read_settings
from agent.workload.static import infer
from agent.workload.workload import Workload


def find_workload(document: Document, kernel: Kernel, settings: Settings | Path | str | None = None) -> Workload:
    """The workload of ``kernel``. ``settings`` are the project's, or the folder they are in; else the file's folder is.

    A directive that only states sizes answers what the host code leaves open. Raises NoWorkload with questions and
    a draft directive, or WorkloadError where a directive or the settings are wrong.
    """
    answers = partial_sizes(document, kernel)
    stated = read_directive(document, kernel) if answers is None else None
    if stated is not None:
        return stated
    told = _settings(document, settings).workload(document, kernel)
    return told if told is not None else infer(document, kernel, answers)


def _settings(document: Document, settings: Settings | Path | str | None) -> Settings:
    if isinstance(settings, Settings):
        return settings
    if settings is not None:
        return read_settings(Path(settings))
    return read_settings(Path(document.path).resolve().parent) if document.path else Settings()
