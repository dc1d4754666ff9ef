"""Reading a file with real server processes and three kinds of clients: outline, lenses, hover, diagnostics, menu."""

from pathlib import Path

import pytest

from tests.server.wire import CLIENTS, MINIMAL, VSCODE, ServerError, Wire, at, insert, until

SOFTMAX = (Path(__file__).parents[2] / "fixtures" / "softmax.cu").read_text()
STRIDED = """// größe 🚀: what follows stands behind characters of several widths
__global__ void strided(const float* a, float* c, int n) {
    int row = threadIdx.x;
    c[row] = a[row * 32];
}

int main() {
    float *a, *c;
    cudaMalloc(&a, 32 * 32 * sizeof(float));
    cudaMalloc(&c, 32 * sizeof(float));
    strided<<<1, 32>>>(a, c, 32);
}
"""
URI = "file:///nowhere/strided.cu"


@pytest.fixture(params=CLIENTS)
def wire(request):
    with Wire() as client:
        client.kind = request.param
        client.capabilities = CLIENTS[request.param]
        client.server = client.initialize(client.capabilities)
        client.pulls = "diagnosticProvider" in client.server
        client.encoding = client.server["positionEncoding"]
        yield client
        assert client.end() == 0
        assert client.messages("window/showMessage") == []


def diagnostics(client, wanted=lambda found: True):
    return until(lambda: wanted(found := client.diagnostics(URI, client.pulls)) and (found or True))


def test_a_client_gets_what_it_announced(wire):
    assert wire.encoding == {"vscode": "utf-16", "neovim": "utf-8", "minimal": "utf-16"}[wire.kind]
    assert wire.server["textDocumentSync"]["change"] == 2
    assert wire.pulls == (wire.kind != "minimal")
    assert wire.server["codeActionProvider"]["resolveProvider"] == (wire.kind != "minimal")


def test_the_outline_has_kernels_and_launches(wire):
    wire.open(URI, STRIDED)
    found = wire.about("textDocument/documentSymbol", URI)
    assert [symbol["name"] for symbol in found] == ["strided", "strided<<<1, 32>>>"]
    name = at(STRIDED, "strided(const", wire.encoding)
    if wire.kind == "minimal":
        assert found[0]["location"]["range"]["start"] == name
    else:
        assert found[0]["selectionRange"]["start"] == name
        assert found[0]["detail"] == "const float* a, float* c, int n"
        assert found[1]["range"]["start"] == at(STRIDED, "strided<<<", wire.encoding)


def test_a_lens_says_what_a_kernel_costs_and_follows_what_is_typed(wire):
    wire.open(URI, STRIDED)
    costs = until(lambda: [title for title in wire.lenses(URI) if "registers" in title])
    assert "occupancy" in costs[0] and costs[0].endswith("on sm_90")
    if wire.kind != "minimal":
        until(lambda: wire.messages("workspace/codeLens/refresh"))
    shared = "    __shared__ float s[4096];\n    s[row] = a[row];\n    __syncthreads();\n    c[31 - row] = s[row];\n"
    wire.change(URI, 2, insert({"line": 4, "character": 0}, shared))
    assert until(lambda: [title for title in wire.lenses(URI) if "16.0 KB shared" in title])


def test_hints_and_errors_of_the_compiler_come_and_go(wire):
    wire.open(URI, STRIDED)
    hint = next(one for one in diagnostics(wire, lambda found: found) if one["code"] == "M1")
    assert hint["range"]["start"] == at(STRIDED, "a[row * 32]", wire.encoding)
    assert hint["source"] == "cuda-lsp"
    until(lambda: [title for title in wire.lenses(URI) if title == "1 hint"])
    wire.change(URI, 2, {"range": span(STRIDED, "row * 32", wire.encoding), "text": "row"})
    diagnostics(wire, lambda found: all(one["code"] != "M1" for one in found))
    wire.change(URI, 3, insert(at(STRIDED, "int row", wire.encoding), "undeclared = 1; "))
    error = diagnostics(wire, lambda found: any(one["severity"] == 1 for one in found))[0]
    assert "undeclared" in error["message"]
    assert error["range"]["start"] == at(STRIDED, "int row", wire.encoding)
    assert until(lambda: "does not compile" in wire.lenses(URI))
    wire.change(URI, 4, insert({"line": 0, "character": 0}, "\n\n"))
    line = error["range"]["start"]["line"] + 2
    diagnostics(wire, lambda found: [one["range"]["start"]["line"] for one in found if one["severity"] == 1] == [line])
    wire.change(URI, 5, {"text": STRIDED.replace("row * 32", "row")})
    diagnostics(wire, lambda found: not found)


