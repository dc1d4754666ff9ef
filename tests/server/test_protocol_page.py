"""The page about the protocol names every command, setting and kind of action, and no other."""

import json
import re
from pathlib import Path

import attrs

from cuda_lsp import protocol, quick_fixes
from cuda_lsp.features import code_action
from cuda_lsp.settings import KEYS, Settings
from tests.server.wire import VSCODE, Wire

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
CONSTANTS = {value for name, value in vars(protocol).items() if name.isupper() and str(value).startswith("cuda-lsp.")}


def test_every_command_is_on_the_page_and_in_the_server():
    assert set(re.findall(r"`(cuda-lsp\.\w+)`", PAGE)) == CONSTANTS
    with Wire() as client:
        assert set(client.initialize(VSCODE)["executeCommandProvider"]["commands"]) == CONSTANTS


def test_every_setting_is_on_the_page_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \|", PAGE[PAGE.index("## Settings") :], re.MULTILINE))
    assert rows == {key: json.dumps(getattr(Settings(), name)) for key, name in KEYS.items()}
    for name, about in attrs.fields_dict(Settings).items():
        assert about.metadata["doc"].rstrip(".") in PAGE, name


def test_every_kind_of_action_is_on_the_page():
    shown = set(re.findall(r"^\| `(refactor[\w.]+|quickfix)`", PAGE, re.MULTILINE))
    assert {quick_fixes.KIND, *(entry.kind for entry in code_action.MENU)} == shown
