"""A code base with kernels of every kind, and the command run over it once."""

from pathlib import Path

from tests.cli.running import ROW_SUMS, TRANSPOSED

ASKING = """\
__global__ void fill(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}
__global__ void lonely(float* out) { out[threadIdx.x] = 2.0f; }

int main(int argc, char** argv) {
    int n = atoi(argv[1]);
    float* out;
    cudaMalloc(&out, n * sizeof(float));
    fill<<<(n + 255) / 256, 256>>>(out, n);
    return 0;
}
"""
"""Nothing says how large, and nothing launches the second."""

DAMAGED = "__global__ void torn(float* x) { x[0] = ; }\nint main() { torn<<<1, 1>>>(0); }\n"

STRANGE = """\
__global__ void strange(float* x) { x[threadIdx.x] = no_such_function(x[0]); }
int main() { float* x; cudaMalloc(&x, 1024); strange<<<1, 256>>>(x); return 0; }
"""

TWINS = """\
#ifdef FAST
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
#else
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 0.0f; }
#endif
int main() {
    float *x, *y;
    cudaMalloc(&x, 1024);
    cudaMalloc(&y, 1024);
    copy<<<1, 256>>>(x, y);
    return 0;
}
"""

HOSTILE_NAME = "<img src=x onerror=alert(1)>&quot;.cu"
HOSTILE = "// </code></details><script>alert(2)</script>\n" + ASKING.replace(
    "int n = atoi(argv[1]);", 'int n = atoi(getenv("</li><script>alert(3)</script>"));'
).replace("fill", "fil1")


def code_base(folder: Path) -> Path:
    """Two kernels with an estimate, one with two definitions, others in which something is in the way, and files that
    cannot be read."""
    files: dict[str, str | bytes] = {
        "src/rows.cu": ROW_SUMS,
        "src/deep/scale.cu": TRANSPOSED,
        "src/twins.cu": TWINS,
        "src/asking.cu": ASKING,
        "src/damaged.cu": DAMAGED,
        "src/strange.cu": STRANGE,
        "src/plain.h": "int f(int x);\n",
        "src/binary.cu": b"__global__ \0\1\2",
        "src/wide.cu": ASKING.encode("utf-16"),
        "src/latin.cu": TWINS.replace("copy", "cop1").encode() + b"// caf\xe9\n",
        "build/left_out.cu": ROW_SUMS,
        f"src/{HOSTILE_NAME}": HOSTILE,
    }
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "src" / "loop").symlink_to(folder / "src", target_is_directory=True)
    return folder
