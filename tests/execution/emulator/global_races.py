"""Kernels that race on global memory and kernels that do not, each with the verdict and the reason for it.

The kernel is ``k(int* a, int* b, unsigned* n)``; its first line is line 1, so the body begins on line 2. ``i`` is the
thread's number in the grid, ``t`` in its block, ``g`` the block's number. ``a`` and ``b`` hold 0, 1, 2, ..., ``n``
zeros. Two blocks of 64 threads where nothing else is said.
"""

from attrs import frozen

RACE, EQUAL, POLLED, TESTED, OUTDATED = "race", "equal", "polled", "tested", "outdated"
UNFENCED = "unfenced"


@frozen
class Case:
    """``found``: the classes that must be reported, no others. ``lines``: both lines of the first report of the first
    class, in any order (empty: not asked)."""

    name: str
    body: str
    why: str
    found: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    blocks: int = 2
    threads: int = 64


def racy(name: str, body: str, why: str, *lines: int, blocks: int = 2, threads: int = 64) -> Case:
    return Case(name, body, why, frozenset({RACE}), tuple(sorted(lines)), blocks, threads)


def free(name: str, body: str, why: str, *found: str, blocks: int = 2, threads: int = 64) -> Case:
    return Case(name, body, why, frozenset(found), (), blocks, threads)


GRID_BARRIER = """__syncthreads();
if (t == 0) {
    __threadfence();
    atomicAdd(&n[ROUND], 1u);
    while (*(volatile unsigned*)&n[ROUND] < gridDim.x) {}
    __threadfence();
}
__syncthreads();
"""

LAST_BLOCK = """__shared__ bool last;
if (t == 0) {
    b[g] = i + 9;
    FENCE
    last = atomicInc(n, gridDim.x) == gridDim.x - 1;
}
__syncthreads();
if (last && t == 0) { int s = 0; for (int j = 0; j < gridDim.x; j++) s += READ; a[0] = s; }
"""

LOOK_BACK = """volatile unsigned* flag = n;
if (t == 0) {
    int before = 0;
    if (g > 0) {
        while (flag[g - 1] == 0) {}
        FENCE2
        before = b[g - 1];
    }
    b[g] = before + g + 1;
    FENCE1
    flag[g] = 1;
}
"""

LOCK = """if (t == 0) {
    while (atomicCAS(n, 0u, 1u) != 0u) {}
    TAKEN
    a[0] = a[0] * 3 + g + 1;
    FENCE
    atomicExch(n, 0u);
}
"""

WARPS = """if (i == 0) { a[3] = 77;
FENCE
atomicExch(n, 1u); }
if (WHO) { while (atomicAdd(n, 0u) == 0u) {} b[1] = a[3]; }
"""

CHAIN = """if (i == 0) { a[3] = 77; FIRST atomicExch(n, 1u); }
if (i == 32) { while (atomicAdd(n, 0u) != 1u) {} SECOND atomicExch(n, 2u); }
if (i == 64) { while (atomicAdd(n, 0u) != 2u) {} b[1] = a[3]; }
"""

