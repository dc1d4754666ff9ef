"""Text that no server is glad of, through the real one: each is answered, and what is wrong is said."""

import pytest

from tests.server.wire import VSCODE, Wire, insert, until

KERNEL = """\
__global__ void f(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.1;
}
"""
HOST = """\
int main() {
    float *x, *y;
    cudaMalloc(&x, 4096);
    cudaMalloc(&y, 4096);
    f<<<4, 256>>>(x, y, 1024);
}
"""
FOUND = [("A1", 2)]


def opened(client, path, text):
    uri = path.as_uri()
    path.write_text(text)
    client.initialize(VSCODE)
    client.open(uri, text)
    return uri


def found(client, uri):
    return [(one["code"], one["range"]["start"]["line"]) for one in client.diagnostics(uri, True)]


def lenses(client, uri):
    return [one["command"]["title"] for one in client.about("textDocument/codeLens", uri) or ()]


def calm(client):
    return client.messages("window/showMessage") == [] and b"Traceback" not in client.errors


def test_each_key_of_a_kernel_that_is_typed(tmp_path):
    with Wire() as client:
        uri = opened(client, tmp_path / "typed.cu", "")
        line = column = 0
        for version, letter in enumerate(KERNEL, 2):
            client.change(uri, version, insert({"line": line, "character": column}, letter))
            line, column = (line + 1, 0) if letter == "\n" else (line, column + 1)
            for method in ("textDocument/documentSymbol", "textDocument/codeLens"):
                client.about(method, uri)
            client.diagnostics(uri, True)
        until(lambda: found(client, uri) == FOUND)
        assert calm(client)


@pytest.mark.parametrize(
    ("before", "after", "at"),
    [
        ("\n" * 50_000, "", 50_002),
        (f"// {'x' * 20_000}\n", f'const char* s = "{"y" * 20_000}";\n', 3),
        ("\f\v\x01\x02 \u2028\u200b\ufeff\n", "\x1a", 3),
    ],
    ids=["50,000 lines", "20,000 characters", "odd characters"],
)
def test_texts_that_nobody_wrote_by_hand(tmp_path, before, after, at):
    with Wire() as client:
        uri = opened(client, tmp_path / "large.cu", before + KERNEL + after)
        until(lambda: found(client, uri) == [("A1", at)])
        assert lenses(client, uri) and calm(client)


def test_a_sum_of_thousands_of_terms_is_compiled_and_not_guessed_at(tmp_path):
    with Wire() as client:
        sum_ = " + ".join(["1.0f"] * 4000)
        uri = opened(client, tmp_path / "sum.cu", KERNEL.replace("0.1;", f"0.1f + {sum_};"))
        until(lambda: any("registers" in title for title in lenses(client, uri)), 60)
        assert calm(client)


def test_headers_that_include_each_other_or_are_not_there_in_a_folder_with_an_odd_name(tmp_path):
    folder = tmp_path / "a folder, 100 % with #hash"
    folder.mkdir()
    (folder / "a.h").write_text('#include "b.h"\n__device__ inline float twice(float x) { return 2.0f * x; }\n')
    (folder / "b.h").write_text('#include "a.h"\n')
    (folder / "compile_commands.json").write_text('[{"file": "k.cu", "command": "hipcc --offload-arch=gfx90a k.cu"}]')
    with Wire() as client:
        guarded = '#include "a.h"\n' + KERNEL.replace("x[i] * 0.1", "twice(x[i])")
        (folder / "a.h").write_text("#pragma once\n" + (folder / "a.h").read_text())
        uri = opened(client, folder / "k.cu", guarded)
        until(lambda: any("registers" in title for title in lenses(client, uri)), 60)
        (folder / "a.h").write_text('#include "b.h"\n')
        client.change(uri, 2, {"text": guarded + "// another text\n"})
        until(lambda: any("does not compile" in title for title in lenses(client, uri)), 60)
        client.change(uri, 3, {"text": '#include "nowhere.h"\n' + KERNEL.replace("0.1", "gone(x[i])") + HOST})
        # the call that nothing defines, and the header on its own line
        until(lambda: {("nvrtc", 0), ("nvrtc", 3)} <= set(found(client, uri)), 60)
        # where nothing launches the kernel as well
        client.change(uri, 4, {"text": '\n#include "nowhere.h"\n' + KERNEL.replace("0.1", "gone(x[i])")})
        until(lambda: {("nvrtc", 1), ("nvrtc", 4)} <= set(found(client, uri)), 60)
        assert calm(client)
