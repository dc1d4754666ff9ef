"""Which language model a job may ask: the one that the project names, once the user agreed to what is sent to it."""

from __future__ import annotations

import os

from attrs import frozen

from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp.worker.asked import ModelUse

# What reads settings and slices is imported where it is needed: most sessions ask no model.

NO_MODEL = (
    "an idea in your own words needs a language model to turn it into code, and none is set: name one under [model] in "
    ".cuda-lsp.toml. The ideas of the catalogue need none: Suggest ideas lists those that apply"
)


@frozen
class Consent:
    """``use`` is the model where it may be asked. Otherwise ``question`` is what the user has to agree to, a line each,
    or ``missing`` says what keeps it from being asked."""

    use: ModelUse | None = None
    question: tuple[str, ...] = ()
    missing: str = ""


def consent(path: str, folder: str, document: Document, kernel: Kernel) -> Consent:
    """For sending the kernel of a document to the model of its project."""
    from agent.models.keys import find_key
    from agent.models.settings import read_model
    from agent.source.errors import SourceError
    from agent.workload.settings import SettingsError
    from cuda_lsp.consent import Asking, agreed, disclosure
    from cuda_lsp.proposals.proof import project_settings

    try:
        settings = project_settings(path, folder)
        model = read_model(settings.model, settings.path)
        if not model.name or not model.endpoint:
            return Consent(missing=NO_MODEL)
        key = find_key(model.endpoint, os.environ)
        use = ModelUse(model.name, model.endpoint, key.value, key.origin)
        if agreed(model.endpoint):
            return Consent(use)
        return Consent(use, tuple(disclosure(Asking(model.name, model.endpoint, key, model.budget), document, kernel)))
    except (SettingsError, SourceError) as error:
        return Consent(missing=str(error))
