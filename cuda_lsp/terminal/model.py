"""The options of a command that asks a language model, and the consent that it needs first."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

from agent.ideas.adviser import Adviser
from agent.ideas.model.told import device_code
from agent.models.budget import Budget, Metered
from agent.models.keys import BadEndpoint, find_key, read_endpoint
from agent.models.model import Model, ModelError
from agent.models.openai import OpenAI
from agent.models.replay import Recording, replay
from agent.models.settings import ModelSettings, read_model
from agent.source.errors import SourceError
from agent.workload.settings import SettingsError
from cuda_lsp.answers import agreed, project_of, remember
from cuda_lsp.consent import Asking, disclosure
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.opening import Opened

Note = Callable[[str], None]


@frozen
class ModelOptions:
    """As given on the command line; None and empty where not."""

    name: str | None
    endpoint: str | None
    max_tokens: int | None
    max_cost: float | None
    yes: bool
    off: bool
    own: tuple[str, ...]
    rejected: tuple[str, ...]
    record: str | None
    replay: str | None


_OPTIONS = (
    click.option("--model", "model_name", help="Also ask this language model for ideas (docs/models.md)."),
    click.option("--endpoint", help="Its OpenAI-compatible address, such as http://127.0.0.1:8080/v1."),
    click.option("--max-tokens", type=click.IntRange(1), help="Hard cap on tokens sent and received."),
    click.option("--max-cost", type=click.FloatRange(min=0), help="Hard cap in dollars; needs a price in [model]."),
    click.option("--yes", is_flag=True, help="Agree to what is sent to the model, this time."),
    click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say."),
    click.option("--own-idea", multiple=True, help="An idea in your own words for the model to write (repeatable)."),
    click.option("--reject", multiple=True, help="An idea not to bring up, as 'title: reason' (repeatable)."),
    click.option("--record", type=click.Path(dir_okay=False), help="Append the model's answers to this file."),
    click.option("--replay", type=click.Path(dir_okay=False), help="Play back recorded answers; asks nobody."),
)


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command; they arrive as one argument, ``model``."""

    @functools.wraps(function)
    def with_options(
        *arguments: Any,
        model_name: str | None,
        endpoint: str | None,
        max_tokens: int | None,
        max_cost: float | None,
        yes: bool,
        no_model: bool,
        own_idea: tuple[str, ...],
        reject: tuple[str, ...],
        record: str | None,
        replay: str | None,
        **others: Any,
    ) -> Any:
        told = ModelOptions(model_name, endpoint, max_tokens, max_cost, yes, no_model, own_idea, reject, record, replay)
        return function(*arguments, model=told, **others)

    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return with_options


def open_adviser(told: ModelOptions, opened: Opened, seconds: float, note: Note) -> Adviser | None:
    """Whom to ask, once the user has agreed; None where nobody is asked. ``seconds`` caps the waiting for answers.
    Raises CommandError."""
    try:
        settings = _settings(told, read_model(opened.settings.model, opened.settings.path))
    except SettingsError as error:
        raise CommandError(Exit.INPUT, str(error)) from None
    model = None if told.off else _model(told, settings, opened, note)
    rejected = tuple(_rejection(text) for text in told.rejected)
    if model is None:
        return Adviser(None, told.own, rejected) if told.own else None
    budget = evolve(settings.budget, caps=evolve(settings.budget.caps, seconds=seconds))
    return Adviser(Metered(model, budget), told.own, rejected, settings.ideas, settings.answer_tokens)


def _settings(told: ModelOptions, stated: ModelSettings) -> ModelSettings:
    """The project's settings with what the command line says."""
    caps = stated.budget.caps
    caps = evolve(
        caps,
        tokens=caps.tokens if told.max_tokens is None else told.max_tokens,
        dollars=caps.dollars if told.max_cost is None else told.max_cost,
    )
    try:
        endpoint = stated.endpoint if told.endpoint is None else read_endpoint(told.endpoint)
    except BadEndpoint as error:
        raise CommandError(Exit.USAGE, f"--endpoint: {error}") from None
    name = stated.name if told.name is None else told.name
    # A price holds for the model that it was stated for.
    price = stated.budget.price if (name, endpoint) == (stated.name, stated.endpoint) else None
    return evolve(stated, name=name, endpoint=endpoint, budget=Budget(caps, price))


def _model(told: ModelOptions, settings: ModelSettings, opened: Opened, note: Note) -> Model | None:
    if told.replay is not None:
        try:
            return replay(Path(told.replay))
        except ModelError as error:
            raise CommandError(Exit.INPUT, str(error)) from None
    if not settings.name and not settings.endpoint:
        return None
    if not settings.name or not settings.endpoint:
        missing = "--endpoint, the address that it is reached at" if settings.name else "--model, its name there"
        raise CommandError(Exit.USAGE, f"a model needs a name and an endpoint: give {missing}")
    asking = Asking(settings.name, settings.endpoint, find_key(settings.endpoint, os.environ), settings.budget)
    if not _consent(told, asking, opened, note):
        return None
    if words := settings.budget.note(settings.name):
        note(words)
    model: Model = OpenAI(asking.name, asking.endpoint, asking.key)
    return Recording(model, Path(told.record)) if told.record else model


def _consent(told: ModelOptions, asking: Asking, opened: Opened, note: Note) -> bool:
    """Whether the user agrees. A model that was named on the command line and cannot be asked is an error; one that
    only the project's settings name is left out with a note."""
    try:
        lines = disclosure(asking, opened.document, opened.kernel)
    except SourceError as error:
        raise CommandError(Exit.INPUT, f"{opened.document.path}: {error}") from None
    if told.yes or agreed(asking.endpoint, project_of(opened.settings.path)):
        note(f"asking {asking.name} at {asking.endpoint}; {lines[-1][0].lower()}{lines[-1][1:-1]}")
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if told.name is None and told.endpoint is None:
            note(
                f"{asking.name}, named in {opened.settings.path}, is not asked: agree with --yes to what is sent to it"
            )
            return False
        raise CommandError(Exit.USAGE, "\n".join([*lines, "Nothing was sent. Agree with --yes."]))
    return _answer(asking, lines, opened, note)


def _answer(asking: Asking, lines: list[str], opened: Opened, note: Note) -> bool:
    for text in lines:
        click.echo(text, err=True)
    choice = click.Choice(["y", "a", "s", "n"])
    while True:
        question = "Send it? [y]es, [a]lways to this endpoint, [s]how the code, [n]o"
        said = click.prompt(question, type=choice, default="n", show_choices=False, err=True)
        if said == "s":
            click.echo(device_code(opened.document, opened.kernel), err=True)
            continue
        if said == "a" and (problem := remember(asking.endpoint)):
            note(problem)
        if said == "n":
            note(f"{asking.name} is not asked; ideas come from the catalogue alone")
        return bool(said != "n")


def _rejection(text: str) -> tuple[str, str]:
    title, _, reason = text.partition(":")
    return title.strip(), reason.strip() or "no reason given"
