"""Settings of the editor, under the section ``cuda-lsp``. What a project states (``.cuda-lsp.toml``) is read elsewhere.

They come in ``initializationOptions`` and by ``workspace/configuration``, in the same shape. A key that is not known
and a value that makes no sense are said in words and never fail anything.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import field, frozen

SECTION = "cuda-lsp"
OFF = "off"
SEVERITIES = ("error", "warning", "information", "hint", OFF)


def _setting(default: object, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@frozen
class Settings:
    """Every setting with its default. The key in the editor is the name in camel case."""

    target: str = _setting("", "The card that registers, occupancy and estimates are for (`H200`, `sm_90`).")
    lenses: bool = _setting(True, "Show a line over each kernel.")
    inlay_hints: bool = _setting(True, "Show what was counted at the ends of lines where it is bad.")
    diagnostics: bool = _setting(True, "Show what the compiler and the rules say.")
    select: Sequence[str] = _setting(
        (), "The rules that run, by id or letter (`M1`, `S`, `ALL`); empty: the usual ones."
    )
    ignore: Sequence[str] = _setting((), "Rules that do not run; of two names that meet a rule the longer wins.")
    severities: Mapping[str, str] = _setting(
        {}, "How a rule is shown, by id or letter: `error`, `warning`, `information`, `hint` or `off`."
    )
    compile: bool = _setting(True, "Compile kernels in the background after a pause in typing.")
    index: bool = _setting(
        True, "Read the workspace's CUDA files in the background, for definitions, references, symbols and calls."
    )
    reference: bool = _setting(
        False,
        "Run the PyTorch function that a workload names, once you agreed: it is Python of your own, and a verdict is "
        "held against it.",
    )
    delay: int = _setting(150, "How long a pause in typing is, in milliseconds.")


KEYS = {name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:]): name
        for name in attrs.fields_dict(Settings)}  # fmt: skip


def read(told: object, before: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Settings as a client tells them, and what is wrong with them in words. What it leaves out stays as ``before``."""
    if told is None:
        return before, ()
    if not isinstance(told, Mapping):
        return before, (f'the settings of {SECTION} must be an object, as in {{"target": "H200"}}',)
    told = told.get(SECTION, told)
    if not isinstance(told, Mapping):
        return before, (f"the settings under {SECTION} must be an object",)
    values: dict[str, Any] = {}
    complaints = tuple(_read(told, values, before))
    return attrs.evolve(before, **values), complaints


def _read(told: Mapping[str, object], values: dict[str, Any], before: Settings) -> Iterator[str]:
    for key, value in told.items():
        name = KEYS.get(str(key))
        if name is None:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS)}"
            yield f"unknown setting {SECTION}.{key}: {hint}"
        elif value is None:
            continue
        else:
            complaint = _wrong(value, getattr(Settings(), name))
            if complaint:
                yield f"{SECTION}.{key} must be {complaint}; it stays {json.dumps(getattr(before, name))}"
            else:
                values[name] = tuple(value) if isinstance(value, list) else value


def _wrong(value: object, default: object) -> str:
    """What a value should have been, in words; empty where nothing is wrong with it."""
    match default:
        case bool():
            return "" if isinstance(value, bool) else "true or false"
        case str():
            return "" if isinstance(value, str) else "text"
        case int():
            sound = type(value) is int and 0 <= value <= 60_000
            return "" if sound else "a whole number from 0 to 60000"
        case tuple():
            sound = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
            return "" if sound else "a list of texts"
        case _:
            sound = isinstance(value, Mapping) and all(
                isinstance(name, str) and shown in SEVERITIES for name, shown in value.items()
            )
            return "" if sound else f"an object of {', '.join(SEVERITIES[:-1])} or {OFF} by rule"
