"""Counted facts at the ends of lines, with a real server and a real worker."""

import pytest

from tests.server.wire import MINIMAL, NEOVIM, VSCODE, Wire, at, insert, until

URI = "file:///nowhere/rows.cu"
TEXT = """\
// größe 🚀
__device__ float head(const float* a, int row) { return a[row * 64]; }

__global__ void rows(const float* a, float* c, int n) {
    int row = threadIdx.x;
    float s = 0.0f;
    for (int k = 0; k < n; ++k) {
        s += a[row * n + k];  // größe
    }
    c[row] = s + head(a, row);
}

int main() {
    int n = 64;
    float *a, *c;
    cudaMalloc(&a, 64 * n * sizeof(float));
    cudaMalloc(&c, 64 * sizeof(float));
    rows<<<1, 64>>>(a, c, n);
}
"""
BAD = "32 sectors per request (4 would do)"
LINE = TEXT.split("\n").index("        s += a[row * n + k];  // größe")


def hints(client, first=0, last=100):
    where = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    return client.about("textDocument/inlayHint", URI, range=where)


def end_of(line, encoding):
    text = TEXT.split("\n")[line]
    return len(text.encode()) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("capabilities", [VSCODE, NEOVIM], ids=["vscode", "neovim"])
def test_a_counted_fact_at_its_line_and_what_becomes_of_it(capabilities):
    with Wire() as client:
        encoding = client.initialize(capabilities)["positionEncoding"]
        client.open(URI, TEXT)
        (hint,) = until(lambda: hints(client), 60)
        assert until(lambda: client.messages("workspace/inlayHint/refresh")), "the client is told to ask again"
        assert (hint["label"], hint["position"]) == (BAD, {"line": LINE, "character": end_of(LINE, encoding)})
        assert "counted in the emulator: 1 block of 64 threads of rows at n=64" in hint["tooltip"]
        assert hints(client, 0, LINE - 1) == [], "only what was asked for"
        assert BAD in hover(client, encoding)
        # elsewhere: it moves, and is called old until the text around has settled; inside: old until counted anew
        client.change(URI, 2, insert({"line": 0, "character": 0}, "\n"))
        (moved,) = hints(client)
        assert moved["position"]["line"] == LINE + 1 and moved["label"].startswith(BAD)
        client.change(URI, 3, insert({"line": LINE, "character": 0}, "    if (n < 0) return;\n"))
        assert [one["label"] for one in hints(client)] == [f"{BAD} ..."]
        assert until(lambda: [h for h in hints(client) if h["label"] == BAD], 60)[0]["position"]["line"] == LINE + 2
        # good now: neighbours read neighbours
        client.change(URI, 4, {"text": TEXT.replace("a[row * n + k]", "a[k * 64 + row]")})
        assert until(lambda: hints(client) == [], 60)
        # an undo needs no new count
        client.change(URI, 5, {"text": TEXT})
        assert until(lambda: [h["label"] for h in hints(client)] == [BAD], 10)
        client.answers["workspace/configuration"] = lambda params: [{"inlayHints": False}]
        client.note("workspace/didChangeConfiguration", {"settings": {}})
        if capabilities is VSCODE:
            assert until(lambda: hints(client) is None)


def hover(client, encoding):
    return client.about("textDocument/hover", URI, position=at(TEXT, "rows(const", encoding))["contents"]["value"]


def test_a_client_without_inlay_hints_finds_the_facts_in_the_hover():
    with Wire() as client:
        assert "inlayHintProvider" not in client.initialize(MINIMAL)
        client.open(URI, TEXT)
        assert f"line {LINE + 1}: {BAD}" in until(lambda: BAD in (said := hover(client, "utf-16")) and said, 60)


def test_a_rule_that_counting_contradicts_is_silent():
    """Read off the text, threads are a row apart; what is run shows that a row is one element long."""
    long, short = (TEXT.replace("a[row * 64]", "a[row]").replace("int n = 64", f"int n = {n}") for n in (64, 1))
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, short)
        assert until(lambda: codes(client)) == ["M2"]
        until(lambda: hints(client) == [] and codes(client) == [], 60)
        until(lambda: "1 hint" not in client.lenses(URI))
        client.change(URI, 2, {"text": long})
        assert until(lambda: codes(client)) == ["M2"], "counts of another text say nothing"
        until(lambda: hints(client), 60)
        assert codes(client) == ["M2"]