def span(text, piece, encoding):
    start = at(text, piece, encoding)
    return {"start": start, "end": {"line": start["line"], "character": start["character"] + len(piece)}}


def test_hover_tells_all_that_is_known(wire):
    wire.open(URI, STRIDED)
    for place in ("strided(const", "strided<<<"):
        position = at(STRIDED, place, wire.encoding)
        text = until(lambda: "registers" in (said := hover(wire, position)) and said)  # noqa: B023
        assert "__global__ void strided(const float* a, float* c, int n)" in text
        assert "launched at line 11" in text
        assert "from: launch at line 11, extents from cudaMalloc" in text
        assert ("```cuda" in text) == (wire.kind != "minimal")
    assert wire.about("textDocument/hover", URI, position={"line": 3, "character": 4}) is None


def hover(client, position):
    return client.about("textDocument/hover", URI, position=position)["contents"]["value"]


def test_closing_takes_everything_away(wire):
    wire.open(URI, STRIDED)
    diagnostics(wire, lambda found: found)
    wire.note("textDocument/didClose", {"textDocument": {"uri": URI}})
    for method in ("documentSymbol", "codeLens"):
        assert wire.about(f"textDocument/{method}", URI) is None
    assert wire.about("textDocument/hover", URI, position={"line": 0, "character": 0}) is None
    assert wire.diagnostics(URI, wire.pulls) == []


def actions(client, text, piece, uri=URI, **context):
    position = at(text, piece)
    where = {"start": position, "end": position}
    return client.about("textDocument/codeAction", uri, range=where, context={"diagnostics": [], **context}) or []


def test_the_menu_of_a_kernel():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, STRIDED)
        found = actions(client, STRIDED, "int row")
        kinds = {action["kind"] for action in found}
        wanted = ("ask", "optimize", "check", "code", "describe", "review")
        assert {f"refactor.rewrite.cuda.{kind}" for kind in wanted} == kinds
        assert all(action["title"].count("strided") == 1 for action in found)
        disabled = {a["title"]: a["disabled"]["reason"] for a in found if "disabled" in a}
        assert disabled == {
            "Review the rewrite of strided": "no rewrite of strided was proposed yet: optimize it first"
        }
        review = next(action for action in found if "disabled" in action)
        assert (review["data"]["kernel"], review["data"]["command"]) == ("strided", "cuda-lsp.review")
        with pytest.raises(ServerError, match="optimize it first"):
            client.request("codeAction/resolve", review)
        own = next(action for action in found if "idea of my own" in action["title"])
        assert own["command"]["command"] == "cuda-lsp.tryIdea"
        scopes = [one["command"]["arguments"][1]["scope"] for one in found if one["kind"].endswith("optimize")]
        assert scopes == ["drop-in", "relaunch", "plan"]
        assert actions(client, STRIDED, "float *a, *c;") == [], "there is no kernel"
        assert actions(client, STRIDED, "strided<<<") != [], "a launch stands for its kernel"


def test_the_menu_honours_what_is_asked_for():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, STRIDED)
        assert actions(client, STRIDED, "int row", only=["quickfix"]) == []
        assert actions(client, STRIDED, "int row", only=[]) == []
        assert actions(client, STRIDED, "int row", triggerKind=2) == [], "no bulb over a kernel without a hint"
        everything = actions(client, STRIDED, "int row")
        assert actions(client, STRIDED, "int row", only=["refactor"]) == everything
        some = actions(client, STRIDED, "int row", only=["refactor.rewrite.cuda.optimize"])
        assert [action["title"] for action in some] == [a["title"] for a in everything if "Optimize" in a["title"]]
        assert actions(client, STRIDED, "int row", only=["refactor.rewrite.cuda.opt"]) == []


