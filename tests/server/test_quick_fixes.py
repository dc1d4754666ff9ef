"""Quick fixes tied to hints, with a real server: each mends its hint, and only on the text that it was offered on."""

import pytest
from lsprotocol import types

from tests.server.editor import index_of
from tests.server.wire import CLIENTS, VSCODE, ServerError, Wire, at, insert, until

URI = "file:///nowhere/relax.cu"
TEXT = """\
// größe 🚀
__global__ void relax(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.1;
}
"""
SWAPPED = """\
__global__ void add(const float* a, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n) c[row * n + col] = a[row * n + col];
}
int main() {
    int n = 1024;
    float *a, *c;
    cudaMalloc(&a, n * n * sizeof(float));
    cudaMalloc(&c, n * n * sizeof(float));
    add<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, c, n);
}
"""


def actions(client, text, piece, encoding="utf-16", **context):
    position = at(text, piece, encoding)
    where = {"start": position, "end": position}
    given = {"diagnostics": [], "only": ["quickfix"], **context}
    return client.about("textDocument/codeAction", URI, range=where, context=given) or []


def applied(text, edit, encoding):
    """As an editor would, from the last to the first."""
    changes = edit.get("changes", {}).get(URI) or edit["documentChanges"][0]["edits"]
    for change in sorted(changes, key=lambda one: -index_of(text, place(one["range"]["start"]), encoding)):
        start, end = (index_of(text, place(change["range"][side]), encoding) for side in ("start", "end"))
        text = text[:start] + change["newText"] + text[end:]
    return text


def place(position):
    return types.Position(position["line"], position["character"])


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_hint_is_mended_or_silenced(kind):
    capabilities = CLIENTS[kind] or {
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}}
    }
    with Wire() as client:
        server = client.initialize(capabilities)
        encoding = server["positionEncoding"]
        assert "quickfix" in server["codeActionProvider"]["codeActionKinds"]
        client.open(URI, TEXT)
        (diagnostic,) = until(lambda: client.diagnostics(URI, "diagnosticProvider" in server))
        *mends, silence = actions(client, TEXT, "0.1", encoding)
        assert silence["title"] == "Silence A1 on this line" and "isPreferred" not in silence
        assert silence["kind"] == "quickfix" and silence["diagnostics"] == [diagnostic]
        if kind == "minimal":
            assert mends == [], "this client cannot be asked to write what was proved"
        else:
            (mend,) = mends
            assert mend["title"] == "Verify and apply: Write 0.1f" and mend["isPreferred"]
            assert mend["kind"] == "quickfix" and mend["diagnostics"] == [diagnostic], "which hint it mends"
            assert mend["command"]["command"] == "cuda-lsp.fix" and "edit" not in mend and "edit" not in silence
            silence = client.request("codeAction/resolve", silence)
            assert silence["edit"]["documentChanges"][0]["textDocument"]["version"] == 1
        quiet = applied(TEXT, silence["edit"], encoding)
        assert quiet == TEXT.replace("    if (i", "    // cuda-lsp: ignore[A1]\n    if (i")
        for number, text in enumerate((quiet, TEXT.replace("0.1;", "0.1f;")), 2):
            client.change(URI, number, {"text": text})
            until(lambda: client.diagnostics(URI, "diagnosticProvider" in server) == [])


def test_no_fix_away_from_a_hint_and_fixes_in_a_selection():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        until(lambda: actions(client, TEXT, "0.1"))
        assert actions(client, TEXT, "int i") == []
        assert actions(client, TEXT, "0.1", only=["refactor.rewrite"]) != [], "the menu"
        assert len(actions(client, TEXT, "0.1", only=None, triggerKind=2)) == 2, "the bulb is for what can be mended"
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        context = {"diagnostics": [], "only": ["quickfix"]}
        assert len(client.about("textDocument/codeAction", URI, range=whole, context=context)) == 2


