"""Which model is asked, where, and what it may cost: ``[model]`` of a project's settings.

::

    [model]
    name = "qwen3-coder"
    endpoint = "http://127.0.0.1:8080/v1"
    price-in = 0.15          # dollars for a million tokens sent
    price-out = 0.60         # and received
    max-cost = 1.0           # dollars a search
    max-tokens = 200000
    max-requests = 100
    answer-tokens = 8192     # the longest answer
    ideas = 4                # at once

Keys never stand here: they come from the environment.
"""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from agent.models.budget import Budget, Caps, Price
from agent.models.keys import OWN_KEY, BadEndpoint, read_endpoint
from agent.workload.settings import SettingsError

_NUMBERS = {"price-in": 0.0, "price-out": 0.0, "max-cost": 0.0}
_COUNTS = {"max-tokens": 1, "max-requests": 1, "answer-tokens": 256, "ideas": 0}
_TEXTS = ("name", "endpoint")
KNOWN = (*_TEXTS, *_NUMBERS, *_COUNTS)


@frozen
class ModelSettings:
    """``name`` and ``endpoint`` are empty where they are not set."""

    name: str = ""
    endpoint: str = ""
    budget: Budget = field(factory=Budget)
    answer_tokens: int = 8192
    ideas: int = 4


def read_model(told: Mapping[str, Any], path: Path | None) -> ModelSettings:
    """The section as settings. Raises SettingsError naming the file, the key and what was expected."""
    where = f"{path}: " if path else ""
    for key, value in told.items():
        if "key" in key.lower() or key.lower() == "token" or "secret" in key.lower():
            raise SettingsError(f"{where}`model.{key}`: a key does not belong into a file; set {OWN_KEY} instead")
        if key not in KNOWN:
            near = difflib.get_close_matches(key, KNOWN, 1)
            hint = f"did you mean `model.{near[0]}`?" if near else f"known are {', '.join(KNOWN)}"
            raise SettingsError(f"{where}unknown key `model.{key}`; {hint}")
        if wrong := _wrong(key, value):
            raise SettingsError(f"{where}`model.{key}`: expected {wrong}")
    if ("price-in" in told) != ("price-out" in told):
        raise SettingsError(f"{where}`model.price-in` and `model.price-out` are stated together or not at all")
    try:
        endpoint = read_endpoint(told["endpoint"]) if told.get("endpoint") else ""
    except BadEndpoint as error:
        raise SettingsError(f"{where}`model.endpoint`: {error}") from None
    defaults = ModelSettings()
    price = Price(float(told["price-in"]), float(told["price-out"])) if "price-in" in told else None
    caps = Caps(
        tokens=told.get("max-tokens", Caps().tokens),
        dollars=float(told["max-cost"]) if "max-cost" in told else None,
        requests=told.get("max-requests", Caps().requests),
    )
    return evolve(
        defaults,
        name=told.get("name", ""),
        endpoint=endpoint,
        budget=Budget(caps, price),
        answer_tokens=told.get("answer-tokens", defaults.answer_tokens),
        ideas=told.get("ideas", defaults.ideas),
    )


def _wrong(key: str, value: object) -> str:
    """What a value should have been; empty where nothing is wrong."""
    if key in _TEXTS:
        return "" if isinstance(value, str) and len(value) <= 500 and value.isprintable() else "text in quotes"
    if key in _NUMBERS:
        sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
        return "" if sound else "a number of dollars, 0 or more"
    least = _COUNTS[key]
    return "" if type(value) is int and least <= value < 10**9 else f"a whole number of at least {least}"
