"""What a project says about the rules holds in the editor, unless the editor's own settings say otherwise."""

from pathlib import Path
from typing import Any

import pytest

from tests.server.test_reading import STRIDED
from tests.server.wire import MINIMAL, VSCODE, Wire, until


def _file(folder: Path, hints: str) -> tuple[str, Path]:
    settings = folder / ".cuda-lsp.toml"
    settings.write_text(hints)
    (folder / "src").mkdir()
    source = folder / "src" / "strided.cu"
    source.write_text(STRIDED)
    return source.as_uri(), settings


def _shown(client: Wire, uri: str) -> list[tuple[str, int]]:
    """Of the rules: code and severity."""
    told = [one for one in client.messages("textDocument/publishDiagnostics") if one["uri"] == uri][-1:]
    return [(one["code"], one["severity"]) for one in told[0]["diagnostics"] if one["code"] != "nvrtc"] if told else []


def _usual(tmp_path: Path) -> list[tuple[str, int]]:
    (tmp_path / "plain").mkdir()
    uri, _ = _file(tmp_path / "plain", "")
    with Wire() as client:
        client.initialize(MINIMAL)
        client.open(uri, STRIDED)
        return until(lambda: _shown(client, uri))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("hints", "editor", "expected"),
    [
        ('[hints]\nignore = ["ALL"]\n', {}, []),
        ('[hints]\nexclude = ["src/"]\n', {}, []),
        ('[hints]\nseverities = { ALL = "error" }\n', {}, 1),
        ('[hints]\nseverities = { ALL = "error" }\n', {"severities": {"ALL": "hint"}}, 4),
        ('[hints]\nignore = ["ALL"]\n', {"ignore": ["Y"]}, 2),
    ],
    ids=["ignored", "left out", "as errors", "the editor's severity wins", "the editor's list takes its place"],
)
def test_what_a_project_says(tmp_path: Path, hints: str, editor: dict[str, Any], expected: list[Any] | int) -> None:
    usual = _usual(tmp_path)
    uri, _ = _file(tmp_path, hints)
    with Wire() as client:
        client.initialize(MINIMAL, initializationOptions=editor)
        client.open(uri, STRIDED)
        until(lambda: any("registers" in title for title in client.lenses(uri)))
        if isinstance(expected, int):
            assert until(lambda: _shown(client, uri)) == [(code, expected) for code, _ in usual]
        else:
            assert _shown(client, uri) == expected
        assert client.messages("window/showMessage") == [] and client.end() == 0


def test_a_settings_file_that_changes_and_one_that_is_wrong(tmp_path: Path) -> None:
    uri, settings = _file(tmp_path, "")
    changed = {"changes": [{"uri": settings.as_uri(), "type": 2}]}
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(uri, STRIDED)
        assert until(lambda: client.about("textDocument/diagnostic", uri)["items"])
        settings.write_text('[hints]\nignore = ["ALL"]\n')
        client.note("workspace/didChangeWatchedFiles", changed)
        assert until(lambda: not client.about("textDocument/diagnostic", uri)["items"])
        settings.write_text('[hints]\nignored = ["ALL"]\n')
        for _ in range(2):
            client.note("workspace/didChangeWatchedFiles", changed)
        assert until(lambda: client.messages("window/showMessage"))
        assert not client.about("textDocument/diagnostic", uri)["items"], "what held before goes on to hold"
        said = [one["message"] for one in client.messages("window/showMessage")]
        assert said == [
            f"cuda-lsp: {settings}: unknown key `hints.ignored`; known are select, ignore, severities, exclude"
        ]
        settings.unlink()
        client.note("textDocument/didSave", {"textDocument": {"uri": uri}})
        assert until(lambda: client.about("textDocument/diagnostic", uri)["items"])
        assert client.end() == 0


def test_clients_that_can_are_asked_to_watch_the_file() -> None:
    workspace = {**VSCODE["workspace"], "didChangeWatchedFiles": {"dynamicRegistration": True}}
    with Wire() as client:
        client.initialize({**VSCODE, "workspace": workspace})
        asked = until(lambda: [one for told in client.messages("client/registerCapability")
                               for one in told["registrations"] if one["id"] == "cuda-lsp.files"])  # fmt: skip
        globs = [one["globPattern"] for one in asked[0]["registerOptions"]["watchers"]]
        assert globs[:2] == ["**/.cuda-lsp.toml", "**/.gitignore"] and "cu,cuh,h," in globs[2]
        assert client.end() == 0
