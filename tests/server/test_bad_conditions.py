"""What can go wrong around a server: full disks, killed workers, edits while something is awaited, documents of all
kinds."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.server.connected import descendants
from tests.server.test_counted import BAD, LINE, TEXT, hints
from tests.server.test_jobs import gone, soon
from tests.server.wire import MINIMAL, VSCODE, ServerError, Wire, at, insert, until

URI = "file:///nowhere/rows.cu"


def names(client, uri=URI):
    found = client.about("textDocument/documentSymbol", uri)
    return found and [symbol["name"] for symbol in found if "<<<" not in symbol["name"]]


def menu(client, uri=URI, text=TEXT, **context):
    position = at(text, "int row =")
    where = {"start": position, "end": position}
    return client.about("textDocument/codeAction", uri, range=where, context={"diagnostics": [], **context}) or []


def entry(client, words, **more):
    return next(one for one in menu(client, **more) if words in one["title"])


# --- full disks ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("option", ["--trace", "--log"])
def test_a_full_disk_ends_the_trace_or_the_log_and_nothing_else(option):
    with Wire(option, "/dev/full") as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        with pytest.raises(ServerError):
            client.request("textDocument/hover", 3)
        assert names(client) == ["rows"]
        assert client.end() == 0
        assert b"Traceback" not in client.errors


def test_pages_of_rules_that_cannot_be_written_cost_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        assert until(lambda: client.diagnostics(URI, True))
        assert client.messages("window/showMessage") == []
        assert client.end() == 0
        until(lambda: b"the pages of the rules cannot be written" in client.errors)


# --- counting ------------------------------------------------------------------------------------------------------


def counting(client):
    """The process that counts, once it is there."""

    def found():
        return [pid for pid in descendants(client.process.pid) if b"cuda_lsp.worker" in told(pid)]

    def told(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    return until(found, 60)


@pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")
def test_a_counting_worker_that_is_killed_is_nobody_s_business():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        hints(client)
        os.kill(counting(client)[0], signal.SIGKILL)
        client.change(URI, 2, insert({"line": LINE, "character": 0}, "    // another text\n"))
        (hint,) = until(lambda: [one for one in hints(client) if one["label"] == BAD], 90)
        assert hint["position"]["line"] == LINE + 1
        assert client.messages("window/showMessage") == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_server_with_all_that_it_started(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        hints(client)
        counting(client)
        left = descendants(client.process.pid)
        client.process.send_signal(getattr(signal, name))
        client.process.wait(60)
        assert left and soon(lambda: all(map(gone, left)))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="/proc")
def test_a_document_closed_while_it_is_counted_and_edits_while_it_is():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        hints(client)
        counting(client)
        client.note("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert hints(client) is None
        client.open(URI, TEXT)
        hints(client)
        for number in range(2, 12):
            client.change(URI, number, insert({"line": 0, "character": 0}, "\n"))
            time.sleep(0.1)
        (hint,) = until(lambda: [one for one in hints(client) if one["label"] == BAD], 90)
        assert hint["position"]["line"] == LINE + 10
        left = descendants(client.process.pid)
        assert client.end() == 0
        assert left and soon(lambda: all(map(gone, left))), "and nothing that counted is left"


def test_ranges_that_make_no_sense():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        far = {"line": 2**31 - 1, "character": 2**31 - 1}
        backwards = {"start": far, "end": {"line": 0, "character": 0}}
        assert client.about("textDocument/inlayHint", URI, range=backwards) == []
        assert client.about("textDocument/inlayHint", "file:///other.cu", range=backwards) is None
        for wrong in ({"start": {"line": -1, "character": 0}, "end": far}, 5, {}):
            with pytest.raises(ServerError):
                client.about("textDocument/inlayHint", URI, range=wrong)
        assert names(client) == ["rows"]


# --- edits while something is awaited ------------------------------------------------------------------------------


def test_a_kernel_that_is_edited_while_its_idea_is_typed():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        kernel = entry(client, "idea of my own")["command"]["arguments"][0]

        def typed(params):
            assert params == {"title": "Your idea for rows", "prompt": "What should change, in your own words"}
            client.change(URI, 2, insert({"line": LINE, "character": 0}, "    // edited\n"))
            return {"text": "swap the loops"}

        client.answers["cuda-lsp/askText"] = typed
        command = {"command": "cuda-lsp.tryIdea", "arguments": [kernel]}
        assert client.request("workspace/executeCommand", command) is None
        said = until(lambda: client.messages("window/showMessage"))[0]["message"]
        assert "rows was edited since this was offered" in said


@pytest.mark.parametrize("answer", [None, {}, {"text": None}, {"text": "  "}, [], "text"])
def test_an_answer_that_is_no_text_starts_nothing(answer):
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        kernel = entry(client, "idea of my own")["command"]["arguments"][0]
        client.answers["cuda-lsp/askText"] = lambda params: answer
        assert (
            client.request("workspace/executeCommand", {"command": "cuda-lsp.tryIdea", "arguments": [kernel]}) is None
        )
        until(lambda: client.messages("cuda-lsp/askText"))
        time.sleep(0.2)
        assert names(client) == ["rows"] and client.messages("window/showMessage") == []


def test_a_workload_is_written_where_the_kernel_is_by_then_or_not_at_all(tmp_path):
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        kernel = entry(client, "idea of my own")["command"]["arguments"][0]
        command = {"command": "cuda-lsp.describeWorkload", "arguments": [kernel]}
        assert client.request("workspace/executeCommand", command) == "job-1"
        client.change(URI, 2, insert({"line": LINE, "character": 0}, "    // edited\n"))
        said = until(lambda: client.messages("window/showMessage"), 60)[0]["message"]
        assert "edited or closed meanwhile; nothing was written" in said and "// cuda-lsp: workload" in said
        assert client.messages("workspace/applyEdit") == []


# --- documents of all kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "language"),
    [
        ("file:///nowhere/a.cu", "cuda-cpp"),
        ("file:///nowhere/a.cu", "cuda"),
        ("file:///nowhere/a.cu", "cpp"),
        ("file:///nowhere/a.cuh", "c"),
        ("file:///nowhere/a", "cuda-cpp"),
        ("file:///a%20b/gr%C3%B6%C3%9Fe%23.cu", "cuda-cpp"),
        ("untitled:Untitled-1", "cuda-cpp"),
        ("vscode-vfs://github/owner/a.cu", "cuda-cpp"),
    ],
)
def test_all_surfaces_for_documents_of_all_kinds(uri, language):
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(uri, TEXT, language)
        assert names(client, uri) == ["rows"]
        assert until(lambda: [title for title in client.lenses(uri) if "registers" in title], 60)
        assert until(lambda: client.diagnostics(uri, True))
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        assert until(lambda: client.about("textDocument/inlayHint", uri, range=whole), 60)[0]["label"] == BAD
        verify = [one for one in menu(client, uri) if "Verify" in one["title"]]
        assert all(("disabled" in one) is not uri.startswith("file:") for one in verify)
        assert client.end() == 0


def test_what_is_no_cuda_gets_nothing():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open("file:///nowhere/a.cpp", TEXT, "cpp")
        assert names(client, "file:///nowhere/a.cpp") is None
        assert client.lenses("file:///nowhere/a.cpp") == []


def test_each_of_several_folders_has_its_own_settings(tmp_path):
    folders = []
    for name, target in (("one", "A100"), ("two", "H200")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".cuda-lsp.toml").write_text(f'target = "{target}"\n')
        folders.append({"uri": (tmp_path / name).as_uri(), "name": name})
    with Wire() as client:
        client.initialize(VSCODE, workspaceFolders=folders)
        for name, arch in (("one", "sm_80"), ("two", "sm_90")):
            uri = (tmp_path / name / "a.cu").as_uri()
            client.open(uri, TEXT)
            assert until(lambda uri=uri, arch=arch: [t for t in client.lenses(uri) if t.endswith(f"on {arch}")], 60)


def test_a_client_with_no_capability_and_no_folder_is_served():
    with Wire() as client:
        client.initialize(MINIMAL)
        client.open(URI, TEXT)
        assert until(lambda: client.diagnostics(URI, False))
        kernel = client.about("textDocument/codeLens", URI)[0]["command"]["arguments"][0]
        command = {"command": "cuda-lsp.describeWorkload", "arguments": [kernel]}
        assert client.request("workspace/executeCommand", command) == "job-1"
        said = until(lambda: client.messages("window/showMessage"), 60)[0]["message"]
        assert "no workspace/applyEdit" in said and "// cuda-lsp: workload" in said
        sent = {message["method"] for message in client.received}
        assert sent <= {"textDocument/publishDiagnostics", "window/showMessage", "window/logMessage"}
