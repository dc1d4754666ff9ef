"""Which language model a job may ask: the one that the project names, once the user agreed to what is sent to it."""

from __future__ import annotations

import os

from attrs import frozen

from agent.source.document import Document
from cuda_lsp.worker.asked import ModelUse

# What reads settings and slices is imported where it is needed: most sessions ask no model.

NO_MODEL = (
    "an idea in your own words needs a language model to turn it into code, and none is set: name one under [model] in "
    ".cuda-lsp.toml. The ideas of the catalogue need none: Suggest ideas lists those that apply"
)


@frozen
class Consent:
    """``use`` is the model that the project names, if it names one. ``answer`` is what the user said for good;
    where that is None, ``question`` is what has to be agreed to, a line each. ``project`` is how answers call it.
    ``problem`` says what keeps the model from being asked; ``stated``: the work itself will say so as well."""

    use: ModelUse | None = None
    answer: bool | None = None
    question: tuple[str, ...] = ()
    project: str = ""
    problem: str = ""
    stated: bool = False


def consent(path: str, folder: str, document: Document, kernel: str) -> Consent:
    """For sending a kernel, by its qualified name, to the model of its document's project. Reads files and takes a
    while: not for the server's loop."""
    from agent.models.keys import find_key
    from agent.models.settings import read_model
    from agent.source.errors import SourceError
    from agent.workload.settings import SettingsError
    from cuda_lsp.answers import answer, project_of
    from cuda_lsp.consent import Asking, disclosure
    from cuda_lsp.proposals.proof import project_settings

    try:
        settings = project_settings(path, folder)
    except SettingsError as error:
        return Consent(problem=str(error), stated=True)
    try:
        model = read_model(settings.model, settings.path)
        if not model.name or not model.endpoint:
            return Consent()
        key, project = find_key(model.endpoint, os.environ), project_of(settings.path)
        asking = Asking(model.name, model.endpoint, key, model.budget)
        return Consent(
            ModelUse(model.name, model.endpoint, key.value, key.origin),
            answer(model.endpoint, project),
            tuple(disclosure(asking, document, document.kernel(kernel))),
            project,
        )
    except (SettingsError, SourceError) as error:
        return Consent(problem=str(error))
