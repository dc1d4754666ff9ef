"""From a path and a kernel's name to what a command works on; every failure is a message with an exit code."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from agent.evaluation.setting import Setting
from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from agent.execution.targets import Target, UnknownTarget, find_target
from agent.search.node import fingerprint
from agent.source.document import Document, read
from agent.source.errors import SourceError, UnknownKernel
from agent.source.kernel import Kernel
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.find import find_workload
from agent.workload.flags import merged
from agent.workload.program import Program
from agent.workload.settings import Settings, SettingsError, settings_of
from agent.workload.static import compiled_twin
from agent.workload.workload import Workload
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.unread import no_kernel

DEFAULT_TARGET = "H200"


@frozen
class Opened:
    """One kernel with its workload. ``others`` are the file's further kernels, when none was named."""

    document: Document
    kernel: Kernel
    workload: Workload
    settings: Settings
    others: tuple[str, ...]

    @property
    def program(self) -> Program:
        return Program(self.document, self.workload.plan, "original")


def open_document(path: str) -> Document:
    try:
        return read(path)
    except SourceError as error:
        raise CommandError(Exit.INPUT, str(error)) from error


def open_settings(path: str) -> Settings:
    """The project's settings, or empty ones, with the flags of the file's build."""
    try:
        return settings_of(path)
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from error


def choose_kernel(document: Document, name: str | None) -> tuple[Kernel, tuple[str, ...]]:
    """The named kernel, or the first; and the names of the others when the choice was ours."""
    if not document.kernels:
        raise CommandError(Exit.INPUT, no_kernel(document))
    try:
        kernel = compiled_twin(document, document.kernel(name) if name else document.kernels[0])
    except UnknownKernel as error:
        raise CommandError(Exit.INPUT, f"{document.path}: {error}") from error
    if kernel.damage:
        raise CommandError(
            Exit.INPUT,
            f"{document.path}: kernel {kernel.name} cannot be rewritten: {kernel.damage}. "
            "Mend it, or name another kernel with --kernel",
        )
    return kernel, () if name else tuple(other.qualified_name for other in document.kernels if other is not kernel)


Finder = Callable[[Document, Kernel, Settings], Workload | str]
"""A workload where none is stated, or why there is none."""


def open_kernel(
    path: str, name: str | None, document: Document | None = None, settings: Settings | None = None,
    otherwise: Finder | None = None, hint: str = "", flags: tuple[str, ...] = (),
) -> Opened:  # fmt: skip
    """The kernel ``name`` of a file, or of ``document`` if that is another version of the file. ``settings`` are those
    of the file's project where none are given. ``otherwise`` is asked where no workload is found, ``hint`` shown where
    nobody is. ``flags`` are the compiler's, of the command line."""
    document = document or open_document(path)
    kernel, others = choose_kernel(document, name)
    settings = open_settings(path) if settings is None else settings
    try:
        workload = find_workload(document, kernel, settings, flags)
    except NoWorkload as error:
        found = otherwise(document, kernel, settings) if otherwise is not None else hint
        if isinstance(found, str):
            raise CommandError(Exit.INPUT, _questions(document, kernel, error, found)) from error
        workload = found
    except WorkloadError as error:
        raise CommandError(Exit.INPUT, f"{document.path}: {error}") from error
    return Opened(document, kernel, workload, settings, others)


def trace_key(opened: Opened, setting: Setting) -> str:
    """What a search must have in common with an interrupted one to go on from its trace."""
    parts = (
        opened.kernel.qualified_name,
        opened.workload,
        setting.target.name,
        setting.device.name,
        setting.options,
        setting.special,
        _reference_text(opened) if setting.reference is not None else b"",
    )
    return "\n".join((fingerprint(opened.program), *map(repr, parts)))


def _reference_text(opened: Opened) -> bytes:
    """What verdicts are held against stands in a file that the user may have changed since."""
    assert opened.workload.reference is not None
    try:
        return (Path(opened.document.path).resolve().parent / opened.workload.reference.path).read_bytes()
    except OSError:
        return b"unread"


def _questions(document: Document, kernel: Kernel, error: NoWorkload, hint: str) -> str:
    asked = "".join(f"\n  - {question}" for question in error.questions)
    draft = f"\nPut this above the kernel, with the blanks filled in:\n{error.draft}" if error.draft else ""
    offer = f"\n{hint}" if hint and error.draft else ""
    return f"{document.path}:{kernel.line}: {kernel.name} has no workload to run on: {error}{asked}{draft}{offer}"


def _nearest(card: Gpu) -> Target:
    """The card's own figures; where none are known here, those of one of its architecture, or the default's. What is
    estimated names the card that it is for, and what is measured needs none."""
    for name in (card.name, card.arch):
        with contextlib.suppress(UnknownTarget):
            return find_target(name)
    return find_target(DEFAULT_TARGET)


def open_target(name: str | None, settings: Settings, device: Device | None = None) -> Target:
    """The card that figures are for: the one named, the project's, the one in this machine, or the default."""
    wanted = name or settings.target
    try:
        if not wanted and isinstance(device, Gpu):
            return _nearest(device)
        return find_target(wanted or DEFAULT_TARGET)
    except UnknownTarget as error:
        raise CommandError(Exit.USAGE, str(error)) from error


def open_device(choice: str) -> Device:
    """``auto``: the GPU where there is one, else the emulator."""
    if choice != "emulator":
        gpu = open_gpu()
        if gpu is not None:
            return gpu
        if choice == "gpu":
            raise CommandError(Exit.MACHINE, f"no GPU can be used here: {why_no_gpu()}")
    # it runs long launches as compiled code; this process is a command or a job, never the server
    return Emulator("auto")


def compiler_options(
    device: Device, target: Target, settings: Settings, workload: Workload | None, flags: tuple[str, ...]
) -> Options:
    """Flags of build and project, of the directive and of the command line, each overruling those before it. A card
    runs its own architecture."""
    stated = workload.flags if workload else ()
    arch = device.arch if isinstance(device, Gpu) else target.arch
    return Options(arch=arch, flags=merged(settings.flags, stated, flags))
