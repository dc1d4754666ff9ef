"""From a path and a kernel's name to what a command works on; every failure is a message with an exit code."""

from pathlib import Path

from agent.workload.find import find_workload
from agent.workload.settings import Settings, SettingsError, read_settings
from attrs import frozen

from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.emulator import Emulator
from agent.execution.gpu import open_gpu
from agent.execution.targets import Target, UnknownTarget, find_target
from agent.source.document import Document, read
from agent.source.errors import SourceError, UnknownKernel
from agent.source.kernel import Kernel
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.program import Program
from agent.workload.workload import Workload
from cuda_lsp.cli.exits import CommandError, Exit

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
    try:
        return read_settings(Path(path).resolve().parent)
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from error


def choose_kernel(document: Document, name: str | None) -> tuple[Kernel, tuple[str, ...]]:
    """The named kernel, or the first; and the names of the others when the choice was ours."""
    if not document.kernels:
        raise CommandError(Exit.INPUT, f"{document.path}: no kernel (`__global__` function) in this file")
    try:
        kernel = document.kernel(name) if name else document.kernels[0]
    except UnknownKernel as error:
        raise CommandError(Exit.INPUT, f"{document.path}: {error}") from error
    if kernel.damage:
        raise CommandError(
            Exit.INPUT,
            f"{document.path}: kernel {kernel.name} cannot be rewritten: {kernel.damage}. "
            "Mend it, or name another kernel with --kernel",
        )
    return kernel, () if name else tuple(other.qualified_name for other in document.kernels if other is not kernel)


def open_kernel(path: str, name: str | None, document: Document | None = None) -> Opened:
    """The kernel ``name`` of a file, or of ``document`` if that is another version of the file."""
    document = document or open_document(path)
    kernel, others = choose_kernel(document, name)
    settings = open_settings(path)
    try:
        workload = find_workload(document, kernel, settings)
    except NoWorkload as error:
        raise CommandError(Exit.INPUT, _questions(document, kernel, error)) from error
    except WorkloadError as error:
        raise CommandError(Exit.INPUT, f"{document.path}: {error}") from error
    return Opened(document, kernel, workload, settings, others)


def _questions(document: Document, kernel: Kernel, error: NoWorkload) -> str:
    asked = "".join(f"\n  - {question}" for question in error.questions)
    draft = f"\nPut this above the kernel, with the blanks filled in:\n{error.draft}" if error.draft else ""
    return f"{document.path}:{kernel.line}: {kernel.name} has no workload to run on: {error}{asked}{draft}"


def open_target(name: str | None, settings: Settings) -> Target:
    wanted = name or settings.target or DEFAULT_TARGET
    try:
        return find_target(wanted)
    except UnknownTarget as error:
        raise CommandError(Exit.USAGE, str(error)) from error

    if target is None:
        raise CommandError(
            Exit.USAGE, f"no target {wanted!r}; there are {', '.join(target.name for target in TARGETS)}"
        )
    return target


def open_device(choice: str) -> Device:
    """``auto``: the GPU where there is one, else the emulator."""
    if choice != "emulator":
        gpu = open_gpu()
        if gpu is not None:
            return gpu
        if choice == "gpu":
            raise CommandError(Exit.MACHINE, "no NVIDIA GPU can be used here; `cuda-lsp doctor` says what is missing")
    return Emulator()


def compiler_options(target: Target, settings: Settings, flags: tuple[str, ...]) -> Options:
    return Options(arch=target.arch, flags=(*settings.flags, *flags))
