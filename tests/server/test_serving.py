"""``cuda-lsp serve``: its options, its start, what it writes, and what it keeps to itself."""

import json
import socket
import subprocess
import sys
import time

import pytest

from tests.server.wire import MINIMAL, SERVER, VSCODE, ServerError, Wire, insert, until

SECRET = "__global__ void secret_kernel(float* hidden) {\n    hidden[0] = 42.0f;\n}\n"
URI = "file:///nowhere/secret_folder/secret_kernel.cu"


def session(*arguments):
    with Wire(*arguments) as client:
        client.initialize(VSCODE, clientInfo={"name": "secret_editor"})
        client.open(URI, SECRET)
        client.change(URI, 2, insert({"line": 1, "character": 0}, "// secret_comment\n"))
        until(lambda: any("register" in title for title in client.lenses(URI)))
        client.about("textDocument/hover", URI, position={"line": 0, "character": 18})
        where = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}
        client.about("textDocument/codeAction", URI, range=where, context={"diagnostics": []})
        assert client.end() == 0
        return client.errors


def test_a_trace_holds_every_message_and_no_source(tmp_path):
    trace, log = tmp_path / "trace", tmp_path / "log"
    assert session("--trace", str(trace), "--log", str(log)) == b""
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    methods = {line["message"].get("method") for line in lines}
    assert {"initialize", "textDocument/didChange", "textDocument/hover", "workspace/configuration"} <= methods
    assert {line["direction"] for line in lines} == {"in", "out"}
    assert [line["ms"] for line in lines] == sorted(line["ms"] for line in lines)
    for word in ("secret", "hidden", "42.0f", "nowhere"):
        assert word not in trace.read_text()
    assert "secret" not in log.read_text()


def test_a_trace_holds_the_source_when_asked(tmp_path):
    session("--trace", str(tmp_path / "trace"), "--trace-source", "--log", str(tmp_path / "log"))
    assert "secret_comment" in (tmp_path / "trace").read_text()


def run(*arguments):
    return subprocess.run([*SERVER, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_options_that_contradict_each_other():
    assert run("--stdio", "--tcp", "0").returncode == 2
    assert run("--trace-source").returncode == 2
    assert run("--tcp", "70000").returncode == 2


def test_files_that_cannot_be_written(tmp_path):
    for option in ("--log", "--trace"):
        result = run(option, str(tmp_path / "missing" / "file"))
        assert result.returncode == 3
        assert "cannot be written" in result.stderr and "Traceback" not in result.stderr


def test_over_tcp():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([*SERVER, "--tcp", str(port)]) as server:
        connection = until(lambda: connected(port))
        stream = connection.makefile("rwb")
        request = {"processId": None, "rootUri": None, "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": request}).encode()
        stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        stream.flush()
        assert stream.readline().startswith(b"Content-Length")
        stream.close()
        connection.close()
        server.wait(60)


def connected(port):
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None


def test_nothing_heavy_is_imported_before_the_first_answer():
    """Importing these takes longer than a server may take to start."""
    code = (
        "import sys, importlib, pkgutil; import cuda_lsp.server; from cuda_lsp import features\n"
        "for m in pkgutil.iter_modules(features.__path__): importlib.import_module(f'{features.__name__}.{m.name}')\n"
        "print(*[name for name in ('torch', 'cupy', 'rich', 'agent.execution.emulator', 'agent.analysis.rules')"
        " if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_unknown_settings_are_said_once_and_known_ones_are_used():
    with Wire() as client:
        client.answers["workspace/configuration"] = lambda params: [{"target": "A100", "tarhet": "x"}]
        client.initialize(VSCODE, initializationOptions={"tarhet": "x", "lenses": True})
        client.open(URI, SECRET)
        assert until(lambda: [title for title in client.lenses(URI) if title.endswith("on sm_80")])
        client.note("workspace/didChangeConfiguration", {"settings": {}})
        until(lambda: len(client.messages("workspace/configuration")) == 2)
        until(lambda: client.lenses(URI))
        said = [one["message"] for one in client.messages("window/showMessage")]
        assert said == ["cuda-lsp: unknown setting cuda-lsp.tarhet: did you mean target?"]
        client.answers["workspace/configuration"] = lambda params: [{"lenses": False}]
        client.note("workspace/didChangeConfiguration", {"settings": {}})
        until(lambda: client.about("textDocument/codeLens", URI) is None)


def test_a_client_that_cannot_be_asked_tells_its_settings():
    with Wire() as client:
        client.initialize(MINIMAL, initializationOptions={"cuda-lsp": {"target": "A100"}})
        client.open(URI, SECRET)
        assert until(lambda: [title for title in client.lenses(URI) if title.endswith("on sm_80")])
        client.note("workspace/didChangeConfiguration", {"settings": {"other": {}, "cuda-lsp": {"target": "H200"}}})
        assert until(lambda: [title for title in client.lenses(URI) if title.endswith("on sm_90")])
        assert client.messages("window/showMessage") == []


def test_a_card_that_is_not_known_is_said_in_the_lens():
    with Wire() as client:
        client.initialize(MINIMAL, initializationOptions={"target": "H2O"})
        client.open(URI, SECRET)
        assert until(lambda: [title for title in client.lenses(URI) if "no figures for a card named 'H2O'" in title])


def test_a_printing_library_does_not_disturb_the_protocol():
    """Whatever writes to file descriptor 1 writes to standard error."""
    code = "import os; from cuda_lsp.cli import serve; serve._claimed_output().write(b'ours'); os.write(1, b'theirs')"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (told.stdout, told.stderr) == (b"ours", b"theirs")


def test_several_folders_come_and_go():
    first, second = ({"uri": f"file:///{name}", "name": name} for name in ("one", "two"))
    with Wire() as client:
        client.initialize(VSCODE, workspaceFolders=[first])
        change = {"event": {"added": [second], "removed": [first, {"uri": "file:///never", "name": ""}]}}
        client.note("workspace/didChangeWorkspaceFolders", change)
        client.open(URI, SECRET)
        assert client.lenses(URI)
        time.sleep(0.2)
        assert client.end() == 0


def test_an_error_of_ours_is_answered_and_logged_with_its_place(tmp_path):
    code = (
        "import sys; from cuda_lsp.features import hover; hover.at = lambda *a: 1 // 0; sys.argv[0] = 'cuda-lsp'\n"
        "from cuda_lsp.terminal.main import main; main()"
    )
    log = tmp_path / "log"
    with Wire("--log", str(log), start=[sys.executable, "-c", code, "serve"]) as client:
        client.initialize()
        client.open(URI, SECRET)
        with pytest.raises(ServerError) as failed:
            client.about("textDocument/hover", URI, position={"line": 0, "character": 0})
        assert failed.value.code == -32603
        assert client.lenses(URI), "the server goes on"
    assert "ZeroDivisionError" in log.read_text() and "hover.py" in log.read_text()
