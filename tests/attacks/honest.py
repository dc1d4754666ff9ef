# ruff: noqa: E501 (programs in a string are as long as they are)
"""Honest rewrites: each must be accepted. Many a checker refuses some of them."""

from tests.attacks.entry import Control
from tests.attacks.hidden import HONEST_SIDES, PLAN_OF_SIDES, keyed, tile

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_STRIDE = "for (int j = i; j < n; j += gridDim.x * blockDim.x) y[j] = 1.5f * x[j] + 0.25f;"
_TREE = """    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];"""
_SHUFFLE = """    if (t < 32) {
        float v = s[t] + s[t + 32] + s[t + 64] + s[t + 96];
        for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffffu, v, k);
        if (t == 0) y[blockIdx.x] = v;
    }"""
_SUM = "for (int i = t; i < cols; i += 128) sum += x[(size_t)blockIdx.x * cols + i];"
_DOT = "    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];"
_EXIT = "    if (row >= n || col >= n) return;\n"
_TILES = """    __shared__ float p[16][16], q[16][17];
    for (int t = 0; t < n; t += 16) {
        p[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0.0f;
        q[threadIdx.y][threadIdx.x] = t + threadIdx.y < n && col < n ? b[(t + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += p[threadIdx.y][k] * q[k][threadIdx.x];
        __syncthreads();
    }
    if (row >= n || col >= n) return;"""
_STRASSEN = """    int h = n / 2;
    if (n % 2 == 0) {
        if (row >= h || col >= h) return;
        float p[7] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (int k = 0; k < h; k++) {
            float a11 = a[row * n + k], a12 = a[row * n + k + h], a21 = a[(row + h) * n + k], a22 = a[(row + h) * n + k + h];
            float b11 = b[k * n + col], b12 = b[k * n + col + h], b21 = b[(k + h) * n + col], b22 = b[(k + h) * n + col + h];
            p[0] += (a11 + a22) * (b11 + b22), p[1] += (a21 + a22) * b11, p[2] += a11 * (b12 - b22);
            p[3] += a22 * (b21 - b11), p[4] += (a11 + a12) * b22, p[5] += (a21 - a11) * (b11 + b12);
            p[6] += (a12 - a22) * (b21 + b22);
        }
        c[row * n + col] = p[0] + p[3] - p[4] + p[6], c[row * n + col + h] = p[2] + p[4];
        c[(row + h) * n + col] = p[1] + p[3], c[(row + h) * n + col + h] = p[0] - p[1] + p[2] + p[5];
        return;
    }
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];"""
_WINOGRAD = """    float rows = 0.0f, cols = 0.0f;
    for (int k = 0; k + 1 < n; k += 2) {
        float a0 = a[row * n + k], a1 = a[row * n + k + 1], b0 = b[k * n + col], b1 = b[(k + 1) * n + col];
        sum += (a0 + b1) * (a1 + b0), rows += a0 * a1, cols += b0 * b1;
    }
    sum -= rows + cols;
    if (n % 2) sum += a[row * n + n - 1] * b[(n - 1) * n + col];"""
_PASSES = """    float peak = -INFINITY;
    for (int i = t; i < cols; i += 128) peak = fmaxf(peak, in[i]);"""
_TWO = """__global__ void partial(const float* x, float* part, int cols) {
    __shared__ float s[128];
    int t = threadIdx.x, half = (cols + 1) / 2, from = blockIdx.y * half, to = min(cols, from + half);
    float sum = 0.0f;
    for (int i = from + t; i < to; i += 128) sum += x[(size_t)blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) part[2 * blockIdx.x + blockIdx.y] = s[0];
}
__global__ void joined(const float* part, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) y[row] = part[2 * row] + part[2 * row + 1];
}
// cuda-lsp: workload"""

