"""Where a kernel's workload comes from, in order: its directive, the project's settings, the host code of its file."""

from pathlib import Path

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.directive import partial_sizes, read_directive
from agent.workload.settings import Settings, load_settings
from agent.workload.static import infer
from agent.workload.workload import Workload


def find_workload(document: Document, kernel: Kernel, folder: Path | str | None = None) -> Workload:
    """The workload of ``kernel``. ``folder`` is where to look for ``.cuda-lsp.toml`` (upwards); by default the file's own.

    A directive that only states sizes answers what the host code leaves open. Raises NoWorkload with questions and
    a draft directive, or WorkloadError where a directive or the settings are wrong.
    """
    settings = _settings(document, folder)
    answers = partial_sizes(document, kernel)
    if answers is None:
        stated = read_directive(document, kernel)
        if stated is not None:
            return stated
    told = settings.workload(document, kernel) if settings is not None else None
    return told if told is not None else infer(document, kernel, answers or {})


def _settings(document: Document, folder: Path | str | None) -> Settings | None:
    if folder is not None:
        return load_settings(Path(folder))
    return load_settings(Path(document.path).resolve().parent) if document.path else None
