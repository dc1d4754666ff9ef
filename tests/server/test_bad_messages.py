"""Messages that no client should send, clients that vanish: an answer in words, and the server goes on or goes away."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.server.wire import VSCODE, ServerError, Wire, at, until

KERNEL = "__global__ void k(float* x) {\n    x[threadIdx.x] = 1.0f;\n}\n"
URI = "file:///nowhere/k.cu"


@pytest.fixture
def wire():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, KERNEL)
        yield client
        assert names(client, URI) is not None, "the server answers to the end"


def names(client, uri=URI):
    found = client.about("textDocument/documentSymbol", uri)
    return found and [symbol["name"] for symbol in found]


def test_what_is_no_json_is_answered(wire):
    wire.raw(b"Content-Length: 9\r\n\r\n{nonsense")
    assert wire.response()["error"]["code"] == -32700
    wire.raw(b"Content-Length: 2\r\n\r\n\xff\xfe")
    assert wire.response()["error"]["code"] == -32700
    assert names(wire) == ["k"]


@pytest.mark.parametrize("message", [[], 3, None, "text", {}, {"method": "textDocument/hover", "id": 1}])
def test_what_is_no_message_is_answered(wire, message):
    wire.send(message)
    assert wire.response()["error"]["code"] == -32600
    assert names(wire) == ["k"]


def test_headers_that_are_not_known_are_skipped(wire):
    body = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "shutdown"}).encode()[:-1] + b"  }"
    wire.raw(b"\r\nX-Nothing: 1\r\nContent-Length: %d\r\nContent-Type: a\r\n\r\n" % len(body) + body)
    assert wire.response() == {"jsonrpc": "2.0", "id": "x", "result": None}
    with pytest.raises(ServerError) as refused:
        names(wire)
    assert refused.value.code == -32600
    wire.note("exit", None)
    assert wire.process.wait(60) == 0
    wire.about = lambda *_: []


def test_a_request_with_bad_parameters_is_refused_in_words(wire):
    for params in (None, 3, [], {"textDocument": 5}, {"textDocument": {"uri": URI}, "position": {"line": -1}}):
        with pytest.raises(ServerError) as refused:
            wire.request("textDocument/hover", params)
        assert refused.value.code in (-32602, -32603)
        assert "textDocument/hover" in str(refused.value)
    assert names(wire) == ["k"]


def test_an_unknown_request_is_refused_and_an_unknown_notification_ignored(wire):
    with pytest.raises(ServerError) as refused:
        wire.request("textDocument/nothing", {})
    assert refused.value.code == -32601
    wire.note("$/nothing", {"a": 1})
    wire.note("textDocument/nothing", None)
    assert names(wire) == ["k"]


def test_a_change_that_cannot_be_read_closes_the_document_and_says_so(wire):
    wire.change(URI, 2, {"range": {"start": {"line": "one"}}, "text": "x"})
    assert names(wire) is None
    assert any("open it again" in said["message"] for said in wire.messages("window/showMessage"))
    wire.open(URI, KERNEL.replace("k(", "again("))
    assert names(wire) == ["again"]


def test_messages_about_documents_that_are_not_open(wire):
    wire.change("file:///other.cu", 2, {"text": KERNEL})
    wire.note("textDocument/didClose", {"textDocument": {"uri": "file:///other.cu"}})
    assert names(wire, "file:///other.cu") is None
    wire.note("textDocument/didClose", {"textDocument": {"uri": URI}})
    wire.change(URI, 3, {"text": KERNEL})
    assert names(wire) is None
    wire.open(URI, KERNEL)
    wire.open(URI, KERNEL + KERNEL.replace("k(", "j("))
    assert names(wire) == ["k", "j"]


def test_positions_outside_the_document(wire):
    far = {"line": 10**6, "character": 10**9}
    assert wire.about("textDocument/hover", URI, position=far) is None
    assert wire.about("textDocument/hover", URI, position={"line": 0, "character": 10**9}) is None
    where = {"start": far, "end": {"line": 0, "character": 0}}
    assert not wire.about("textDocument/codeAction", URI, range=where, context={"diagnostics": []})
    wire.change(URI, 2, {"range": {"start": far, "end": far}, "text": KERNEL.replace("k(", "after(")})
    assert names(wire) == ["k", "after"]
    backwards = {"start": {"line": 2, "character": 0}, "end": {"line": 1, "character": 0}}
    wire.change(URI, 3, {"range": backwards, "text": "//\n"})
    assert names(wire) == ["k", "after"]


def test_versions_that_do_not_grow_are_taken_in_the_order_they_come(wire):
    wire.change(URI, 7, {"text": KERNEL.replace("k(", "seven(")})
    wire.change(URI, 3, {"text": KERNEL.replace("k(", "three(")})
    assert names(wire) == ["three"]


def test_a_lone_surrogate_and_a_zero_byte_are_text_too(wire):
    wire.change(URI, 2, {"text": "// \ud83d \0\n" + KERNEL})
    assert names(wire) == ["k"]
    assert wire.about("textDocument/documentSymbol", URI)[0]["selectionRange"]["start"]["line"] == 1


def test_commands_with_bad_arguments(wire):
    for arguments in ([], [5], [{}], [{"uri": URI}], ["a", "b", "c"], None):
        with pytest.raises(ServerError) as refused:
            wire.request("workspace/executeCommand", {"command": "cuda-lsp.showKernel", "arguments": arguments})
        assert refused.value.code == -32602
    with pytest.raises(ServerError):
        wire.request("workspace/executeCommand", {"command": "cuda-lsp.nothing"})


def test_a_command_on_a_kernel_that_was_edited_since(wire):
    lens = next(one for one in wire.about("textDocument/codeLens", URI))
    wire.change(URI, 2, {"text": KERNEL.replace("1.0f", "2.0f")})
    command = {"command": "cuda-lsp.showKernel", "arguments": lens["command"]["arguments"]}
    with pytest.raises(ServerError) as refused:
        wire.request("workspace/executeCommand", command)
    assert refused.value.code == -32801


def test_a_resolve_of_what_was_never_offered(wire):
    action = {"title": "x", "kind": "refactor"}
    assert wire.request("codeAction/resolve", action) == action
    for data in (5, {}, {"uri": "file:///gone.cu", "version": 1, "kernel": "k", "ordinal": 0, "hash": "0"}):
        with pytest.raises(ServerError):
            wire.request("codeAction/resolve", {**action, "data": data})


def test_an_edit_during_a_resolve_is_noticed(wire):
    text = KERNEL + "int main() { float* x; cudaMalloc(&x, 128); k<<<1, 32>>>(x); }\n"
    wire.change(URI, 2, {"text": text})
    position = at(text, "x[threadIdx")
    where = {"start": position, "end": position}
    offered = wire.about("textDocument/codeAction", URI, range=where, context={"diagnostics": []})
    action = next(one for one in offered if "data" in one)
    wire._number += 1
    wire.send({"jsonrpc": "2.0", "id": wire._number, "method": "codeAction/resolve", "params": action})
    wire.change(URI, 3, {"text": text + "\n"})
    answer = wire.response()
    # whichever came first: the edit is of version 2, or it is refused
    if "result" in answer:
        assert answer["result"]["edit"]["documentChanges"][0]["textDocument"]["version"] == 2
    else:
        assert answer["error"]["code"] == -32801


def test_settings_that_make_no_sense(wire):
    wrong = {"cuda-lsp": {"delay": "soon", "nothing": 1, "lenses": None}}
    for asked, answer in enumerate((None, [None], [5], [[]], [{"cuda-lsp": 5}], [wrong], [wrong], []), 2):
        wire.answers["workspace/configuration"] = lambda params, told=answer: told
        wire.note("workspace/didChangeConfiguration", {"settings": asked})
        until(lambda number=asked: len(wire.messages("workspace/configuration")) == number)
    assert names(wire) == ["k"]
    said = [one["message"] for one in wire.messages("window/showMessage")]
    assert sum("delay must be a whole number" in one for one in said) == 1
    assert sum("unknown setting cuda-lsp.nothing" in one for one in said) == 1


# --- order ---------------------------------------------------------------------------------------------------------


def test_nothing_is_answered_before_initialize():
    with Wire() as client:
        with pytest.raises(ServerError) as refused:
            names(client)
        assert refused.value.code == -32002
        client.open(URI, KERNEL)
        client.initialize()
        assert names(client) is None, "what was opened before the start is not open"
        with pytest.raises(ServerError) as refused:
            client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert refused.value.code == -32600
        assert client.end() == 0


def test_exit_without_shutdown_is_an_error_exit():
    with Wire() as client:
        client.initialize()
        client.note("exit", None)
        assert client.process.wait(60) == 1


def test_exit_before_anything_else():
    with Wire() as client:
        client.note("exit", None)
        assert client.process.wait(60) == 1


# --- clients that vanish -------------------------------------------------------------------------------------------


def test_a_closed_pipe_ends_the_server():
    with Wire() as client:
        client.initialize()
        client.open(URI, KERNEL)
        until(lambda: client.lenses(URI))
        client.process.stdin.close()
        client.process.wait(60)


def test_an_editor_that_was_killed_is_noticed_though_the_pipe_is_still_open():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as editor, Wire() as client:
        client.initialize(processId=editor.pid)
        client.open(URI, KERNEL)
        compiler = until(lambda: children(client.process.pid))
        editor.kill()
        editor.wait()
        client.process.wait(60)
        until(lambda: not any(is_running(child) for child in compiler))


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_editor_on_another_machine_is_not_taken_for_dead():
    with Wire() as client:
        client.initialize(processId=2**22 + 12345)
        client.open(URI, KERNEL)
        time.sleep(2.5)
        assert names(client) == ["k"]
