"""What the VS Code extension declares is what the server knows."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from cuda_lsp import protocol, settings

MANIFEST: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "editors" / "vscode" / "package.json").read_text(encoding="utf-8")
)
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
OF_THE_EXTENSION = {"cuda-lsp.command", "cuda-lsp.trace.server"}


def test_each_setting_of_the_server_is_declared_and_no_other() -> None:
    assert set(PROPERTIES) - OF_THE_EXTENSION == {f"{settings.SECTION}.{key}" for key in settings.KEYS}


@pytest.mark.parametrize("key", settings.KEYS)
def test_defaults_and_words_are_those_of_the_server(key: str) -> None:
    declared = PROPERTIES[f"{settings.SECTION}.{key}"]
    known = attrs.fields_dict(settings.Settings)[settings.KEYS[key]]
    assert declared["default"] == json.loads(json.dumps(known.default))
    said = declared.get("description") or declared["markdownDescription"]
    assert said.startswith(known.metadata["doc"])


def test_palette_commands_keep_clear_of_the_server_s_own() -> None:
    """A name that both register fails when the extension starts."""
    own = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    served = {value for value in vars(protocol).values() if isinstance(value, str) and value.startswith("cuda-lsp.")}
    assert served and not own & served


def test_every_menu_entry_names_a_declared_command() -> None:
    own = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    used = {entry["command"] for menu in MANIFEST["contributes"]["menus"].values() for entry in menu}
    assert used <= own


@pytest.mark.parametrize("key", settings.KEYS)
def test_the_page_on_editors_has_each_setting_with_its_default(key: str) -> None:
    known = attrs.fields_dict(settings.Settings)[settings.KEYS[key]]
    page = (Path(__file__).parents[2] / "docs" / "editors.md").read_text(encoding="utf-8")
    row = f"| `{key}` | `{json.dumps(known.default)}` | {known.metadata['doc'].rstrip('.')}"
    assert row in page
