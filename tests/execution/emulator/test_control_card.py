"""What lanes, warps and blocks do together, on a card and in the emulator: same machine code source, same bytes.

Every kernel here gives one result whatever order its threads run in.
"""

import numpy as np
import pytest
from attrs import frozen

from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, Options
from agent.execution.device import Answer, Image, Request
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from tests.execution.emulator.building import launch
from tests.execution.slices import HandSlice

pytestmark = pytest.mark.gpu


@frozen
class Case:
    """Kernel ``k(const unsigned* x, unsigned* y)`` over ``blocks`` x ``threads``, with 16 words of y a thread."""

    name: str
    body: str
    blocks: int = 5
    threads: int = 96
    before: str = ""


CASES = (
    Case(
        "shuffles",
        """unsigned v = x[i], m = ~0u; int b = v % 40, w = 1 << (v / 64 % 5 + 1);
        y[0] = __shfl_sync(m, v, b); y[1] = __shfl_sync(m, v, b, 8); y[2] = __shfl_up_sync(m, v, 3);
        y[3] = __shfl_up_sync(m, v, 5, 16); y[4] = __shfl_down_sync(m, v, 7); y[5] = __shfl_down_sync(m, v, 1, 2);
        y[6] = __shfl_xor_sync(m, v, 21); y[7] = __shfl_xor_sync(m, v, 9, 8); y[8] = __shfl_sync(m, v, (i * 7) & 31, 4);
        unsigned p; asm volatile("{.reg .pred q; shfl.sync.idx.b32 %0|q, %1, %2, 0x1807, -1; @q add.u32 %0, %0, 1;}"
            : "=r"(p) : "r"(v), "r"(b)); y[9] = p;
        asm volatile("{.reg .pred q; shfl.sync.up.b32 %0|q, %1, 3, 0x1000, -1; selp.u32 %0, %0, 77, q;}"
            : "=r"(p) : "r"(v)); y[10] = p; y[11] = w;""",
    ),
    Case(
        "votes, matches and warp reductions",
        """unsigned v = x[i] % 6, m = ~0u; int all;
        y[0] = __ballot_sync(m, v & 1); y[1] = __all_sync(m, v < 6) + 2 * __any_sync(m, v == 5);
        y[2] = __uni_sync(m, v < 3);
        y[3] = __match_any_sync(m, v); y[4] = __match_all_sync(m, v / 6, &all); y[5] = all;
        y[6] = __match_all_sync(m, v, &all); y[7] = all; y[8] = __reduce_add_sync(m, x[i]);
        y[9] = __reduce_min_sync(m, (int)x[i]); y[10] = __reduce_max_sync(m, x[i]); y[11] = __reduce_xor_sync(m, x[i]);
        y[12] = __reduce_and_sync(m, x[i] | 5); y[13] = __reduce_or_sync(m, x[i]);""",
    ),
    Case(
        "part of a warp",
        """unsigned lane = t % 32, v = x[i];
        if (lane < 20) { y[0] = __ballot_sync(0xfffff, v & 4); y[1] = __reduce_add_sync(0xfffff, v);
            if (lane % 3 == 0) { y[2] = __shfl_sync(0x49249, v, 9); y[3] = __match_any_sync(0x49249, v & 3); } }
        else { y[0] = __shfl_xor_sync(0xfff00000, v, 1); y[1] = __all_sync(0xfff00000, v); }
        __syncwarp(); y[4] = __popc(__activemask());""",
    ),
    Case("a last warp that is not full", "y[0] = __popc(__ballot_sync(__activemask(), 1)); y[1] = t / 32;", threads=75),
    Case(
        "barriers that reduce",
        """int v = (int)x[i]; y[0] = __syncthreads_count(v > 0); y[1] = __syncthreads_and(v != 12345);
        y[2] = __syncthreads_or(v % 50 == 0);""",
        threads=200,
    ),
    Case(
        "named barriers",
        """__shared__ unsigned s[64]; if (t < 64) { s[t] = x[i]; asm volatile("bar.arrive 3, 128;" ::: "memory"); }
        else { asm volatile("bar.sync 3, 128;" ::: "memory"); y[0] = s[127 - t]; }""",
        threads=128,
    ),
    Case(
        "atomics",
        """__shared__ unsigned s[8]; if (t < 8) s[t] = t == 4 ? ~0u : 0; __syncthreads(); unsigned v = x[i];
        atomicAdd(s, v); atomicMax(s + 1, v); atomicMax((int*)s + 2, (int)v); atomicXor(s + 3, v); atomicMin(s + 4, v);
        atomicInc(s + 5, 41); atomicOr(s + 6, v & 0xf0f0f); __syncthreads(); y[0] = s[t % 7];
        unsigned mine = atomicAdd(s + 7, 1); y[1] = __reduce_add_sync(~0u, mine >= 96);""",
    ),
    Case(
        "compare and swap in a loop",
        """__shared__ float f; if (t == 0) f = 0; __syncthreads(); float v = (float)(x[i] % 100); int old = 0, seen;
        do { seen = old;
            old = atomicCAS((int*)&f, seen, __float_as_int(__int_as_float(seen) + v)); } while (old != seen);
        __syncthreads(); y[0] = __float_as_int(f);""",
    ),
    Case(
        "a lock",
        """__shared__ int lock, total; if (t == 0) lock = total = 0; __syncthreads(); bool done = false;
        while (!done) { if (atomicCAS(&lock, 0, 1) == 0) { __threadfence_block(); *(volatile int*)&total += 3;
            __threadfence_block(); atomicExch(&lock, 0); done = true; } }
        __syncthreads(); y[0] = total;""",
    ),
    Case(
        "divergent loops and a switch",
        """unsigned v = x[i] % 1000 + 1, n = 0; while (v != 1 && n < 300) { v = v & 1 ? 3 * v + 1 : v / 2;
            if (n == x[i] % 90) break; n++; }
        switch (x[i] % 8) { case 0: n += 5; case 1: n *= 3; break; case 2: n ^= v; break; case 5: n = -n; break;
            case 6: n <<= 2; break; case 7: n = n / 3; default: n++; } y[0] = n; y[1] = v;""",
    ),
    Case(
        "calls, structs and local arrays",
        "Pair p = make(x[i]); y[0] = p.a; y[1] = (unsigned)p.b; y[2] = pick(p, t); y[3] = deep(p, 3);",
        before="""struct Pair { unsigned a; double b; unsigned char c[5]; };
        __device__ __noinline__ Pair make(unsigned v) { Pair p; p.a = v * 3; p.b = v * 0.25;
            for (int k = 0; k < 5; k++) p.c[k] = v >> k; return p; }
        __device__ __noinline__ unsigned pick(Pair p, int k) { if (k % 7 == 0) return 1; return p.c[k % 5] * p.a; }
        __device__ __noinline__ unsigned deep(Pair p, int n) { unsigned s = 0; for (int k = 0; k < n; k++) {
            p.a += pick(p, k); s ^= make(p.a).a; } return s; }
        """,
    ),
    Case(
        "asynchronous copies",
        """__shared__ unsigned s[96 * 4]; unsigned a = (unsigned)__cvta_generic_to_shared(s + t * 4);
        const unsigned* from = x + i / 4 * 4;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(from));
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncthreads(); y[0] = s[(t * 5 + 3) % 384];
        __syncthreads();
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, 4;" :: "r"(a), "l"(from + 2));
        asm volatile("cp.async.wait_all;" ::: "memory"); y[1] = s[t * 4]; y[2] = s[t * 4 + 1];""",
    ),
    Case(
        "widths and special registers",
        """const signed char* c = (const signed char*)x; const short* h = (const short*)x; y[0] = c[i]; y[1] = h[i];
        y[2] = ((const unsigned char*)x)[i] ; y[3] = (unsigned)(((const long long*)x)[i / 2] >> 20);
        unsigned m; asm("mov.u32 %0, %laneid;" : "=r"(m)); y[4] = m;
        asm("mov.u32 %0, %lanemask_lt;" : "=r"(m)); y[5] = m;
        asm("mov.u32 %0, %lanemask_ge;" : "=r"(m)); y[6] = m; asm("mov.u32 %0, %nctaid.x;" : "=r"(m)); y[7] = m;""",
    ),
)