def test_a_fix_is_refused_on_another_text():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        mend, silence = until(lambda: actions(client, TEXT, "0.1"))
        with pytest.raises(ServerError) as refused:
            client.request("codeAction/resolve", {**silence, "data": {**silence["data"], "start": 3}})
        assert "no place" in str(refused.value)
        kernel, which = mend["command"]["arguments"]
        for told in ([kernel], [kernel, {"rule": "A1"}], [kernel, {**which, "start": "3"}]):
            with pytest.raises(ServerError) as refused:
                client.request("workspace/executeCommand", {"command": "cuda-lsp.fix", "arguments": told})
            assert "{rule, start}" in str(refused.value)
        other = {"command": "cuda-lsp.fix", "arguments": [kernel, {**which, "start": which["start"] + 1}]}
        assert client.request("workspace/executeCommand", other) is None
        assert until(lambda: said(client)) == ["cuda-lsp: relax has no such finding any more; ask again"]
        client.change(URI, 2, insert({"line": 0, "character": 0}, "\n"))
        with pytest.raises(ServerError) as refused:
            client.request("codeAction/resolve", silence)
        assert refused.value.code == -32801
        _, again = actions(client, "\n" + TEXT, "0.1")
        edit = client.request("codeAction/resolve", again)["edit"]
        quiet = TEXT.replace("    if (i", "    // cuda-lsp: ignore[A1]\n    if (i")
        assert applied("\n" + TEXT, edit, "utf-16") == "\n" + quiet


def test_a_hint_that_names_an_idea_offers_to_try_it():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, SWAPPED)
        found = until(lambda: actions(client, SWAPPED, "c[row * n"))
        tried = next(one for one in found if one["title"] == "Verify and apply index-exchange to add")
        kernel, options = tried["command"]["arguments"]
        assert kernel["kernel"] == "add" and options == {"only": ["index-exchange"], "scope": "plan", "apply": True}
        assert not any(one.get("isPreferred") for one in found)


def test_line_ends_and_continued_lines():
    text = TEXT.replace("\n", "\r\n")
    macro = "#define RELAX(x) \\\n    x\n" + TEXT.replace("    if (i < n)", "    /* \\\n */ if (i < n)")
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, text)
        _, silence = until(lambda: actions(client, text, "0.1"))
        quiet = applied(text, client.request("codeAction/resolve", silence)["edit"], "utf-16")
        assert quiet.count("\n") == quiet.count("\r\n") == text.count("\r\n") + 1
        client.change(URI, 2, {"text": macro})
        titles = until(lambda: [one["title"] for one in actions(client, macro, "0.1")])
        assert titles == ["Verify and apply: Write 0.1f"], "a comment in the middle of one would not be read"


# --- settings ------------------------------------------------------------------------------------------------------


def shown(client):
    return [(one["code"], one["severity"]) for one in client.diagnostics(URI, True)]


def test_rules_are_selected_and_shown_as_the_settings_say():
    with Wire() as client:
        client.answers["workspace/configuration"] = lambda params: [client.told]
        client.told = {"severities": {"a": "error"}, "ignore": ["M3", "Nonsense"]}
        client.initialize(VSCODE)
        client.open(URI, TEXT + SWAPPED)
        until(lambda: shown(client) == [("A1", 1)])
        assert until(lambda: said(client))[0].startswith("cuda-lsp: 'Nonsense' is no rule: there are A1, ")
        for told, wanted in (
            ({"severities": {"A1": "off", "A": "hint"}, "ignore": ["Nonsense"]}, [("M3", 2)]),
            ({"select": ["M"], "severities": {"ALL": "hint"}}, [("M3", 4)]),
            ({"select": [], "ignore": ["ALL"]}, []),
            ({"select": "A1"}, [("A1", 2), ("M3", 2)]),
            ({"severities": {"A1": "loud"}}, [("A1", 2), ("M3", 2)]),
        ):
            client.told = told
            client.note("workspace/didChangeConfiguration", {"settings": {}})
            until(lambda wanted=wanted: shown(client) == wanted)
        for words in (
            "cuda-lsp.select must be a list of texts",
            "cuda-lsp.severities must be an object of error",
        ):
            until(lambda words=words: any(words in one for one in said(client)))
        assert sum("Nonsense" in one for one in said(client)) == 1


def said(client):
    return [one["message"] for one in client.messages("window/showMessage")]


def test_the_code_of_a_hint_leads_to_a_page_about_its_rule(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, TEXT)
        (diagnostic,) = until(lambda: client.diagnostics(URI, True))
        href = diagnostic["codeDescription"]["href"]
        assert href.startswith("file://") and href.endswith("A1.md")
        until(lambda: len(list(tmp_path.glob("cuda-lsp/rules-*/[A-Z]*.md"))) > 20)
        (page,) = tmp_path.glob("cuda-lsp/rules-*/A1.md")
        assert page.as_uri() == href
        assert page.read_text().startswith("# A1 double-literal\n") and "Silent when" in page.read_text()
