"""What a model's code may hold: device code alone. Everything else is refused by its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ideas.model.vetting import Refused, vet
from agent.source.document import Document, parse

FILE = """\
#include <cuda_fp16.h>
#include "mine.h"
#define LIMIT 4
struct Pair { float a, b; };
const int THREADS = 256;
__device__ float twice(float v) { return 2.0f * v; }
__device__ int lane() { int v; asm("mov.u32 %0, %laneid;" : "=r"(v)); return v; }
template <typename T> __global__ void other(T* p) { p[0] = T(0); }
__global__ void scale(const float* x, float* y, int n) {
    int hidden = 0;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = twice(x[i]);
}
int main() { scale<<<1, 1>>>(0, 0, 1); }
"""
DOCUMENT = parse(FILE.encode(), "file.cu")
BODY = "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = x[i] + x[i];\n}\n"
KERNEL = f"__global__ void scale(const float* __restrict__ x, float* y, int n) {BODY}"


def vetted(code: str, document: Document = DOCUMENT, name: str = "scale") -> str:
    return vet(code, document, document.kernel(name))


def reason(code: str) -> str:
    with pytest.raises(Refused) as caught:
        vetted(code)
    return str(caught.value)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "__device__ float helper(float v) { return v; }\n",
        "static __device__ __forceinline__ float helper(float v) { return v; }\n",
        "template <int N> __device__ void fill(float* p) {\n#pragma unroll\nfor (int i = 0; i < N; ++i) p[i] = 0;\n}\n",
        "constexpr int TILE = 32;\n",
        "__constant__ float weights[3] = {1, 2, 3};\n",
        "__device__ const float table[2] = {1, 2};\n",
        "struct Cell { float v; __device__ float get() const { return v; } };\n",
        "enum Mode { A, B };\nusing real = float;\ntypedef float4 quad;\n",
        "__global__ void first(const float* x, float* part, int n) { if (threadIdx.x == 0) part[0] = x[0]; }\n",
        'static_assert(sizeof(float) == 4, "");\n',
        '// a comment that says #include <x> and asm("trap;")\n/* main() */\n',
    ],
)
def test_device_code_is_taken(before: str) -> None:
    assert vetted(before + KERNEL) == (before + KERNEL).strip("\n")


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("#include <cstdlib>\n", "line 1: `#include`"),
        ("# include \"/etc/passwd\"\n", "`#include`"),
        ("#define N 4\n", "`#define`"),
        ("#undef LIMIT\n", "`#undef`"),
        ("#if 1\n#endif\n", "`#if`"),
        ("#pragma pack(1)\n", "`#pragma`"),
        ("#pragma GCC poison float\n", "`#pragma`"),
        ("#line 1 \"x\"\n", "`#line`"),
        ("%:include <cstdlib>\n", "`%:`"),
        ("??=include <cstdlib>\n", "`??=`"),
        ("__device__ void f() <% %> int evil = system(\"id\");\n", "`<%`"),
        ("_Pragma(\"pack(1)\")\n", "_Pragma"),
        ("int helper(int v) { return v; }\n", "`helper` is a host function"),
        ("constexpr int helper(int v) { return v; }\n", "`helper` is a host function"),
        ("__host__ __device__ int helper(int v) { return v; }\n", "`__host__`"),
        ("int main() { return 0; }\n", "`main` is a host function"),
        ("struct Evil { Evil(); };\nEvil evil;\n", "`evil` is a global object"),
        ("int evil = system(\"id\");\n", "`evil` is a global object"),
        ("const int evil = system(\"id\");\n", "`evil` is a global object"),
        ("static int evil = 3;\n", "global object"),
        ("struct Evil { Evil() { system(\"id\"); } };\n", "member function of the host"),
        ("struct S { inline static int v = system(\"id\"); };\n", "static member"),
        ("__device__ int count = 0;\n", "outlives a launch"),
        ("__managed__ int count;\n", "`__managed__`"),
        ("extern int count;\n", "declared elsewhere"),
        ("namespace mine { __device__ int f() { return 0; } }\n", "a namespace"),
        ("extern \"C\" { __device__ int f() { return 0; } }\n", "extern"),
        ("using namespace std;\n", "`using namespace`"),
        ("__attribute__((constructor)) void boot() {}\n", "`__attribute__`"),
        ("__device__ int twice(int v) { return v; }\n", "`twice` is a name in the file already"),
        ("constexpr int LIMIT = 3;\n", "`LIMIT` is a name in the file already"),
        ("struct main { int v; };\n", "`main` is a name in the file already"),
        ("__device__ int f() { asm(\"trap;\"); return 0; }\n", "`asm`"),
        ("__device__ int f() { asm volatile (\"bar.sync 0;\"); return 0; }\n", "`asm`"),
        ("__device__ void f() { int* p; cudaMalloc(&p, 4); }\n", "`cudaMalloc`"),
        ("__global__ void k() { scale<<<1, 1>>>(0, 0, 1); }\n", "a launch"),
        ("__device__ int f() { return \u202e0; }\n", "U+202E"),
        ("__device__ int f() { return 0; } // \\\nint x;\n", "backslash"),
        ("__device__ int f() { return 0; }\x00\n", "U+0000"),
        ("system(\"id\");\n", ""),
        ("__device__ int f( { return 0; }\n", "cannot be parsed"),
    ],
)  # fmt: skip
def test_all_else_is_refused_by_its_name(before: str, words: str) -> None:
    assert words in reason(before + KERNEL)


def test_what_only_repeats_the_file_is_left_out() -> None:
    repeated = (
        "#include <cuda_fp16.h>\n#define LIMIT   4\nstruct Pair { float a, b; };\nconst int THREADS = 256;\n"
        "__device__ float twice(float v) { /* same */ return 2.0f * v; }\n"
    )
    assert vetted(repeated + KERNEL) == KERNEL.strip("\n")


def test_the_kernels_own_assembly_may_stay() -> None:
    code = KERNEL.replace("int i =", 'int v; asm("mov.u32 %0, %laneid;" : "=r"(v)); int i =')
    assert vetted(code) == code.strip("\n")


def test_locals_of_the_old_kernel_are_free_names() -> None:
    assert "hidden" in vetted("__device__ int hidden(int v) { return v; }\n" + KERNEL)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "it defines none"),
        ("__device__ int f() { return 0; }", "must define the kernel `scale` once"),
        (KERNEL.replace("scale", "scaled"), "it defines `scaled`"),
        (KERNEL + KERNEL, "once"),
        ("template <int N> " + KERNEL, "template parameters"),
    ],
)
def test_the_kernel_itself_must_be_there(code: str, words: str) -> None:
    assert words in reason(code)


def test_length_is_bounded() -> None:
    assert "at most" in reason("/" * 70_000)


@given(st.text(alphabet=st.sampled_from("__global__ void scale(){};#<>=\n\"'\\/*RAx0 struct static")))
def test_any_text_is_judged_without_harm(text: str) -> None:
    try:
        assert "scale" in vetted(text)
    except Refused as refused:
        assert str(refused)
