"""Locks and turns that a store hands on and an atomic takes: the cases of ``global_races`` where an ``atomicExch`` did.

For the kernel and its names see there.
"""

from tests.execution.emulator.global_races import LOCK, UNFENCED, WARPS, Case, free, racy

FENCE, OPEN = "__threadfence();", "atomicExch(n, 0u);"
VOLATILE = "*(volatile unsigned*)n = 0u;"
RELEASE = 'asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(n), "r"(0) : "memory");'
RELAXED = RELEASE.replace("release", "relaxed")

TURN = """if (t == 0) {
    while (atomicAdd(n, 0u) != g) {}
    a[0] = a[0] * 3 + g + 1;
    FENCE
    *(volatile unsigned*)n = g + 1;
}
"""

ALL_WRITE = """a[i] = i + 1;
FIRST __syncthreads();
if (i == 0) { SECOND *(volatile unsigned*)n = 1u; }
if (i == 64) { while (atomicAdd(n, 0u) == 0u) {} b[1] = a[3]; }
"""


def lock(opened: str, fence: str = FENCE, taken: str = FENCE) -> str:
    return LOCK.replace("FENCE", fence).replace("TAKEN", taken).replace(OPEN, opened)


def flag(fence: str, who: str, raised: str = "*(volatile unsigned*)n = 1u;") -> str:
    return WARPS.replace("FENCE", fence).replace("WHO", who).replace("atomicExch(n, 1u);", raised)


STORES: tuple[Case, ...] = (
    free("lock opened by a volatile store", lock(VOLATILE), "the fence before the store releases", blocks=4),
    free("lock opened by a relaxed store", lock(RELAXED), "the fence before the store releases", blocks=4),
    free("lock opened by a release", lock(RELEASE), "that is what it is for", blocks=4),
    free("lock opened by a release alone", lock(RELEASE, fence=""), "it is its own fence", blocks=4),
    racy("lock opened by a volatile store, no fence", lock(VOLATILE, fence=""), "volatile is no fence", 5, 5, blocks=4),
    racy("lock opened by a relaxed store, no fence", lock(RELAXED, fence=""), "relaxed is no fence", 5, 5, blocks=4),
    racy(
        "lock opened by a volatile store, fence of block scope",
        lock(VOLATILE, fence="__threadfence_block();"),
        "that fence is for the block alone",
        5,
        5,
        blocks=4,
    ),
    free(
        "lock opened by a volatile store, no fence behind it",
        lock(VOLATILE, taken=""),
        "what is read may come from a cache",
        UNFENCED,
        blocks=4,
    ),
    free(
        "lock opened by a release, no fence behind it",
        lock(RELEASE, taken=""),
        "what is read may come from a cache",
        UNFENCED,
        blocks=4,
    ),
    free(
        "lock opened by a volatile store for the block",
        "if (t == 0) while (atomicCAS(n, 0u, 1u) != 0u) {}\n__syncthreads();\na[t] = a[t] * 3 + g + 1;\n"
        "__threadfence();\n__syncthreads();\nif (t == 0) *(volatile unsigned*)n = 0u;",
        "each has passed a fence, the barrier hands that to who opens",
        blocks=4,
    ),
    free("turn", TURN.replace("FENCE", FENCE), "each waits for its turn, and fences before it gives that up", blocks=4),
    racy("turn without a fence", TURN.replace("FENCE", ""), "the turn may come before the value", 4, 4, blocks=4),
    free("flag stored, then seen by an atomic", flag(FENCE, "i == 64"), "a fence, then the flag"),
    racy("flag stored without a fence", flag("", "i == 64"), "the flag may come first", 2, 5),
    racy(
        "flag stored before the fence",
        flag("", "i == 64", "*(volatile unsigned*)n = 1u; __threadfence();"),
        "that fence comes too late",
        2,
        5,
    ),
    free("flag stored for the block", flag("__threadfence_block();", "i == 32"), "writer and reader are of one block"),
    racy(
        "flag stored for another block", flag("__threadfence_block();", "i == 64"), "the fence is for the block", 2, 5
    ),
    free(
        "flag stored, then handed on by an atomic that only looks",
        "if (i == 0) { a[3] = 77; __threadfence(); *(volatile unsigned*)n = 1u; }\n"
        "if (i >= 64) { while (atomicAdd(n, 0u) == 0u) {} b[i] = a[3]; }",
        "whose atomic comes second finds another's, which had found the store",
        blocks=4,
    ),
    free(
        "flag stored for all of a block",
        ALL_WRITE.replace("FIRST", FENCE).replace("SECOND", ""),
        "a fence by each, the barrier, then the flag by one",
    ),
    racy(
        "flag stored for all of a block without a fence",
        ALL_WRITE.replace("FIRST", "").replace("SECOND", ""),
        "none has passed a fence",
        2,
        5,
    ),
)