_PIPELINE = """    __shared__ float buf[2][256];
    const float* in = x + (size_t)blockIdx.x * cols;
    int tiles = (cols + 255) / 256;
    auto load = [&](int tile, int side) {
        for (int j = t; j < 256; j += 128) {
            int at = tile * 256 + j;
            unsigned to = (unsigned)__cvta_generic_to_shared(&buf[side][j]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(in + (at < cols ? at : 0)), "r"(at < cols ? 4 : 0));
        }
        asm volatile("cp.async.commit_group;");
    };
    load(0, 0);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) load(tile + 1, (tile + 1) & 1); else asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        sum += buf[tile & 1][t] + buf[tile & 1][t + 128];
        __syncthreads();
    }"""
_SPLIT = """__global__ void part(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row >= n || col >= n) return;
    int each = (n + gridDim.z - 1) / gridDim.z, from = blockIdx.z * each, to = min(n, from + each);
    float sum = 0.0f;
    for (int k = from; k < to; k++) sum += a[row * n + k] * b[k * n + col];
    atomicAdd(&c[row * n + col], sum);
}
// cuda-lsp: workload"""
_LAST = """__global__ void split(const float* x, float* y, float* part, int* done, int rows, int cols) {
    __shared__ float s[128];
    __shared__ int last;
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.y * 128 + t; i < cols; i += 256) sum += x[(size_t)blockIdx.x * cols + i];
    s[t] = sum;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    volatile float* mine = part + 2 * blockIdx.x;
    if (t == 0) {
        mine[blockIdx.y] = s[0];
        __threadfence();
        last = atomicAdd(&done[blockIdx.x], 1) == 1;
    }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        y[blockIdx.x] = mine[0] + mine[1];
    }
}
// cuda-lsp: workload"""
_PEELED = """const float* in = x + (size_t)blockIdx.x * cols;
    int head = min(cols, (int)((16 - ((size_t)in & 15)) / 4 & 3)), quads = (cols - head) / 4;
    if (t < head) sum += in[t];
    for (int i = t; i < quads; i += 128) {
        float4 q = ((const float4*)(in + head))[i];
        sum += (q.x + q.y) + (q.z + q.w);
    }
    for (int i = head + 4 * quads + t; i < cols; i += 128) sum += in[i];"""
_TICKETS = """__shared__ int tile;
    while (true) {
        if (threadIdx.x == 0) tile = atomicAdd(next, 1);
        __syncthreads();
        int j = tile * 256 + threadIdx.x;
        if (tile * 256 >= n) return;
        __syncthreads();
        if (j < n) y[j] = 1.5f * x[j] + 0.25f;
    }"""