HIDDEN = """\
__device__ int place(int i) {
    int j = 0;
    for (int k = 0; k < 8; ++k) j += i;
    return j;
}

__global__ void spread(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[place(i)];
}

int main() {
    int n = 256;
    float *x, *y;
    cudaMalloc(&x, 8 * n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    spread<<<2, 128>>>(x, y, n);
}
"""
"""No rule reads through the function's loop."""


def test_what_no_rule_can_read_is_found_by_counting_and_goes_away_with_what_was_counted():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, HIDDEN)
        assert codes(client) == [], "read off the text, there is nothing"
        hints(client)
        assert until(lambda: codes(client) == ["M1"], 60)
        (found,) = client.diagnostics(URI, True)
        assert "counted at n=256: 32 sectors a request, 4 would do" in found["message"]
        assert (found["range"]["start"]["line"], found["severity"]) == (8, 2)
        # a text that was not counted yet is not spoken of; what is good now stays without a word
        client.change(URI, 2, {"text": HIDDEN.replace("k < 8", "k < 1")})
        assert codes(client) == []
        assert until(lambda: hints(client) == [], 60) and codes(client) == []
        # known again by its text, and silenced as a rule is
        client.change(URI, 3, {"text": HIDDEN})
        assert until(lambda: codes(client) == ["M1"], 60)
        client.change(URI, 4, {"text": HIDDEN.replace("[place(i)];", "[place(i)];  // cuda-lsp: ignore[M1]")})
        assert until(lambda: [one for one in hints(client) if not one["label"].endswith("...")], 60)
        assert codes(client) == []


def codes(client):
    return [one["code"] for one in client.diagnostics(URI, True)]


TOO_SMALL, NOWHERE_RUN = TEXT.replace("cudaMalloc(&a, 64 * n", "cudaMalloc(&a, 1 * n"), TEXT[: TEXT.index("int main")]
UNKNOWN = NOWHERE_RUN.replace("float* c, int n", "float* c, int n, float** more").replace(
    "c[row] =", "more[0][0] = c[row] ="
)


def test_a_kernel_that_nobody_runs_is_counted_on_a_launch_that_is_said_to_be_made_up():
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, NOWHERE_RUN)
        (hint,) = until(lambda: [one for one in hints(client) if "not counted" not in one["label"]], 60)
        assert (hint["label"], hint["position"]["line"]) == (f"{BAD}, launch made up", LINE)
        assert "a launch that was made up" in hint["tooltip"]
        assert f"line {LINE + 1}: {BAD}, launch made up" in hover(client, "utf-16")
        assert codes(client) == ["M2"], "numbers that were made up say nothing against a rule"


@pytest.mark.parametrize("broken", [TOO_SMALL, UNKNOWN], ids=["too small", "cannot be passed"])
def test_what_cannot_be_run_gets_what_the_rules_read_off_the_text_and_says_so(broken):
    """A buffer that is too small, and a kernel that no launch can be made up for."""
    with Wire() as client:
        client.initialize(VSCODE)
        client.open(URI, broken)
        (hint,) = until(lambda: hints(client), 60)
        assert (hint["label"], hint["position"]["line"]) == (f"{BAD}, not counted", LINE)
        assert hint["tooltip"].startswith("M2: neighbouring threads are n elements of a apart")
        assert "nothing was run" in hint["tooltip"]
        assert f"line {LINE + 1}: {BAD}, not counted" in hover(client, "utf-16")
        client.change(URI, 2, {"text": broken.replace("// größe\n", "// cuda-lsp: ignore[M2]\n")})
        assert until(lambda: hints(client) == [], 60), "a rule that is silenced foretells nothing"
        client.open(URI, TEXT)
        assert until(lambda: [one["label"] for one in hints(client)] == [BAD], 60)
        assert client.messages("window/showMessage") == []
