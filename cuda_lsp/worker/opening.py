"""From a task to what it works on. The text is the editor's, saved or not; settings are those of its folder."""

from agent.evaluation.setting import FULL, SCREEN, Setting
from agent.source.document import Document, parse
from agent.workload.settings import Settings, SettingsError
from cuda_lsp.proposals.proof import project_settings
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Finder, Opened, compiler_options, open_device, open_kernel, open_target
from cuda_lsp.worker.asked import Task


def open_task(task: Task, original: Document | None = None, otherwise: Finder | None = None) -> Opened:
    """The task's kernel with its workload; of ``original`` where that is another version of the text. ``otherwise`` is
    asked where no workload is found."""
    document = original or parse(task.text, task.path)
    return open_kernel(task.path, task.kernel, document, settings_of(task), otherwise)


def settings_of(task: Task) -> Settings:
    """The settings of the task's project."""
    try:
        return project_settings(task.path, task.options.folder)
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from error


def setting_of(task: Task, opened: Opened, full: bool = False) -> Setting:
    """Where and how deep the task is judged. It is never cancelled from inside: cancelling kills the process."""
    device = open_device(task.options.device)
    target = open_target(task.options.target or None, opened.settings, device)
    return Setting(
        device=device,
        target=target,
        options=compiler_options(device, target, opened.settings, opened.workload, ()),
        architectures=opened.settings.architectures,
        depth=FULL if full else SCREEN,
        seconds=task.options.seconds,
    )
