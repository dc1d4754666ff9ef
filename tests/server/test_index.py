"""Definitions, references, symbols and calls across the files of a workspace, over standard input and output."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.indexed import HEADER, KERNELS, MAIN, Workspace, start
from tests.server.wire import CLIENTS, VSCODE, Wire, at, insert, until


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "cache" / "cuda-lsp" / "index"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "a workspace"
    folder.mkdir()
    for name, text in (("kernels.cuh", HEADER), ("kernels.cu", KERNELS), ("main.cu", MAIN)):
        (folder / name).write_text(text)
    long_ago = time.time() - 3600
    for path in folder.iterdir():
        os.utime(path, (long_ago, long_ago))
    return folder


@pytest.fixture(params=list(CLIENTS))
def opened(folder: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    with Wire() as client:
        yield start(client, folder, CLIENTS[request.param])
        assert client.end() == 0
        assert b"Traceback" not in client.errors


def test_a_session(opened: Workspace) -> None:
    opened.eventually(lambda: opened.definition("main.cu", "sca|le<float>"), ["kernels.cu:4 scale"])
    assert opened.definition("main.cu", "Symbol(wei|ghts") == ["kernels.cu:2 weights"]
    assert opened.definition("main.cu", "ma|in()") == []
    assert opened.references("main.cu", "sca|le<float>") == ["main.cu:5 scale"]
    assert opened.references("main.cu", "scale|<float>", declarations=True) == [
        "kernels.cu:4 scale",
        "kernels.cuh:2 scale",
        "main.cu:5 scale",
    ]
    assert opened.symbols("") == [
        "scale kernels.cu:4 scale",
        "twice kernels.cu:3 twice",
        "weights kernels.cu:2 weights",
    ]
    (kernel,) = opened.ask("prepareCallHierarchy", "main.cu", "sca|le<float>")
    assert opened.shown(kernel, "selectionRange") == "kernels.cu:4 scale"
    (incoming,) = opened.client.request("callHierarchy/incomingCalls", {"item": kernel})
    assert incoming["from"]["name"] == "main" and "scale" in opened.shown(
        {"uri": incoming["from"]["uri"], "range": incoming["fromRanges"][0]}
    )
    (outgoing,) = opened.client.request("callHierarchy/outgoingCalls", {"item": kernel})
    assert outgoing["to"]["name"] == "twice"
    (main,) = opened.client.request("callHierarchy/outgoingCalls", {"item": incoming["from"]})
    assert main["to"]["name"] == "scale"
    assert opened.client.request("callHierarchy/incomingCalls", {"item": {**kernel, "data": {"key": 3}}}) is None


def test_what_is_typed_holds_and_not_what_is_on_disk(folder: Path) -> None:
    with Wire() as client:
        opened = start(client, folder)
        opened.eventually(lambda: opened.definition("main.cu", "sca|le<float>"), ["kernels.cu:4 scale"])
        client.open(opened.uri("kernels.cu"), KERNELS)
        client.change(opened.uri("kernels.cu"), 2, insert(at(KERNELS, "/* é🚀"), "// one line more\n"))
        (found,) = opened.ask("definition", "main.cu", "sca|le<float>")
        assert found["range"]["start"]["line"] == 4, "moved, and not saved"
        client.change(opened.uri("kernels.cu"), 3, {"text": "__global__ void other();\n"})
        assert opened.definition("main.cu", "sca|le<float>") == ["kernels.cuh:2 scale"], "declared only"
        client.note("textDocument/didClose", {"textDocument": {"uri": opened.uri("kernels.cu")}})
        assert opened.definition("main.cu", "sca|le<float>") == ["kernels.cu:4 scale"]
        assert client.end() == 0


def test_a_question_is_about_the_text_that_it_was_asked_on(folder: Path) -> None:
    """Also where the change that follows it is in the same piece of input."""
    with Wire() as client:
        opened = start(client, folder)
        opened.eventually(lambda: opened.definition("main.cu", "sca|le<float>"), ["kernels.cu:4 scale"])
        position = {"textDocument": {"uri": opened.uri("main.cu")}, "position": at(MAIN, "cale<float>")}
        client.send([])  # answered with an error, so that what follows is counted anew
        client.response()
        messages = [
            {"jsonrpc": "2.0", "id": "asked", "method": "textDocument/definition", "params": position},
            {"jsonrpc": "2.0", "method": "textDocument/didChange",
             "params": {"textDocument": {**position["textDocument"], "version": 2}, "contentChanges": [{"text": ""}]}},
        ]  # fmt: skip
        client.raw(b"".join(map(_framed, messages)))
        answer = client.response()
        assert answer["id"] == "asked" and [opened.shown(one) for one in answer["result"]] == ["kernels.cu:4 scale"]
        assert opened.definition("main.cu", "sca|le<float>") == []
        assert client.end() == 0


def _framed(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


WATCHING = {**VSCODE, "workspace": {**VSCODE["workspace"], "didChangeWatchedFiles": {"dynamicRegistration": True}}}
OTHER = "__global__ void other(int n) {}\n"


def tell(client: Wire, *paths: Path) -> None:
    changes = [{"uri": path.as_uri(), "type": 2} for path in paths]
    client.note("workspace/didChangeWatchedFiles", {"changes": changes})


def test_files_that_come_change_and_go(folder: Path) -> None:
    with Wire() as client:
        opened = start(client, folder, WATCHING)
        opened.eventually(lambda: opened.symbols("other"), [])
        (folder / "sub").mkdir()
        (folder / "sub" / "other.cu").write_text(OTHER)
        tell(client, folder / "sub" / "other.cu")
        opened.eventually(lambda: opened.symbols("other"), ["other other.cu:1 other"])
        (folder / "sub" / "other.cu").rename(folder / "moved.cu")
        tell(client, folder / "sub" / "other.cu", folder / "moved.cu")
        opened.eventually(lambda: opened.symbols("other"), ["other moved.cu:1 other"])
        (folder / "moved.cu").write_text("\n" + OTHER)
        assert opened.symbols("other") == ["other moved.cu:2 other"], "what is answered with is read again"
        (folder / "moved.cu").unlink()
        assert opened.symbols("other") == []
        assert client.end() == 0


def test_a_client_that_does_not_watch_is_told_after_a_save(folder: Path) -> None:
    with Wire() as client:
        opened = start(client, folder)
        opened.eventually(lambda: opened.symbols("twice"), ["twice kernels.cu:3 twice"])
        (folder / "other.cu").write_text(OTHER)
        client.note("textDocument/didSave", {"textDocument": {"uri": opened.uri("main.cu")}})
        opened.eventually(lambda: opened.symbols("other"), ["other other.cu:1 other"])
        assert client.end() == 0


def test_several_folders(folder: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "other.cu").write_text(OTHER)
    added = {"uri": second.as_uri(), "name": "second"}
    with Wire() as client:
        opened = start(client, folder)
        opened.eventually(lambda: opened.symbols("twice"), ["twice kernels.cu:3 twice"])
        assert opened.symbols("other") == [], "outside the workspace nothing is read"
        opened.folder = tmp_path
        client.note("workspace/didChangeWorkspaceFolders", {"event": {"added": [added], "removed": []}})
        opened.eventually(lambda: opened.symbols("other"), ["other other.cu:1 other"])
        client.note("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [added]}})
        opened.eventually(lambda: opened.symbols("other"), [])
        assert client.end() == 0


def test_without_a_workspace_what_is_open_is_known() -> None:
    text = OTHER + "void run() { other<<<1, 1>>>(1); }\n"
    with Wire() as client:
        client.initialize(VSCODE)
        client.open("untitled:Untitled-1", text)
        position = at(text, "other<<<")
        (found,) = client.about("textDocument/definition", "untitled:Untitled-1", position=position)
        assert found["uri"] == "untitled:Untitled-1" and found["range"]["start"] == {"line": 0, "character": 16}
        assert client.about("textDocument/definition", "file:///no/such.cu", position=position) is None
        client.open("file:///plain.cpp", text, "cpp")
        assert client.about("textDocument/definition", "file:///plain.cpp", position=position) is None
        assert client.end() == 0


def test_it_can_be_switched_off_and_on(folder: Path) -> None:
    settings = {"index": False}
    with Wire() as client:
        client.answers["workspace/configuration"] = lambda params: [settings]
        opened = start(client, folder, initializationOptions=settings)
        assert opened.definition("main.cu", "sca|le<float>") == [] == opened.symbols("")
        settings["index"] = True
        client.note("workspace/didChangeConfiguration", {"settings": None})
        opened.eventually(lambda: opened.symbols("twice"), ["twice kernels.cu:3 twice"])
        settings["index"] = False
        client.note("workspace/didChangeConfiguration", {"settings": None})
        opened.eventually(lambda: opened.symbols("twice"), [])
        assert client.end() == 0


def many(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"k{number}.cu").write_text(f"__global__ void k{number}() {{}}\n")


def progress(client: Wire) -> list[dict[str, Any]]:
    return [told["value"] for told in client.messages("$/progress") if told["token"] == "cuda-lsp/index"]


def test_the_first_build_of_many_files_shows_how_far_it_is(folder: Path) -> None:
    many(folder, 400)
    with Wire() as client:
        start(client, folder)
        kinds = until(lambda: [one["kind"] for one in progress(client)] if progress(client)[-1:] and
                      progress(client)[-1]["kind"] == "end" else None, 120)  # fmt: skip
        assert kinds[0] == "begin" and set(kinds[1:-1]) <= {"report"}
        assert progress(client)[0]["cancellable"] is True
        assert client.end() == 0
    with Wire() as client:
        opened = start(client, folder)
        opened.eventually(lambda: opened.symbols("k399"), ["k399 k399.cu:1 k399"])
        assert client.end() == 0


def test_a_build_that_is_cancelled_stops_and_what_is_known_is_answered(folder: Path) -> None:
    many(folder, 3000)
    with Wire() as client:
        opened = start(client, folder)
        until(lambda: progress(client), 120)
        client.note("window/workDoneProgress/cancel", {"token": "cuda-lsp/index"})
        until(lambda: progress(client)[-1]["kind"] == "end", 60)
        assert progress(client)[-1]["message"] in ("cancelled", "done")
        assert opened.definition("main.cu", "ma|in()") == []
        assert client.end() == 0


def test_clients_without_progress_are_shown_none(folder: Path) -> None:
    many(folder, 400)
    with Wire() as client:
        opened = start(client, folder, CLIENTS["minimal"])
        opened.eventually(lambda: opened.symbols("k399"), ["k399 k399.cu:1 k399"])
        assert progress(client) == [] == client.messages("window/workDoneProgress/create")
        assert client.end() == 0


def test_a_request_that_is_cancelled(folder: Path) -> None:
    with Wire() as client:
        opened = start(client, folder)
        params = {"textDocument": {"uri": opened.uri("main.cu")}, "position": at(MAIN, "cale<float>")}
        asked = {"jsonrpc": "2.0", "id": "asked", "method": "textDocument/definition", "params": params}
        cancelled = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "asked"}}
        client.raw(_framed(asked) + _framed(cancelled))
        assert client.response()["error"]["code"] == -32800
        opened.eventually(lambda: opened.definition("main.cu", "sca|le<float>"), ["kernels.cu:4 scale"])
        assert client.end() == 0


def test_what_is_passed_over_is_told_to_the_client_once_and_stands_in_no_log(folder: Path) -> None:
    (folder / "binary.cu").write_bytes(b"\0\1\2")
    with Wire() as client:
        opened = start(client, folder, WATCHING)
        told = f"cuda-lsp: not in the index: {folder / 'binary.cu'}: a binary file"
        until(lambda: client.messages("window/logMessage"))
        (folder / "other.cu").write_text(OTHER)
        tell(client, folder / "binary.cu")
        opened.eventually(lambda: opened.symbols("other"), ["other other.cu:1 other"])
        assert [one["message"] for one in client.messages("window/logMessage")] == [told]
        assert client.end() == 0
        assert b"binary.cu" not in client.errors