CASES = (
    # Who touches what, without anything that orders
    free("each its own", "a[i] = b[i];", "every thread writes its own element"),
    racy("neighbour write", "a[i + 1] = i;\na[i] = 7;", "thread i + 1 writes what thread i wrote", 2, 3),
    racy("neighbour read", "b[i] = a[i + 1];\na[i] = 0;", "thread i reads what thread i + 1 writes", 2, 3),
    free("neighbour read of what nobody writes", "b[i] = a[i + 1] + a[i] + a[i ^ 5];", "a is only read"),
    racy(
        "stencil in place",
        "int v = a[i] + a[i + 1] + a[(i + 127) % 128];\na[i] = v;",
        "a neighbour may have written already",
        2,
        3,
    ),
    racy(
        "stencil in place, one warp",
        "a[t] = a[t] + a[(t + 1) % 32];",
        "lanes of a warp are not in step",
        2,
        2,
        blocks=1,
        threads=32,
    ),
    free("stencil into another buffer", "if (i > 0) b[i] = a[i - 1] + 2 * a[i] + a[i + 1];", "a is only read"),
    racy("across blocks by index", "a[t] = i;", "thread t of both blocks, different values", 2, 2),
    free("same value across blocks", "a[t] = 5 * t + 1;", "thread t of both blocks writes one value", EQUAL),
    free("disjoint by parity", "if (g == 0) a[2 * t] = t; else a[2 * t + 1] = b[t];", "even and odd elements"),
    free("permutation", "a[(i * 37) % 128] = i;", "37 has no factor in common with 128: no two alike"),
    racy("not quite a permutation", "a[(i * 36) % 128] = i;", "36 and 128 share 4: four threads an element", 2, 2),
    free(
        "scattered by an index that was read",
        "a[b[127 - i]] = i;",
        "b holds a permutation, so targets differ",
    ),
    racy(
        "the same value, which its owner then changes",
        "a[i] = i + 7;\na[(i + 1) % 128] = (i + 1) % 128 + 7;\nb[i] = a[i];\na[i] = b[i] + 1;",
        "the neighbour's write may come last and undo the owner's",
        3,
        5,
    ),
    # Histograms and flags
    racy("histogram without atomics", "n[i % 8] += 1;", "read and written by sixteen threads", 2, 2),
    free("histogram", "atomicAdd(&n[i % 8], 1u);", "atomics do not race with each other"),
    racy(
        "histogram read at the end",
        "atomicAdd(&n[i % 8], 1u);\nif (t < 8) a[i] = n[t];",
        "another block may still be adding",
        2,
        3,
    ),
    free(
        "histogram of a block, read after a barrier",
        "atomicAdd(&n[i % 8], 1u);\n__syncthreads();\nif (t < 8) a[t] = n[t];",
        "one block, and the barrier orders all of it",
        blocks=1,
    ),
    racy("sum reset inside the launch", "if (i == 0) n[0] = 1;\natomicAdd(n, 1u);", "nobody waits for the reset", 2, 3),
    free("changed = 1", "if (b[i] > 3) n[0] = 1;", "all write the same constant", EQUAL),
    free(
        "changed = 1 once",
        "if (b[i] > 3 && n[0] == 0) n[0] = 1;",
        "asks before it writes the constant: who is late writes what is there",
        EQUAL,
        TESTED,
    ),
    free(
        "levels of a search",
        "for (int j = 0; j < 4; j++) { int v = (i * 7 + j * j) % 64;\nif (a[64 + v] == 64 + v) a[64 + v] = 1; }",
        "all that find an unvisited vertex write one level",
        EQUAL,
        TESTED,
    ),
    free(
        "worth an atomic maximum?",
        "if (b[i] > a[3]) atomicMax(&a[3], b[i]);",
        "an old answer costs an atomic, or nothing",
        OUTDATED,
    ),
    free("idempotent write", "a[t % 4] = t % 4;\nb[i] = a[3 - t % 4];", "a holds that already", EQUAL),
    racy(
        "relaxed distances",
        "int v = (i * 5 + 1) % 128;\nif (a[i] + 1 < a[v]) a[v] = a[i] + 1;",
        "a value that another may lower is passed on",
        3,
        3,
    ),
    # Within a block
    racy("no barrier", "a[i] = t;\nb[i] = a[64 * g + 63 - t];", "the other half of the block wrote it", 2, 3),
    free("barrier", "a[i] = t;\n__syncthreads();\nb[i] = a[64 * g + 63 - t];", "the barrier orders the block"),
    racy(
        "barrier, but of another block",
        "a[i] = t;\n__syncthreads();\nb[i] = a[127 - i];",
        "a barrier orders nothing between blocks",
        2,
        4,
    ),
    racy(
        "barrier in one block only",
        "a[i] = t;\nif (g == 0) __syncthreads();\nb[i] = a[64 * g + 63 - t];",
        "block 1 has none",
        2,
        4,
    ),
    free(
        "turned in place",
        "int v = a[64 * g + 63 - t];\n__syncthreads();\na[i] = v;",
        "all of the block have read before one writes",
    ),
    racy(
        "turned in place without a barrier",
        "int v = a[64 * g + 63 - t];\na[i] = v;",
        "a warp may write before another has read",
        2,
        3,
    ),
    free(
        "warp in step by __syncwarp",
        "a[i] = t;\n__syncwarp();\nb[i] = a[i ^ 31];",
        "lanes of one warp, ordered by __syncwarp",
    ),
    racy("warp in step by hope", "a[i] = t;\nb[i] = a[i ^ 31];", "nothing orders the lanes of a warp", 2, 3),
    racy(
        "half a warp in step",
        "a[i] = t;\n__syncwarp(t % 32 < 16 ? 0xffff : 0xffff0000);\nb[i] = a[i ^ 31];",
        "the two halves have not met",
        2,
        4,
    ),
    racy(
        "a shuffle orders no memory",
        "a[i] = t;\nint z = __shfl_xor_sync(~0u, t, 1);\nb[i] = a[i ^ 31] + z;",
        "the guide promises no memory ordering for shuffles",
        2,
        4,
    ),
    free(
        "named barrier",
        'a[i] = t;\nasm volatile("bar.sync 1, 64;" ::: "memory");\nb[i] = a[i ^ 63];',
        "all 64 threads pass barrier 1",
    ),
    free(
        "double buffer",
        "int* from = a + 128 * g;\nint* to = b + 128 * g;\nfor (int r = 0; r < 4; r++) {\n"
        "to[t] = from[t] + from[(t + 1) % 64];\n__syncthreads();\nint* s = from; from = to; to = s; }",
        "one barrier a round: what is read was written before it, what is written was read before it",
    ),
    racy(
        "single buffer",
        "int* own = a + 128 * g;\nfor (int r = 0; r < 4; r++) {\n"
        "int v = own[t] + own[(t + 1) % 64];\n\nown[t] = v;\n__syncthreads(); }",
        "read and written with no barrier between",
        4,
        6,
    ),
    # Bytes
    free("bytes of one word", "((char*)a)[i] = t + 100;", "four threads write four bytes of a word"),
    racy("bytes twice", "((char*)a)[i / 2] = t;", "two threads write each byte", 2, 2),
    free("halves of one word", "((short*)a)[i] = t + 100;", "two threads write the halves of a word"),
    racy(
        "byte and word",
        "if (g == 0) a[t] = 0x01020304; else ((char*)a)[4 * t + 2] = 9;",
        "the byte is part of the word",
        2,
        2,
    ),
    racy(
        "vectors overlap",
        "if (g == 0) ((int4*)a)[t] = make_int4(i, 1, 2, 3);\nelse ((int2*)a)[t] = make_int2(5, i + 6);",
        "the first 16 threads' four are pairs of others",
        2,
        3,
    ),
    free("vectors side by side", "((int4*)a)[i] = make_int4(i, t, g, 3);", "sixteen bytes each"),
    # Between blocks
    free("last block", LAST_BLOCK.replace("FENCE", "__threadfence();").replace("READ", "b[j]"), "fence, then ticket"),
    racy(
        "last block without a fence",
        LAST_BLOCK.replace("FENCE", "").replace("READ", "b[j]"),
        "the ticket may be drawn before the sum is there",
        4,
        9,
    ),
    racy(
        "last block with a fence of block scope",
        LAST_BLOCK.replace("FENCE", "__threadfence_block();").replace("READ", "b[j]"),
        "the fence is for the block alone",
        4,
        9,
    ),
    racy(
        "last block, volatile but without a fence",
        LAST_BLOCK.replace("FENCE", "")
        .replace("READ", "v[j]")
        .replace("b[g] = i", "v[g] = i")
        .replace("__shared__", "volatile int* v = b; __shared__"),
        "volatile orders nothing between threads",
        4,
        9,
    ),
    free(
        "last block, all threads write",
        "__shared__ bool last;\na[i] = i + 1;\n__threadfence();\n__syncthreads();\n"
        "if (t == 0) last = atomicAdd(n, 1u) == gridDim.x - 1;\n__syncthreads();\nif (last) b[t] = a[t] + a[127 - t];",
        "each thread has passed a fence before the barrier, the ticket comes after it",
    ),
    racy(
        "last block, all threads write, one fences too early",
        "__shared__ bool last;\na[i] = i + 1;\nif (t == 0) { __threadfence();\n"
        "last = atomicAdd(n, 1u) == gridDim.x - 1; }\n__syncthreads();\nif (last) b[t] = a[t] + a[127 - t];",
        "thread 0 speaks for itself: the others may not have written yet",
        3,
        7,
    ),
    free(
        "sum over blocks through scratch, barrier then fence",
        "__shared__ bool last;\na[i] = i + 1;\n__syncthreads();\n"
        "if (t == 0) { int s = 0; for (int j = 0; j < 64; j++)\ns += a[64 * g + j];\n"
        "b[g] = s; __threadfence(); last = atomicAdd(n, 1u) == gridDim.x - 1; }\n"
        "__syncthreads();\nif (last && t == 0) b[100] = b[0] + b[1] + b[2] + b[3];",
        "the fence of thread 0 comes after all that it hands over",
        blocks=4,
    ),
    free(
        "look-back",
        LOOK_BACK.replace("FENCE1", "__threadfence();").replace("FENCE2", "__threadfence();"),
        "fence before the flag and after it",
        blocks=4,
    ),
    racy(
        "look-back, no fence before the flag",
        LOOK_BACK.replace("FENCE1", "").replace("FENCE2", "__threadfence();"),
        "the flag may be seen before the sum",
        8,
        10,
        blocks=4,
    ),
    racy(
        "look-back, no fence after the flag",
        LOOK_BACK.replace("FENCE1", "__threadfence();").replace("FENCE2", ""),
        "the sum may be read before the flag",
        8,
        10,
        blocks=4,
    ),
    free(
        "look-back by acquire and release",
        "if (t == 0) { unsigned f; int before = 0;\nif (g > 0) {\n"
        'do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(f) : "l"(n + g - 1) : "memory");'
        " while (f == 0);\n"
        "before = b[g - 1]; }\nb[g] = before + g + 1;\n"
        'asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(n + g), "r"(1) : "memory"); }',
        "that is what they are for",
        blocks=4,
    ),
    racy(
        "look-back by relaxed",
        "if (t == 0) { unsigned f; int before = 0;\nif (g > 0) {\n"
        'do asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(f) : "l"(n + g - 1) : "memory");'
        " while (f == 0);\n"
        "before = b[g - 1]; }\nb[g] = before + g + 1;\n"
        'asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(n + g), "r"(1) : "memory"); }',
        "relaxed accesses order nothing but themselves",
        5,
        6,
        blocks=4,
    ),
    free(
        "plain flag that is polled",
        "if (t == 0) { if (g > 0) { while (((volatile unsigned*)n)[g - 1] == 0) {}\n__threadfence(); }\n"
        "int v = g ? b[g - 1] : 0;\nb[g] = v + 1;\n__threadfence();\nn[g] = 1; }",
        "only the flag itself is written without volatile",
        POLLED,
        blocks=4,
    ),
    free(
        "lock",
        LOCK.replace("FENCE", "__threadfence();").replace("TAKEN", "__threadfence();"),
        "one at a time, a fence behind the lock and one before it opens",
        blocks=4,
    ),
    free(
        "lock, no fence behind it",
        LOCK.replace("FENCE", "__threadfence();").replace("TAKEN", ""),
        "what is read may come from a cache: works where nobody has read it before",
        UNFENCED,
        blocks=4,
    ),
    free(
        "lock, a fence of block scope behind it",
        LOCK.replace("FENCE", "__threadfence();").replace("TAKEN", "__threadfence_block();"),
        "that fence is for the block alone",
        UNFENCED,
        blocks=4,
    ),
    free(
        "lock, taken for the block",
        "if (t == 0) while (atomicCAS(n, 0u, 1u) != 0u) {}\n__syncthreads();\na[t] = a[t] * 3 + g + 1;\n"
        "__syncthreads();\nif (t == 0) { __threadfence(); atomicExch(n, 0u); }",
        "the barrier behind the lock orders as a fence does",
        blocks=4,
    ),
    racy(
        "lock without a fence",
        LOCK.replace("FENCE", "").replace("TAKEN", ""),
        "the lock may open before what it guards is written",
        5,
        5,
        blocks=4,
    ),
    # Scopes
    free(
        "flag of a block, fence of block scope",
        WARPS.replace("FENCE", "__threadfence_block();").replace("WHO", "i == 32"),
        "writer and reader are of one block",
    ),
    racy(
        "flag for another block, fence of block scope",
        WARPS.replace("FENCE", "__threadfence_block();").replace("WHO", "i == 64"),
        "the fence is for the block alone",
        2,
        5,
    ),
    racy(
        "flag of a block without a fence",
        WARPS.replace("FENCE", "").replace("WHO", "i == 32"),
        "the flag may come first",
        2,
        5,
    ),
    free(
        "lock of a block",
        "if (g == 0 && t % 32 == 0) {\nwhile (atomicCAS_block(n, 0u, 1u) != 0u) {}\n__threadfence_block();\n"
        "a[0] = a[0] * 3 + t + 1;\n__threadfence_block();\natomicExch_block(n, 0u); }",
        "all is of block scope, and so are all who take it",
    ),
    racy(
        "lock of a block, shared by blocks",
        "if (t == 0) {\nwhile (atomicCAS_block(n, 0u, 1u) != 0u) {}\n__threadfence();\n"
        "a[0] = a[0] * 3 + t + 1;\n__threadfence();\natomicExch_block(n, 0u); }",
        "atomics of block scope are no atomics for another block",
    ),
    free("counter of a block", "atomicAdd_block(&n[g], 1u);", "each block has its own"),
    racy(
        "counter of a block, shared by blocks", "atomicAdd_block(&n[0], 1u);", "of block scope, from two blocks", 2, 2
    ),
    racy(
        "counter of block and of device scope",
        "if (g == 0) atomicAdd_block(n, 1u); else\natomicAdd(n, 1u);",
        "one of the two is no atomic for the other",
        2,
        3,
    ),
    free("counter of the system", "atomicAdd_system(n, 1u);", "wider than the device"),
    free(
        "handed on by a neighbour",
        CHAIN.replace("FIRST", "__threadfence_block();").replace("SECOND", "__threadfence();"),
        "within the block, and then, by who has seen it, to the other block",
    ),
    racy(
        "handed on by a neighbour who fences for the block alone",
        CHAIN.replace("FIRST", "__threadfence_block();").replace("SECOND", "__threadfence_block();"),
        "nothing leaves the block",
    ),
    free(
        "grid barrier",
        "a[i] = i + 1;\n" + GRID_BARRIER.replace("ROUND", "0") + "b[i] = a[255 - i];",
        "all blocks arrive before one goes on",
        blocks=4,
    ),
    racy(
        "no grid barrier",
        "a[i] = i + 1;\n__threadfence();\n__syncthreads();\nb[i] = a[255 - i];",
        "fences alone order nothing",
        2,
        5,
        blocks=4,
    ),
    racy(
        "grid barrier without a block barrier before it",
        "a[i] = i + 1;\n"
        + GRID_BARRIER.replace("ROUND", "0").replace("__syncthreads();\nif", "if")
        + "b[i] = a[255 - i];",
        "thread 0 may speak before others of its block have written",
        2,
        10,
        blocks=4,
    ),
    free(
        "time steps with a grid barrier each",
        "int *from = a, *to = b;\nfor (int r = 0; r < 3; r++) {\nto[i] = from[i] + from[(i + 1) % 256];\n"
        + GRID_BARRIER.replace("ROUND", "r")
        + "int* s = from; from = to; to = s; }",
        "as with a double buffer inside a block",
        blocks=4,
    ),
    racy(
        "time steps without a grid barrier",
        "int *from = a, *to = b;\nfor (int r = 0; r < 3; r++) {\nto[i] = from[i] + from[(i + 1) % 256];\n"
        "__syncthreads();\nint* s = from; from = to; to = s; }",
        "the block next door may be a step behind",
        4,
        4,
        blocks=4,
    ),
)
