"""What the rules say of a document that was edited is what they say of the same text read for the first time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.analysis import file, launches
from agent.analysis.rules import check, checking, hosting
from agent.source.document import Document, parse

HEAD = "#define WIDE 32\n__device__ int twice(int x) { return 2 * x; }\n"
UNIT = """
__global__ void k{n}(const float* x, float* y, int n) {{
    __shared__ float s[32][WIDE];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x][0] = x[i * WIDE];
    if (i < n) y[i] = s[0][threadIdx.x] + twice(i);
}}

void run{n}(const float* x, float* y, int n) {{
    int block = 96;
    k{n}<<<n / block, block>>>(x, y, n);
}}
"""
TEXT = (HEAD + "".join(UNIT.format(n=number) for number in range(3))).encode()
TYPED = [
    b" ", b"1", b"i", b";", b"\n", b"y[i * 7] = 1;", b"__syncthreads();", b"if (i > 4) ", b"{", b"}", b"/*", b"0.1 * ",
    b"// cuda-lsp: ignore\n", b"#include <hip/hip_runtime.h>\n", b"int block = 64;", b"k1<<<1, 2048>>>(x, y, n);",
    b"#define WIDE 1\n", b"const int q = 33;\n", b"cudaFuncSetAttribute(k1, a, 1);",
    b"void other() { k0<<<1, 33>>>(x, y, n); }\n",
]  # fmt: skip
edits = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.sampled_from([0, 0, 0, 1, 3]), st.sampled_from(TYPED)),
    min_size=1,
    max_size=4,
)


def found(document: Document) -> list[object]:
    return [check(document, kernel) for kernel in document.kernels]


def forget() -> None:
    for known in (file._readings, file._seen, launches._hosts, checking._remembered, hosting._remembered):
        known.clear()


@settings(max_examples=40, deadline=None)
@given(edits)
def test_what_is_remembered_changes_nothing(changes):
    forget()
    document = parse(TEXT)
    assert any(found(document))
    for at, gone, new in changes:
        text = document.text[:at] + new + document.text[at + gone :]
        hasty, document = parse(text, "", document, hasty=True), parse(text, "", document)
        after = [found(one) for one in ((document,) if hasty.hasty else (hasty, document))]
        forget()
        fresh = found(parse(text))
        assert all(one == fresh for one in after)
        forget()
        found(document)