CONTROLS = (
    Control("the original itself", "softmax"),
    Control("an early exit", "scale", ((_BODY, "if (i >= n) return; y[i] = 1.5f * x[i] + 0.25f;"),)),
    Control("a fused multiply-add by name", "scale", ((_BODY, "if (i < n) y[i] = fmaf(1.5f, x[i], 0.25f);"),)),
    Control(
        "vectors with a tail",
        "scale",
        (
            (
                _BODY,
                "if (4 * i + 3 < n) { float4 v = ((const float4*)x)[i]; ((float4*)y)[i] = make_float4(1.5f * v.x + 0.25f, "
                "1.5f * v.y + 0.25f, 1.5f * v.z + 0.25f, 1.5f * v.w + 0.25f); } "
                "else for (int j = 4 * i; j < n; j++) y[j] = 1.5f * x[j] + 0.25f;",
            ),
        ),
        plan="launch scale<<<(n + 1023) / 1024, 256>>>(x, y, n)",
    ),
    Control("a kernel for each of two kinds of sizes", "scale", HONEST_SIDES, plan=PLAN_OF_SIDES),
    Control("another block shape", "scale", plan="launch scale<<<(n + 63) / 64, 64>>>(x, y, n)"),
    Control("a persistent kernel", "scale", ((_BODY, _STRIDE),), plan="launch scale<<<12, 256>>>(x, y, n)"),
    Control(
        "blocks in another order",
        "scale",
        (("int i = blockIdx.x * blockDim.x", "int i = (gridDim.x - 1 - blockIdx.x) * blockDim.x"),),
    ),
    Control(
        "a local literal that looks like a size",
        "scale",
        ((_BODY, "if (n > 40000 && i < n) y[i] = fmaf(x[i], 1.5f, 0.25f); else " + _BODY),),
    ),
    Control(
        "unrolled for the common length, right for all",
        "rowsum",
        (
            (
                _SUM,
                "if (cols == 1000) { for (int j = 0; j < 8; j++) if (t + 128 * j < 1000) sum += x[(size_t)blockIdx.x * cols + t + 128 * j]; }\n"
                f"    else {_SUM}",
            ),
        ),
        rows=("41",),
    ),
    Control("a shuffle in place of a tree", "rowsum", ((_TREE, _SHUFFLE),)),
    Control(
        "one warp for a row",
        "rowsum",
        (
            (_SUM, _SUM.replace("128", "32")),
            ("    s[t] = sum;\n    __syncthreads();\n", ""),
            (
                _TREE,
                "    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);\n    if (t == 0) y[blockIdx.x] = sum;",
            ),
        ),
        plan="launch rowsum<<<rows, 32>>>(x, y, rows, cols)",
    ),
    Control(
        "warps with a work of their own each",
        "rowsum",
        (
            (
                _SUM,
                "__shared__ float tile[64]; for (int at = 0; at < cols; at += 64) {\n"
                "        if (t >= 64) { int i = at + t - 64; tile[t - 64] = i < cols ? x[(size_t)blockIdx.x * cols + i] : 0.0f; }\n"
                "        __syncthreads();\n        if (t < 64) sum += tile[t];\n        __syncthreads();\n    }",
            ),
        ),
    ),
    Control(
        "a pipeline of asynchronous copies, where the architecture has them",
        "rowsum",
        ((_SUM, f"\n#if __CUDA_ARCH__ >= 800\n{_PIPELINE}\n#else\n{_SUM}\n#endif\n"),),
        rows=("89",),
    ),
    Control("an aligned part between a head and a tail", "rowsum", ((_SUM, _PEELED),), rows=("93",)),
    Control(
        "a long sum cut in four, added by atomics",
        "matmul",
        (("// cuda-lsp: workload", _SPLIT),),
        plan="fill c 0\nlaunch part<<<dim3((n + 15) / 16, (n + 15) / 16, 4), dim3(16, 16)>>>(a, b, c, n)",
        precision=("same", "better", "less"),
        lossy=True,
    ),
    Control(
        "the last block of a row adds what both have",
        "rowsum",
        (("// cuda-lsp: workload", _LAST),),
        plan=(
            "scratch part: f32[2 * rows]\nscratch done: i32[rows] zeroed\n"
            "launch split<<<dim3(rows, 2), 128>>>(x, y, part, done, rows, cols)"
        ),
    ),
    Control(
        "blocks that draw their tiles from a counter",
        "scale",
        (("const float* x, float* y, int n)", "const float* x, float* y, int* next, int n)"), (_BODY, _TICKETS)),
        plan="scratch next: i32[1] zeroed\nlaunch scale<<<12, 256>>>(x, y, next, n)",
    ),
    Control(
        "a fast exponential, as less precise",
        "growth",
        (("expm1f(x[i])", "__expf(x[i]) - 1.0f"),),
        precision=("less",),
        lossy=True,
    ),
    Control("tiles of several elements a thread", "rowsum", tile("        __syncthreads();\n"), rows=("64",)),
    Control(
        "two launches with scratch between",
        "rowsum",
        (("// cuda-lsp: workload", _TWO),),
        plan=(
            "scratch part: f32[2 * rows]\nlaunch partial<<<dim3(rows, 2), 128>>>(x, part, cols)\n"
            "launch joined<<<(rows + 63) / 64, 64>>>(part, y, rows)"
        ),
    ),
    Control("a sum in double", "rowsum", (("float sum = 0.0f;", "double sum = 0.0;"),)),
    Control(
        "sums by atomics where the original has them",
        "total",
        (
            (
                "if (i < n) atomicAdd(sum, x[i]);",
                "float v = i < n ? x[i] : 0.0f;\n    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);\n"
                "    if (threadIdx.x % 32 == 0) atomicAdd(sum, v);",
            ),
        ),
    ),
    Control(
        "a fused pass over the row",
        "softmax",
        (
            (
                _PASSES,
                "    float peak = -INFINITY;\n    for (int i = t; i < cols; i += 128) peak = in[i] > peak ? in[i] : peak;",
            ),
            ("out[i] = expf(in[i] - peak) / sum;", "out[i] = expf(in[i] - peak) * (1.0f / sum);"),
        ),
    ),
    Control("tiles in shared memory", "matmul", ((_EXIT, ""), (_DOT, _TILES))),
    Control(
        "Strassen's seven products, as less precise",
        "matmul",
        ((_DOT, _STRASSEN),),
        precision=("same", "less"),
        lossy=True,
    ),
    Control(
        "Winograd's inner product, as less precise",
        "matmul",
        ((_DOT, _WINOGRAD),),
        precision=("same", "less"),
        lossy=True,
    ),
    Control(
        "a filter in Winograd's form F(2, 3)",
        "blur",
        (
            ("int i = blockIdx.x * blockDim.x + threadIdx.x;", "int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);"),
            (
                "    float left = i > 0 ? x[i - 1] : 0.0f, right = i + 1 < n ? x[i + 1] : 0.0f;\n    y[i] = 0.25f * left + 0.5f * x[i] + 0.25f * right;",
                "    float d0 = i > 0 ? x[i - 1] : 0.0f, d1 = x[i], d2 = i + 1 < n ? x[i + 1] : 0.0f, d3 = i + 2 < n ? x[i + 2] : 0.0f;\n"
                "    float m1 = (d0 - d2) * 0.25f, m2 = (d1 + d2) * 0.5f, m3 = (d2 - d1) * 0.0f, m4 = (d1 - d3) * 0.25f;\n"
                "    y[i] = m1 + m2 + m3;\n    if (i + 1 < n) y[i + 1] = m2 - m3 - m4;",
            ),
        ),
        plan="launch blur<<<(n + 511) / 512, 256>>>(x, y, n)",
    ),
    Control("ties in an argmax broken otherwise", "argmax", (("in[i] > in[at] ? i : at", "in[i] >= in[at] ? i : at"),)),
    Control(
        "compaction in another order", "compact", (("int i = blockIdx.x", "int i = (int)(gridDim.x - 1 - blockIdx.x)"),)
    ),
    Control(
        "compaction with one atomic a warp",
        "compact",
        (
            (
                "    if (i < n && x[i] > 0) kept[atomicAdd(count, 1)] = x[i];",
                "    bool keep = i < n && x[i] > 0;\n    unsigned all = __ballot_sync(0xffffffffu, keep);\n    int lane = threadIdx.x % 32, at = 0;\n"
                "    if (lane == 0) at = atomicAdd(count, __popc(all));\n    at = __shfl_sync(0xffffffffu, at, 0);\n"
                "    if (keep) kept[at + __popc(all & ((1u << lane) - 1))] = x[i];",
            ),
        ),
    ),
    Control("compaction of pairs with one atomic a warp", "keyed", keyed("rank")),
    Control("several threads write one value", "flags", (("atomicExch(any, 1);", "*any = 1;"),)),
    Control(
        "a test before the write",
        "flags",
        (("atomicExch(any, 1);", "if (atomicAdd(any, 0) == 0) atomicExch(any, 1);"),),
    ),
    Control("in place, through the read-only cache before the write", "inplace", (("+ y[i];", "+ __ldg(y + i);"),)),
    Control(
        "in place, read once",
        "inplace",
        (("if (i < n) y[i] = 2.0f * x[i] + y[i];", "if (i < n) { float v = y[i]; v += 2.0f * x[i]; y[i] = v; }"),),
    ),
    Control(
        "the output is read again after it was written",
        "chain",
        (("if (i < n) y[i] = 2.0f * x[i] * x[i];", "if (i < n) { y[i] = x[i] * x[i]; y[i] = 2.0f * y[i]; }"),),
    ),
    Control(
        "two launches fused to one",
        "chain",
        (("if (i < n) y[i] = 2.0f * x[i] * x[i];", "if (i < n) y[i] = x[i] * x[i] + 1.0f;"),),
        plan="launch doubled<<<(n + 255) / 256, 256>>>(x, y, n)",
    ),
    Control(
        "inline assembly where the original has it",
        "assembly",
        (('asm("popc.b32 %0, %1;"', 'asm("{ .reg .b32 t; mov.b32 t, %1; popc.b32 %0, t; }"'),),
        rows=("34",),
    ),
    Control(
        "an intrinsic in place of assembly",
        "assembly",
        (('asm("popc.b32 %0, %1;" : "=r"(v) : "r"(x[i]));', "v = __popc(x[i]);"),),
    ),
    Control(
        "data-dependent work, two steps a turn",
        "collatz",
        (
            (
                "v = v % 2 ? 3 * v + 1 : v / 2, count++;",
                "if (v % 2) v = (3 * v + 1) / 2, count += 2; else v /= 2, count++;",
            ),
        ),
    ),
    Control(
        "histograms by packed counters that cannot overflow",
        "histogram",
        (("atomicAdd(&s[x[i]], 1u);", "{ int b = x[i]; atomicAdd(&s[b], 1u); }"),),
    ),
    Control(
        "a tile with a halo",
        "blur",
        (
            (
                "    if (i >= n) return;\n",
                "    __shared__ float s[258];\n    s[threadIdx.x + 1] = i < n ? x[i] : 0.0f;\n"
                "    if (threadIdx.x == 0) s[0] = i > 0 && i - 1 < n ? x[i - 1] : 0.0f;\n"
                "    if (threadIdx.x == 255) s[257] = i + 1 < n ? x[i + 1] : 0.0f;\n    __syncthreads();\n    if (i >= n) return;\n",
            ),
            (
                "float left = i > 0 ? x[i - 1] : 0.0f, right = i + 1 < n ? x[i + 1] : 0.0f;",
                "float left = s[threadIdx.x], right = s[threadIdx.x + 2];",
            ),
            ("0.5f * x[i]", "0.5f * s[threadIdx.x + 1]"),
        ),
    ),
    Control(
        "bf16 by another formula in float",
        "gelu",
        (("0.5f * v * (1.0f + tanhf(u))", "v / (1.0f + __expf(-2.0f * u))"),),
    ),
    Control(
        "half arithmetic in another order",
        "halves",
        (
            ("for (int k = 64; k > 0; k /= 2) {", "for (int k = 1; k < 128; k *= 2) {"),
            ("if (t < k) s[t] =", "if (t % (2 * k) == 0) s[t] ="),
        ),
    ),
    Control(
        "half precision where the user allows it",
        "bounded",
        (
            ("// cuda-lsp: workload", "#include <cuda_fp16.h>\n// cuda-lsp: workload"),
            (_BODY, "if (i < n) y[i] = __half2float(__float2half(1.5f * x[i] + 0.25f));"),
        ),
        precision=("less",),
        lossy=True,
    ),
    Control(
        "variance in one pass by Welford's update",
        "variance",
        (
            (
                "for (int i = threadIdx.x; i < cols; i += 32) sum += in[i];",
                "for (int i = threadIdx.x; i < cols; i += 32) { float v = in[i]; sum += v; }",
            ),
        ),
    ),
)
