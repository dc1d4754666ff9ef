"""Where a kernel's workload comes from, in order: its directive, the project's settings, the host code of its file."""

import difflib
from pathlib import Path

from attrs import evolve

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.directive import partial_sizes, read_directive
from agent.workload.errors import NoWorkload
from agent.workload.settings import Settings, read_settings, settings_of
from agent.workload.static import infer
from agent.workload.stray import stray_directives
from agent.workload.workload import Workload


def find_workload(
    document: Document,
    kernel: Kernel,
    settings: Settings | Path | str | None = None,
    flags: tuple[str, ...] = (),
) -> Workload:
    """The workload of ``kernel``. ``settings`` are the project's, or the folder they are in; else the file's are.

    ``flags`` are the compiler's, of a command line: they overrule the macros that the project's files tell. A directive
    that only states sizes answers what the host code leaves open. Raises NoWorkload with questions and a draft
    directive, or WorkloadError where a directive or the settings are wrong.
    """
    answers = partial_sizes(document, kernel)
    stated = read_directive(document, kernel) if answers is None else None
    if stated is not None:
        return stated
    project = _settings(document, settings)
    told = project.workload(document, kernel)
    if told is not None:
        return told
    mistaken = _mistaken(document, kernel, project)
    try:
        found = infer(document, kernel, answers, flags)
    except NoWorkload as error:
        if not mistaken:
            raise
        message = f"{error.message}; {mistaken}"
        raise NoWorkload(message, error.questions, error.line, error.draft) from None
    except RecursionError:  # generated code: a sum of a thousand terms is a tree a thousand deep
        message = f"an expression is nested too deeply to be read: state the workload of `{kernel.name}` in a directive"
        raise NoWorkload(message, line=kernel.line) from None
    return evolve(found, notes=(*found.notes, mistaken)) if mistaken else found


def _mistaken(document: Document, kernel: Kernel, settings: Settings) -> str:
    """What to say of directives that no kernel of the file has, and of a workload in the settings that names none, and
    is nearly called as this one."""
    told = [f"line {one.line}: {one.message}" for one in stray_directives(document)]
    known = {name for other in document.kernels for name in (other.name, other.qualified_name)}
    names = [name for name in settings.workloads if name not in known]
    near = difflib.get_close_matches(kernel.name, names, 1, 0.7)
    if near:
        told.append(
            f"{settings.path} has [workload.{near[0]}], which is no kernel of this file: is `{kernel.name}` meant?"
        )
    return "; ".join(told)


def _settings(document: Document, settings: Settings | Path | str | None) -> Settings:
    if isinstance(settings, Settings):
        return settings
    if settings is not None:
        return read_settings(Path(settings))
    return settings_of(document.path)
