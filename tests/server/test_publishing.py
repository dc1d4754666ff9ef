"""Diagnostics that are sent unasked: each version is answered, and nothing is sent twice."""

from itertools import pairwise

from tests.server.test_reading import STRIDED, URI
from tests.server.wire import MINIMAL, VSCODE, Wire, insert, until


def published(client):
    return client.messages("textDocument/publishDiagnostics")


def test_each_version_is_answered_and_nothing_is_sent_twice():
    with Wire() as client:
        client.initialize(MINIMAL)
        client.open(URI, STRIDED)
        until(lambda: any("registers" in title for title in client.lenses(URI)))
        for version in range(2, 5):
            client.change(URI, version, insert({"line": 0, "character": 3}, "!"))
            until(lambda version=version: version in [one["version"] for one in published(client)])
            # what makes the server look again at all that it shows
            client.note("workspace/didChangeConfiguration", {"settings": {"cuda-lsp": {"delay": 100 + version}}})
            client.about("textDocument/hover", URI, position={"line": 1, "character": 18})
        until(lambda: any("registers" in title for title in client.lenses(URI)))
        sent = published(client)
        assert {one["version"] for one in sent} == {1, 2, 3, 4}
        assert all(before != after for before, after in pairwise(sent))
        client.note("textDocument/didClose", {"textDocument": {"uri": URI}})
        client.open(URI, STRIDED)
        until(lambda: published(client)[len(sent) :][-1:] not in ([], [{"uri": URI, "diagnostics": []}]))
        assert client.end() == 0


def test_what_is_asked_for_again_and_is_the_same_is_not_sent_again():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, STRIDED)
        first = until(lambda: (found := client.about("textDocument/diagnostic", URI))["items"] and found)
        assert first["kind"] == "full"
        client.change(URI, 2, insert({"line": 0, "character": 3}, "!"))
        again = client.about("textDocument/diagnostic", URI, previousResultId=first["resultId"])
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        client.change(URI, 3, insert({"line": 0, "character": 3}, "\n//"))
        moved = client.about("textDocument/diagnostic", URI, previousResultId=first["resultId"])
        assert [one["range"]["start"]["line"] for one in moved["items"]] == [
            one["range"]["start"]["line"] + 1 for one in first["items"]
        ]
        assert client.end() == 0


def test_a_directive_that_no_kernel_has_is_told_where_it_stands():
    helper = "__device__ float twice(float x) { return 2 * x; }\n"
    text = f"{helper}// cuda-lsp: workload\n//   size n = 4\n{helper.replace('twice', 'thrice')}{STRIDED}"
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, text)
        told = until(lambda: [one for one in client.diagnostics(URI, True) if one["code"] == "directive"])
        assert [(one["range"]["start"], one["severity"]) for one in told] == [({"line": 1, "character": 3}, 2)]
        assert "`thrice` is a device function" in told[0]["message"]
        client.change(URI, 2, {"text": text.replace("cuda-lsp: workload", "a workload")})
        assert until(lambda: all(one["code"] != "directive" for one in client.diagnostics(URI, True)))
