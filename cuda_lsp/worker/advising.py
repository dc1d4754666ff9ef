"""Who is asked for ideas beside the catalogue, from a task."""

from __future__ import annotations

from attrs import evolve

from agent.ideas.adviser import Adviser
from agent.models.budget import Metered
from agent.models.keys import Key
from agent.models.openai import OpenAI
from agent.models.settings import read_model
from agent.workload.settings import SettingsError
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened
from cuda_lsp.worker.asked import Task


def adviser_of(task: Task, opened: Opened) -> Adviser | None:
    """None where nobody is asked. The caps are the project's; the server saw to the user's consent. Raises
    CommandError."""
    use = task.options.model
    own = (task.options.idea,) if task.options.idea else ()
    if use is None:
        return Adviser(None, own, task.options.rejected) if own else None
    try:
        settings = read_model(opened.settings.model, opened.settings.path)
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from error
    budget = evolve(settings.budget, caps=evolve(settings.budget.caps, seconds=task.options.seconds))
    model = Metered(OpenAI(use.name, use.endpoint, Key(use.key, use.origin)), budget)
    # to an idea of the user's own, the model adds none
    ideas = 0 if own else settings.ideas
    return Adviser(model, own, task.options.rejected, ideas, settings.answer_tokens)
