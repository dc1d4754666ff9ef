"""Kernels that race on shared memory and kernels that do not, each with the verdict and the reason for it.

The kernel is ``k(int* a, int* b)`` with ``__shared__ int s[256], w[32]``; its first line is line 1, so the body begins
on line 2. ``t`` is the thread's number in its block; each block has its own part of ``a``, which holds 0, 1, 2, ...,
and of ``b``. Two blocks of 128 threads.
"""

from tests.execution.emulator.global_races import EQUAL, Case

RACE = "race"


def racy(name: str, body: str, why: str, *lines: int, threads: int = 128) -> Case:
    return Case(name, body, why, frozenset({RACE}), tuple(sorted(lines)), 2, threads)


def free(name: str, body: str, why: str, *found: str, threads: int = 128) -> Case:
    return Case(name, body, why, frozenset(found), (), 2, threads)


def named(kind: str, number: int, count: int) -> str:
    return f'asm volatile("bar.{kind} {number}, {count};" ::: "memory");'


SYNC = "__syncthreads();"
WAIT = 'asm volatile("cp.async.wait_all;" ::: "memory");'

TREE = """s[t] = a[t];
FIRST
for (int d = 64; d > LAST; d /= 2) { if (t < d) s[t] += s[t + d];
EACH }
TAIL
if (t == 0) b[0] = s[0];
"""
TAIL = "if (t < 32) for (int d = 16; d > 0; d /= 2) { int v = s[t + d]; IN s[t] += v; OUT }"

SUMS = """int v = a[t];
for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
if (t % 32 == 0) w[t / 32] = v;
FIRST
if (t < 4) { int x = w[t]; for (int d = 2; d > 0; d /= 2) x += __shfl_down_sync(15u, x, d, 4);
if (t == 0) b[0] = x; }
"""

SCAN = """s[t] = a[t];
__syncthreads();
for (int d = 1; d < 128; d *= 2) {
int v = t >= d ? s[t - d] : 0;
MIDDLE
s[t] += v;
END }
b[t] = s[t];
"""

PINGPONG = """int from = 0;
s[t] = a[t];
__syncthreads();
for (int d = 1; d < 128; d *= 2) { int to = 128 - from;
s[to + t] = s[from + t] + (t >= d ? s[from + t - d] : 0);
EACH
from = to; }
b[t] = s[from + t];
"""

TILES = """int sum = 0;
for (int r = 0; r < 3; r++) {
s[t] = a[t] + r;
FIRST
sum += s[(t * 37 + 5) % 128];
SECOND }
b[t] = sum;
"""

HALO = """s[t + 1] = a[t];
if (t == 0) s[0] = -1; if (t == 127) s[129] = -2;
FIRST
b[t] = s[t] + s[t + 1] + s[t + 2];
"""

BROADCAST = """int sum = 0;
for (int r = 0; r < 3; r++) {
if (t == 0) w[0] = a[r] + 7;
__syncthreads();
sum += w[0];
END }
b[t] = sum;
"""

COUNTERS = """if (t < 8) w[t] = 0;
__syncthreads();
COUNT
END
if (t < 8) b[t] = w[t];
"""

COPY = """unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(a + t) : "memory");
WAIT
b[t] = s[PLACE];
"""

STAGES = """int sum = 0; unsigned to = (unsigned)__cvta_generic_to_shared(s + t);
for (int r = 0; r < 4; r++) { if (r < 3) {
asm volatile("cp.async.ca.shared.global [%0], [%1], 4;":: "r"(to + 512 * (r % 2)), "l"(a + (t + r) % 128) : "memory"); }

asm volatile("cp.async.commit_group;" ::: "memory");
asm volatile("cp.async.wait_group LEFT;" ::: "memory");
FIRST
if (r > 0) sum += s[128 * ((r - 1) % 2) + 127 - t];
SECOND }
b[t] = sum;
"""

QUEUE = """if (t == 0) w[0] = 0;
FIRST
if (a[t] % 3 == 0) s[atomicAdd(&w[0], 1)] = a[t];
SECOND
if (t < w[0]) b[t] = s[t];
"""

HANDED = """for (int r = 0; r < 3; r++) {
if (t < 64) { EMPTY
s[t] = a[t] + r;
FULL }
else { TAKE
b[t] += s[t - 64];
GIVE } }
"""

PHASES = """__shared__ unsigned long long bar; unsigned at = (unsigned)__cvta_generic_to_shared(&bar); int done = 0;
if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" :: "r"(at) : "memory");
__syncthreads();
EARLY
asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory");
LATE
while (!done) asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
: "=r"(done) : "r"(at) : "memory");
b[t] = s[127 - t];
"""

