"""Which PyTorch function a job may run beside its judge: the one that the workload names, once the user agreed."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from agent.source.document import Document

# What finds workloads is imported where it is needed: most sessions run no Python of their users.


@frozen
class Function:
    """``said`` as the workload names it (``refs.py:softmax``), ``key`` with its file's whole path: what answers are
    kept under. ``answer`` is what the user said for good; where that is None, ``question`` is what has to be agreed
    to, a line each. ``project`` is how answers call it."""

    said: str
    key: str
    project: str
    answer: bool | None
    question: tuple[str, ...]


def function_of(path: str, folder: str, document: Document, kernel: str) -> Function | None:
    """Of a kernel, by its qualified name; None where its workload names none, or is not known: the work itself says
    so then. Reads files and takes a while: not for the server's loop."""
    from agent.source.errors import SourceError
    from agent.workload.errors import NoWorkload, WorkloadError
    from agent.workload.find import find_workload
    from agent.workload.settings import SettingsError
    from cuda_lsp.answers import answer, project_of
    from cuda_lsp.proposals.proof import project_settings

    if not path:
        return None  # of a text that was never saved nobody knows what its path is relative to
    try:
        settings = project_settings(path, folder)
        named = find_workload(document, document.kernel(kernel), settings).reference
    except (SettingsError, SourceError, NoWorkload, WorkloadError):
        return None
    if named is None:
        return None
    key = key_of(path, named.path, named.name)
    project = project_of(settings.path) or str(Path(path).resolve().parent)
    return Function(str(named), key, project, answer(key, project), _question(str(named), kernel, path, named.path))


def key_of(path: str, file: str, name: str) -> str:
    """How answers call a function: by its file, wherever the kernel's ``path`` makes that relative to."""
    return f"python {(Path(path).resolve().parent / file).resolve()}:{name}"


def _question(said: str, kernel: str, path: str, file: str) -> tuple[str, ...]:
    return (
        f"{said} would be run, as what {kernel} should compute: it is Python, and can do whatever you can.",
        f"- the file: {(Path(path).resolve().parent / file).resolve()}, with all that it imports",
        "- where: on this machine, in a process of its own, without your keys; on a card it is timed there as well",
        "- what it is given: contents that the checks make up, sizes and constants; cuda-lsp sends nothing anywhere",
        "Agree only where you know what stands in that file. Without it, rewrites are held against the original alone.",
    )
