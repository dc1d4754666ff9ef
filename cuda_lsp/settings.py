"""Settings of the editor, under the section ``cuda-lsp``. What a project states (``.cuda-lsp.toml``) is read elsewhere.

They come in ``initializationOptions`` and by ``workspace/configuration``, in the same shape. A key that is not known
and a value that makes no sense are said in words and never fail anything.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from attrs import field, frozen

SECTION = "cuda-lsp"


def _setting(default: object, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@frozen
class Settings:
    """Every setting with its default. The key in the editor is the name in camel case."""

    target: str = _setting("", "The card that registers, occupancy and estimates are for (`H200`, `sm_90`).")
    lenses: bool = _setting(True, "Show a line over each kernel.")
    diagnostics: bool = _setting(True, "Show what the compiler and the rules say.")
    compile: bool = _setting(True, "Compile kernels in the background after a pause in typing.")
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
    complaints = tuple(_read(told, values))
    return attrs.evolve(before, **values), complaints


def _read(told: Mapping[str, object], values: dict[str, Any]) -> Iterator[str]:
    for key, value in told.items():
        name = KEYS.get(str(key))
        if name is None:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS)}"
            yield f"unknown setting {SECTION}.{key}: {hint}"
        elif value is None:
            continue
        else:
            wanted = type(getattr(Settings(), name))
            sound = type(value) is wanted and not (wanted is int and not 0 <= int(value) <= 60_000)  # type: ignore[call-overload]
            if sound:
                values[name] = value
            else:
                words = {bool: "true or false", str: "text", int: "a whole number from 0 to 60000"}
                yield f"{SECTION}.{key} must be {words[wanted]}; it stays {getattr(Settings(), name)!r}"