CASES = (
    # Reductions
    free(
        "tree",
        TREE.replace("FIRST", SYNC).replace("EACH", SYNC).replace("LAST", "0").replace("TAIL", ""),
        "a barrier before and after each step",
    ),
    racy(
        "tree, values not awaited",
        TREE.replace("FIRST", "").replace("EACH", SYNC).replace("LAST", "0").replace("TAIL", ""),
        "the other half may not have stored its values",
        2,
        4,
    ),
    racy(
        "tree, steps not apart",
        TREE.replace("FIRST", SYNC).replace("EACH", "").replace("LAST", "0").replace("TAIL", ""),
        "a step reads what the one before wrote",
        4,
        4,
    ),
    racy(
        "tree, last warp by hope",
        TREE.replace("FIRST", SYNC)
        .replace("EACH", SYNC)
        .replace("LAST", "16")
        .replace("TAIL", TAIL.replace("IN", "").replace("OUT", "")),
        "lanes of a warp are not in step",
        6,
        6,
    ),
    free(
        "tree, last warp by __syncwarp",
        TREE.replace("FIRST", SYNC)
        .replace("EACH", SYNC)
        .replace("LAST", "16")
        .replace("TAIL", TAIL.replace("IN", "__syncwarp();").replace("OUT", "__syncwarp();")),
        "lanes of one warp meet before and after each store",
    ),
    racy(
        "tree, last warp meets once a step",
        TREE.replace("FIRST", SYNC)
        .replace("EACH", SYNC)
        .replace("LAST", "16")
        .replace("TAIL", TAIL.replace("IN", "").replace("OUT", "__syncwarp();")),
        "a lane may store before its neighbour has read",
        6,
        6,
    ),
    free("sums of warps", SUMS.replace("FIRST", SYNC), "shuffles within warps, a barrier between them"),
    racy("sums of warps without a barrier", SUMS.replace("FIRST", ""), "one warp may not be done", 4, 6),
    racy("sums of warps, warps meet alone", SUMS.replace("FIRST", "__syncwarp();"), "that is for one warp", 4, 6),
    # Scans
    free("scan", SCAN.replace("MIDDLE", SYNC).replace("END", SYNC), "read, barrier, write, barrier"),
    racy("scan, read and written at once", SCAN.replace("MIDDLE", "").replace("END", SYNC), "no barrier between", 5, 7),
    racy("scan, turns not apart", SCAN.replace("MIDDLE", SYNC).replace("END", ""), "the next turn reads it", 5, 7),
    free("scan from one buffer into another", PINGPONG.replace("EACH", SYNC), "one barrier a turn is enough for two"),
    racy("scan between buffers without a barrier", PINGPONG.replace("EACH", ""), "nothing orders the turns", 6, 6),
    # Tiles
    free("tiles", TILES.replace("FIRST", SYNC).replace("SECOND", SYNC), "filled, barrier, used, barrier"),
    racy("tiles, used too early", TILES.replace("FIRST", "").replace("SECOND", SYNC), "not yet filled", 4, 6),
    racy("tiles, filled too early", TILES.replace("FIRST", SYNC).replace("SECOND", ""), "still in use", 4, 6),
    free("halo", HALO.replace("FIRST", SYNC), "the ends are there before anyone reads"),
    racy("halo not awaited", HALO.replace("FIRST", ""), "neighbours may not have stored"),
    racy(
        "stencil in place",
        "s[t] = a[t];\n__syncthreads();\nint v = s[t] + s[(t + 1) % 128];\n\ns[t] = v;\n__syncthreads();\nb[t] = s[t];",
        "a neighbour may have read the new value",
        4,
        6,
    ),
    free(
        "stencil in place, all read first",
        "s[t] = a[t];\n__syncthreads();\nint v = s[t] + s[(t + 1) % 128];\n__syncthreads();\ns[t] = v;\nb[t] = s[t];",
        "a barrier between reading and writing",
    ),
    free(
        "transposed by a padded tile",
        "s[t / 16 * 17 + t % 16] = a[t];\n__syncthreads();\nb[t] = s[t % 8 * 17 + t / 8];",
        "written, barrier, read by another",
    ),
    racy(
        "turned in place",
        "s[t] = a[t];\n__syncthreads();\nint v = s[127 - t];\ns[t] = v;\nb[t] = v;",
        "no barrier",
        4,
        5,
    ),
    # One for all
    free("broadcast, turn by turn", BROADCAST.replace("END", SYNC), "read before it is written again"),
    racy("broadcast, written again too early", BROADCAST.replace("END", ""), "others may still read", 4, 6),
    free(
        "all write one value", "w[0] = a[128];\n__syncthreads();\nb[t] = w[0];", "nobody can tell who was last", EQUAL
    ),
    racy("all write their own", "w[0] = t;\n__syncthreads();\nb[t] = w[0];", "whose value stays is open", 2, 2),
    free(
        "any of them",
        "if (t == 0) w[0] = 0;\n__syncthreads();\nif (a[t] > 90) w[0] = 1;\n__syncthreads();\nb[t] = w[0];",
        "all who write write 1",
        EQUAL,
    ),
    racy(
        "any of them, not reset in time",
        "if (t == 0) w[0] = 0;\nif (a[t] > 90) w[0] = 1;\n__syncthreads();\nb[t] = w[0];",
        "the reset may come last",
        2,
        3,
    ),
    free(
        "leader of a warp",
        "if (t % 32 == 0) w[t / 32] = a[t];\n__syncwarp();\nb[t] = w[t / 32];",
        "one warp, and it met",
    ),
    racy(
        "leader of a warp by hope",
        "if (t % 32 == 0) w[t / 32] = a[t];\n\nb[t] = w[t / 32];",
        "the leader may be late",
        2,
        4,
    ),
    racy(
        "leader of another warp",
        "if (t % 32 == 0) w[t / 32] = a[t];\n__syncwarp();\nb[t] = w[(t / 32 + 1) % 4];",
        "that warp has not met this one",
        2,
        4,
    ),
    # Atomics
    free(
        "counters",
        COUNTERS.replace("COUNT", "atomicAdd(&w[a[t] % 8], 1);").replace("END", SYNC),
        "set, counted and read apart",
    ),
    racy(
        "counters without atomics",
        COUNTERS.replace("COUNT", "w[a[t] % 8] += 1;").replace("END", SYNC),
        "sixteen threads a counter",
        4,
        4,
    ),
    racy(
        "counters read early",
        COUNTERS.replace("COUNT", "atomicAdd(&w[a[t] % 8], 1);").replace("END", ""),
        "others still count",
        4,
        6,
    ),
    free("queue", QUEUE.replace("FIRST", SYNC).replace("SECOND", SYNC), "each has a place of its own"),
    racy("queue read early", QUEUE.replace("FIRST", SYNC).replace("SECOND", ""), "the count still grows"),
    racy(
        "queue not reset in time", QUEUE.replace("FIRST", "").replace("SECOND", SYNC), "the reset may come late", 2, 4
    ),
    # Copies in the background
    free("own copy", COPY.replace("WAIT", WAIT).replace("PLACE", "t"), "who waits for its own copies sees them"),
    racy(
        "others' copies",
        COPY.replace("WAIT", WAIT).replace("PLACE", "127 - t"),
        "a wait is for one's own copies alone",
        3,
        5,
    ),
    free(
        "others' copies behind a barrier",
        COPY.replace("WAIT", WAIT + SYNC).replace("PLACE", "127 - t"),
        "all have waited, and met",
    ),
    free(
        "two stages",
        STAGES.replace("LEFT", "1").replace("FIRST", SYNC).replace("SECOND", SYNC),
        "the older group is there, the newer one goes elsewhere",
    ),
    racy(
        "two stages, not met behind the wait",
        STAGES.replace("LEFT", "1").replace("FIRST", "").replace("SECOND", SYNC),
        "others may not have waited yet",
        4,
        9,
    ),
    # Named barriers
    free(
        "halves with barriers of their own",
        f"s[t] = a[t];\nif (t < 64) {named('sync', 1, 64)} else {named('sync', 2, 64)}\nb[t] = s[t ^ 63];",
        "each half has met, and reads its own",
    ),
    racy(
        "halves that read each other's",
        f"s[t] = a[t];\nif (t < 64) {named('sync', 1, 64)} else {named('sync', 2, 64)}\nb[t] = s[t ^ 64];",
        "the halves have not met",
        2,
        4,
    ),
    racy(
        "a barrier of half the block",
        f"s[t] = a[t];\nif (t < 64) {named('sync', 1, 64)}\nb[t] = s[127 - t];",
        "the other half was not there",
        2,
        4,
    ),
    free(
        "handed over both ways",
        HANDED.replace("EMPTY", f"if (r) {named('sync', 2, 128)}")
        .replace("FULL", named("arrive", 1, 128))
        .replace("TAKE", named("sync", 1, 128))
        .replace("GIVE", f"if (r < 2) {named('arrive', 2, 128)}"),
        "full and empty each have a barrier",
    ),
    racy(
        "handed over one way",
        HANDED.replace("EMPTY", "")
        .replace("FULL", named("arrive", 1, 128))
        .replace("TAKE", named("sync", 1, 128))
        .replace("GIVE", ""),
        "written again while it is read",
        4,
        7,
    ),
    racy(
        "announced, not awaited",
        HANDED.replace("EMPTY", "")
        .replace("FULL", named("sync", 1, 128))
        .replace("TAKE", named("arrive", 1, 128))
        .replace("GIVE", "")
        .replace("r < 3", "r < 1"),
        "who only arrives does not wait",
        4,
        7,
    ),
    # mbarrier
    free("phase", PHASES.replace("EARLY", "s[t] = a[t];").replace("LATE", ""), "all arrive, and wait for that phase"),
    racy(
        "stored after the arrival",
        PHASES.replace("EARLY", "").replace("LATE", "s[t] = a[t];"),
        "an arrival hands on what came before it",
        7,
        10,
    ),
)
