"""The emulator's page of documentation, made by asking it what it runs:
``python -m agent.execution.emulator.pages > docs/emulator.md``."""

import sys
import textwrap

from agent.execution.emulator.coverage import ISA, forms, refused, runs

_TOP = """# The emulator

It runs the PTX that NVRTC makes of a kernel, on the CPU, every lane of every block, and watches. No GPU is needed. What
it does not know it refuses, by name, and the verdict lists that as not checked: it never guesses.

This page is made by asking it (`python -m agent.execution.emulator.pages > docs/emulator.md`).

## What it sees

Each access out of bounds, misaligned, through a null pointer, of bytes that nothing has written, or to constant memory;
races on shared and on global memory; barriers that threads of a block reach at different places, and those that nobody
leaves; shuffles from lanes that take no part; instructions of a whole warp with lanes missing; an `mbarrier` that was
not initialised, gets more arrivals than it expects, or is waited for when nobody is left to end its phase; bulk copies
whose addresses or size are no multiples of 16 bytes; shared memory of a block of the cluster that has ended, or that
nothing keeps from ending before it is used. Each report has the source line, block, thread, and the other party.

Of races: a barrier of the block orders its threads, one that counts only some of them those who wait after those who
arrived, `__syncwarp` those of a warp, an `mbarrier` those who wait after those who arrived (and what their warps did
before they last met), the barrier of a cluster the threads of its blocks, in shared and in global memory (who arrives
`.relaxed` hands on what came before a fence). In global memory a fence followed by a flag or an atomic orders what it
is wide enough for: of block scope, the threads of a block. So do atomics: of block scope, they are none for another
block. A shuffle, a vote or a matrix product orders nothing. `ldmatrix` reads a row as the lane that gives its address.
A flag orders no accesses to shared memory: what is handed over there by a flag alone shows as a race.

Told, and no faults by themselves, as programs have them that work: writes of equal values, values that are tested while
others write them, flags that are polled, a lock that a compare-and-swap takes with no fence behind it, and threads that
leave the kernel before a barrier that their warp comes to. Who came to a barrier before and leaves while others come
again is a fault. How that compares with what others say of their kernels: [labelled.md](labelled.md).

Copies by `cp.async` are written when they are waited for, or when their barrier hears of them. A bulk copy into shared
memory is read when it is issued, and written when somebody looks whether the phase of its barrier is over: who does not
wait sees what was there before, and races with the thread that asked for the copy. One to global memory is made when
its thread waits for its group: who changes the source before changes what is copied. A block that ends with a copy into
its memory under way is reported, one with a copy out of it told. A fence between proxies has nothing left to do here,
and a missing one is not seen.

## To the bit, and within error

What PTX defines to the bit is exact to the bit. Where it does not, a card and the emulator agree within error only, and
an answer names the instructions (`Answer.inexact`):

- functions named `.approx` and quotients named `.full`: computed in float64 here and rounded once; a card stays within
  the largest error that the PTX ISA gives for each;
- matrix products of floats (`mma`, `wmma`): products are exact, sums are made in float64, along K from zero on, the
  accumulator last, and rounded once: to the same bits on every machine, and in both back ends. PTX leaves the order
  and the bits of a card's sums open. The two differ by at most (K + 2) * 2^-23 times the sum of the magnitudes of the
  products and the accumulator; by one rounding to f16 more where the accumulator is f16; in f64 by (K + 1) * 2^-53;
- sums of floats by atomics: lanes go in order here, in any order on a card.

The layout of `wmma` fragments, which PTX leaves open, is that of `mma` (as on cards from sm_80 on).

## The float64 shadow

On request (`Request.shadow`; off, it costs nothing) a float64 runs beside every float, half and bf16, in registers and
in shared, local and global memory: what the number would be had nothing been rounded. The program itself goes on as
ever, bit for bit. An answer then says what each output would be, how large errors are on each source line, and where
threads parted. It takes about five times as long.

- *Arithmetic*: `add` to `tanh`, approximate ones too, minima, clamping, fused sums, packed pairs, conversions between
  formats and from whole numbers, matrix products (`mma`, `wmma`) and sums by atomics are made in float64, from the
  operands' shadows. A function of the library is a program of its own: what its polynomial is off by (a unit or two of
  a float) is part of it, as is what a literal was rounded to.
- *Moved with the value*: moves, packs and unpacks, vector loads and stores, shuffles, `ldmatrix` and its kin, `prmt`,
  shifts and fields by 16 bits, `cp.async`, exchanges, compare-and-swap and minima of a float's bits by atomics. A
  number whose bits come out of whole-number arithmetic with the same digits, but another sign or exponent (`ldexp`,
  the reductions inside `logf`), is scaled alike. In memory a shadow belongs to the bits that it was stored with:
  whatever writes without it (a bulk copy, the host) leaves a value that is its own shadow.
- *Whole numbers and predicates* are computed a second time from what they would have been, so that rounding to a whole
  number, exponents and comparisons come out as in float64. A sum with 2^23 or about 1.5 * 2^23 is known as a way to
  round to a whole number, and taken as the program has it.
- *Lost*: what else is computed from the bits of a float (hashes, `rsqrt` by shifting) is the program's value, marked
  as lost where it would be another one.
- *Parted*: where a branch, or an address, would be another one, the thread cannot be followed: what it writes from
  there on is marked, and no error. A choice (`selp`) takes float64's side; it is marked where the two sides are
  further apart than they are wrong, so that a maximum or a clamp is not.
- *Doubles* carry what floats brought, and have nothing finer beside them: a kernel of doubles has no errors here.
- A compensated sum (Kahan) is right in the end, and the line of its compensation all error: that is what it is made of.

## Textures and surfaces

A texture or surface object is a view of a buffer ([workload.md](workload.md#textures-and-surfaces)). What a fetch gives
is told by the CUDA C++ Programming Guide, "Texture Fetching": nearest and linear filters, the four address modes,
normalised coordinates, whole numbers of 8 and 16 bits read as floats, layers, `tex1Dfetch` of linear memory, `tex2D` of
rows with a pitch, gathers. Texels are one, two or four channels of 8, 16 or 32 bits. Reading beyond an edge is no
fault: the address mode says what is read, and of linear memory zeros. A surface traps there (a fault), clamps or gives
zeros, as its instruction says.

- Weights of the filter have 8 bits of fraction, rounded to nearest; sums are made in float64 and rounded once. A card's
  sums are its own: the two differ by at most a few units of the weights' last bit, 1/256 of how far the texels are
  apart along each axis. Fetches of floats count as inexact (`Answer.inexact`).
- What the guide leaves open: a coordinate that is no number is 0 here, channels that a texture has not are 0, a layer
  beyond the last is the last. An H200 does the same. It rounds otherwise right between two weights of the filter, and
  where a surface is clamped it clamps each channel by itself: beyond the last texel every channel is the last one of
  that texel there, and the texel as it is here.
- An object that does not suit the instruction (other dimensions, whole numbers read as floats, `tex1D` of linear
  memory) is refused by name, as a card gives something for it that nobody has written down.
- A texture sees its buffer as it is. A card has copied an array before the launch, and keeps what it has read: where a
  launch writes what it reads as a texture, that shows as a race.
- A fetch counts as one request, with the sectors of its first texel as if rows lay one behind the other; arrays lie in
  another order on a card, and have a cache of their own there.
- In the float64 shadow a filtered value is what the place without rounding would give, with weights that are not
  rounded; where another texel would be the nearest, it is marked as parted. Of whole numbers, fetches by index and
  gathers a value is its own shadow; of surfaces it goes with the bits.
- Launches with textures run in NumPy.

Refused: texture references (which no compiler since CUDA 12 accepts: use objects), mipmaps (`.level`, `.grad`), cube
maps, textures with several samples, whether texels are resident, `sured`, stores to a surface with a conversion.

## How far that reaches

Of 791 kernels of HeCBench and NVIDIA's CUDA samples (files in random order, at most three kernels of each, sliced and
compiled for sm_90) 752 had no instruction that was refused before textures and surfaces came to run. 38 of the others
read these, and one allocates memory on the device. Of 143 of them, unoptimised as the memory gate compiles them, 130:
the others for the same two reasons.

## Two back ends

Both stand on one table of semantics. NumPy runs each instruction for the lanes of many blocks at once. Long launches
run as machine code instead, thread by thread from barrier to barrier, blocks on all cores: the rules of the table are
run once on a symbolic lane and write down LLVM instructions. An answer names the kernels that ran so
(`Answer.compiled`).

Compiled code checks every access and notes, for all memory that threads share, who touched it last. Where an access is
not sound, two threads meet with no barrier of their block between, or the limit of thread-instructions is reached, all
that the launch has changed is put back, and NumPy runs it and reports. So the answer is the same, to the last bit and
the last fault. Where no two threads meet, their order makes no difference; of atomics only those run compiled that
commute and whose result nobody reads.

A launch is compiled from an estimated 100 million thread-instructions on (each loop counted as 16 turns, whatever it
does), with the code at hand from one million on; and one that is small but runs again and again, once NumPy has worked
as long on it as compiling takes (12,000 instructions, and 160 for each that the kernel has).

Of products of tiles, `mma.sync` of f16, bf16 and tf32 with sums in f32 is among what has a compiled form, with
`ldmatrix`, and so are copies by `cp.async` in groups. Left to NumPy are:
other products and `wmma`, `stmatrix`, bulk copies, `mbarrier`, clusters, barriers that count or reduce, atomics that
somebody looks at or that add floats, instructions whose rule has no form for one lane (rounding of f64 other than to
nearest, conversions of f64 to halves), buffers too large to be made whole, and whatever is counted, shadowed or probed.
Without `llvmlite` NumPy runs everything.

Measured by `python -m tests.benchmarks emulator` on 2 x AMD EPYC (2026-11-30, other light work beside it), in million
thread-instructions per second: of processor time (compiled: times two cores), and for compiled code by the clock;
compiling left out, which took 0.2 to 0.3 s a kernel:

| | NumPy | compiled | compiled, by the clock |
|---|---|---|---|
| naive 256^3 matrix product, unchecked | 912 | 2690 | 2199 |
| the same, all checks | 862 | 2800 | 2572 |
| tiled 256^3 matrix product, unchecked | 811 | 1820 | 1460 |
| the same, all checks | 712 | 1529 | 1400 |
| sparse product with rows of 1 to 40, unchecked | 369 | 2321 | 1213 |
| the same, all checks | 361 | 2157 | 1144 |
| the same with four times the threads | 259 | 2027 | 1281 |

## Launches

A launch is cooperative where the kernel asks for it (`this_grid().sync()`); with blocks left out, as in samples of
large launches, that barrier is refused. Blocks form clusters where the kernel asks for them (`__cluster_dims__`, 8 at
most): they run side by side, and of samples the clusters are run as a whole. A launch cannot ask for clusters by an
attribute: there a cluster is one block. A float64 shadow in clusters is refused, as are copies by a tensor map, which
only the host can make. Calls are laid inline; a call through a pointer leads to each function whose address is taken;
recursion is laid out 24 levels deep, less where a function calls itself in several places, and who goes deeper is
refused. `printf` prints nowhere.
"""


def page() -> str:
    """The whole page."""
    lines = [_TOP, "## Instructions that run\n", "At least in the forms that NVRTC writes for sm_75 to sm_90.\n"]
    for section, names in ISA.items():
        known = [f"`{base}`" for base in names.split() if runs(base)]
        if known:
            lines.append(_item(section, known))
    lines += ["", "## Instructions that are refused\n"]
    lines += [_item(section, [f"`{base}`" for base in names]) for section, names in refused().items()]
    lines.append("\nOf the others, these forms:\n")
    lines += [f"- `{form.text}`" for form in forms() if form.why]
    lines.append("\nAnd functions without a body: `malloc` and `free` on the device, launches from the device.")
    return "\n".join(lines) + "\n"


def _item(section: str, names: list[str]) -> str:
    return textwrap.fill(f"- {section}: {', '.join(names)}", 118, subsequent_indent="  ", break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(page())