def source(case: Case) -> str:
    return f"""{case.before}
extern "C" __global__ void k(const unsigned* x, unsigned* y) {{
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t; y += i * 16;
    {case.body}
}}"""


def request(case: Case, arch: str, optimised: bool) -> Request:
    options = Options(arch=arch, fmad=False, optimised=optimised)
    built = compile_slice(HandSlice(source(case), ("k",)), options)
    assert isinstance(built, Build), built
    lanes = case.blocks * case.threads
    x = np.random.default_rng(4).integers(0, 2**32, lanes, dtype=np.uint32)
    images = (Image("x", x.nbytes, x.view(np.uint8)), Image("y", lanes * 64, np.zeros(lanes * 64, np.uint8)))
    return Request(built, (launch("k", case.blocks, case.threads, "x", "y"),), images, ("y",))


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_threads_together_do_the_same_on_a_card(case: Case, optimised: bool, card: Gpu) -> None:
    asked = request(case, card.arch, optimised)
    emulated, real = Emulator().run(asked), card.run(asked)
    for answer in (emulated, real):
        assert answer.status == "ok", (answer.message, answer.faults)
    mine, its = _words(emulated), _words(real)
    wrong = np.argwhere(mine != its)
    assert not len(wrong), f"{len(wrong)} differ, first thread {wrong[0][0]}, word {wrong[0][1]}: {mine[wrong[0][0]]}"


def _words(answer: Answer) -> np.ndarray:
    return answer.outputs["y"].view(np.uint32).reshape(-1, 16)