def test_what_is_impossible_says_why_where_the_client_can_show_it():
    broken = STRIDED.replace("int row =", "int row = = (")
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, broken)
        found = actions(client, broken, "int row", only=["refactor.rewrite.cuda"])
        reasons = [action["disabled"]["reason"] for action in found if not action["kind"].endswith("review")]
        assert reasons and all("parse error at line 3" in reason for reason in reasons)
        assert not any("command" in action for action in actions(client, broken, "int row"))
    with Wire() as client:
        client.initialize(MINIMAL)
        client.open(URI, broken)
        assert actions(client, broken, "int row") == []
        assert any("cannot be rewritten" in title for title in client.lenses(URI))


def test_a_kernel_without_a_workload_is_not_optimized_and_the_questions_are_shown():
    text = STRIDED[: STRIDED.index("int main")]
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, text)
        actions(client, text, "int row")

        def refused(action):
            return "Optimize" in action["title"] and "workload" in action.get("disabled", {}).get("reason", "")

        until(lambda: any(refused(action) for action in actions(client, text, "int row")))
        draft = next(a for a in actions(client, text, "int row") if a["kind"].endswith("describe"))
        assert draft["title"] == "Probe strided and write a draft of its workload above it" and "disabled" not in draft
        assert draft["command"]["command"] == "cuda-lsp.describeWorkload" and "edit" not in draft
        command = {name: draft["command"][name] for name in ("command", "arguments")}
        assert client.request("workspace/executeCommand", command)
        (asked,) = until(lambda: client.messages("workspace/applyEdit"), 120)
        written = asked["edit"]["documentChanges"][0]["edits"][0]["newText"]
        assert "// Probed by cuda-lsp" in written and "// cuda-lsp: workload" in written and "] probed in" in written


def test_an_unsaved_document_has_nothing_to_be_compared_with():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open("untitled:Untitled-1", STRIDED)
        found = actions(client, STRIDED, "int row", uri="untitled:Untitled-1")
        reasons = [a["disabled"]["reason"] for a in found if "Verify" in a["title"]]
        assert len(reasons) == 2 and all("never saved" in reason for reason in reasons)


def test_the_workload_is_written_above_the_kernel_when_the_action_is_taken():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, SOFTMAX.replace("\n", "\r\n"))
        offered = next(a for a in actions(client, SOFTMAX, "softmax(") if "workload" in a["title"])
        assert "edit" not in offered
        changes = client.request("codeAction/resolve", offered)["edit"]["documentChanges"]
        assert changes[0]["textDocument"] == {"uri": URI, "version": 1}
        (edit,) = changes[0]["edits"]
        line = at(SOFTMAX, "__global__ void softmax")["line"]
        assert edit["range"]["start"] == edit["range"]["end"] == {"line": line, "character": 0}
        assert edit["newText"].startswith("// cuda-lsp: workload\r\n") and "\n\n" not in edit["newText"]
        client.change(URI, 2, insert({"line": line, "character": 0}, edit["newText"]))
        said = until(lambda: "from: directive" in (text := hover_at(client, line + 5)) and text)
        assert "rows=4096 cols=65536" in said


def hover_at(client, line):
    found = client.about("textDocument/hover", URI, position={"line": line, "character": 16})
    return found["contents"]["value"]


def test_an_action_that_was_offered_on_another_text_is_refused():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, SOFTMAX)
        offered = next(a for a in actions(client, SOFTMAX, "softmax(") if "workload" in a["title"])
        client.change(URI, 2, insert({"line": 0, "character": 0}, "\n"))
        with pytest.raises(ServerError) as refused:
            client.request("codeAction/resolve", offered)
        assert refused.value.code == -32801


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("c[row] = a[row * 32];", "c[row] = a[row * 32]", 4, "expected a"),
        ("c[row] = a[row * 32];", "c[row] = = a[row * 32];", 3, "expected"),
    ],
    ids=["a semicolon is missing", "an operand is missing"],
)
def test_what_could_not_be_parsed_is_shown_where_it_stands(wire, old, new, line, words):
    """In the compiler's words: who deletes a semicolon looks for a mark in the text, not in the line above."""
    wire.open(URI, STRIDED.replace(old, new))
    (found,) = diagnostics(wire, lambda told: told)
    assert found["severity"] == 1 and words in found["message"]
    assert found["range"]["start"]["line"] == line
    wire.change(URI, 2, {"text": STRIDED})
    diagnostics(wire, lambda told: told and all(one["severity"] > 1 for one in told))
