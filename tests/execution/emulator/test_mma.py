"""``mma.sync`` in every shape and type: NumPy's products, through layouts written down from the PTX ISA."""

import numpy as np
import pytest

from tests.execution.emulator.building import launch, of_ptx, run
from tests.execution.emulator.fragment_layouts import LAYOUTS, Place

Array = np.ndarray
BF16 = "bf16"


def kernel(opcode: str, counts: tuple[int, int, int, int], wide: bool) -> str:
    """A warp loads its registers of A, B and C, lane by lane, executes ``opcode`` and stores D."""
    kind, size = ("b64", 8) if wide else ("b32", 4)
    text = f""".version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {{
.reg .b64 %rd<20>; .reg .b32 %r<4>; .reg .{kind} %a<40>; .reg .{kind} %b<40>; .reg .{kind} %c<40>; .reg .{kind} %d<40>;
mov.u32 %r1, %tid.x; """
    for index, name in enumerate("abcd"):
        text += f"""ld.param.u64 %rd1, [p{name}]; mul.wide.u32 %rd2, %r1, {counts[index] * size};
add.s64 %rd{10 + index}, %rd1, %rd2; """
    for index, name in enumerate("abc"):
        for k in range(counts[index]):
            text += f"ld.global.{kind} %{name}{k}, [%rd{10 + index}+{k * size}];\n"
    lists = [
        "{" + ", ".join(f"%{name}{k}" for k in range(counts[i])) + "}"
        for name, i in zip("dabc", (3, 0, 1, 2), strict=True)
    ]
    text += f"{opcode} {', '.join(lists)};\n"
    for k in range(counts[3]):
        text += f"st.global.{kind} [%rd13+{k * size}], %d{k};\n"
    return text + "ret; }"


def spread(matrix: Array, count: int, place: Place, bits: int) -> Array:
    """The matrix of bit patterns as registers: ``(lanes, registers)``."""
    held = np.zeros((len(matrix), 32, count), np.uint64)
    for lane in range(32):
        for i in range(count):
            row, column = place(lane >> 2, lane % 4, i)
            held[:, lane, i] = matrix[:, row, column]
    if bits == 64:
        return held.reshape(-1, count)
    per = 32 // bits
    words = sum(held[:, :, index::per] << np.uint64(bits * index) for index in range(per))
    return np.asarray(words).astype(np.uint32).reshape(-1, count // per)


def gathered(words: Array, rows: int, place: Place, bits: int) -> Array:
    """Registers ``(lanes, registers)`` to matrices of bit patterns ``(warps, rows, 8)``."""
    per = max(32 // bits, 1)
    words = words.reshape(-1, 32, words.shape[-1])
    mask = np.uint64((1 << bits) - 1)
    result = np.zeros((len(words), rows, 8), np.uint64)
    for lane in range(32):
        for i in range(words.shape[2] * per):
            row, column = place(lane >> 2, lane % 4, i)
            result[:, row, column] = words[:, lane, i // per].astype(np.uint64) >> np.uint64(bits * (i % per)) & mask
    return result


def bits_of(values: Array, kind: str) -> Array:
    if kind in ("bf16", "tf32"):
        cut = values.astype(np.float32).view(np.uint32) >> np.uint32(16)
        return cut if kind == "bf16" else cut << np.uint32(16)
    if kind in ("f16", "f32", "f64"):
        dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
        return values.astype(dtype).view(f"u{np.dtype(dtype).itemsize}")
    if kind in ("e4m3", "e5m2"):
        return np.asarray([QUARTERS[kind].index(value) for value in values.reshape(-1)]).reshape(values.shape)
    width = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}[kind]
    return values.astype(np.int64) & ((1 << width) - 1)


def _quarters(exponent_bits: int, digits: int) -> list[float]:
    """The values of the 126 positive bytes of an 8-bit float, by its definition (OCP FP8, 2023)."""
    bias, values = (1 << exponent_bits - 1) - 1, []
    for byte in range(0x7B):
        exponent, fraction = byte >> digits, byte & ((1 << digits) - 1)
        whole = fraction if exponent == 0 else fraction + (1 << digits)
        values.append(whole * 2.0 ** (max(exponent, 1) - bias - digits))
    return values


QUARTERS = {"e4m3": _quarters(4, 3), "e5m2": _quarters(5, 2)}


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    if kind in ("s8", "u8", "s4", "u4", "b1"):
        low, high = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}[kind]
        return rng.integers(low, high, shape).astype(np.float64)
    if kind in QUARTERS:
        return np.asarray(QUARTERS[kind])[rng.integers(0x20, 0x50, shape)]
    return rng.standard_normal(shape)


def exact(values: Array, kind: str) -> Array:
    """The values that the registers really hold."""
    if kind in ("bf16", "tf32"):
        return (
            ((values.astype(np.float32).view(np.uint32) >> np.uint32(16)) << np.uint32(16))
            .view(np.float32)
            .astype(float)
        )
    return values.astype({"f16": np.float16, "f32": np.float32}.get(kind, np.float64)).astype(np.float64)


CASES = [
    *[(shape, kinds) for shape in ("m16n8k8", "m16n8k16") for kinds in ("f32.f16.f16.f32", "f16.f16.f16.f16",
                                                                        "f32.f16.f16.f16", "f32.bf16.bf16.f32")],
    *[(shape, "f32.tf32.tf32.f32") for shape in ("m16n8k4", "m16n8k8")],
    *[(shape, "f64.f64.f64.f64") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")],
    *[(shape, f"s32.{pair}.s32") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
      for pair in ("s8.s8", "u8.s8", "s8.u8", "u8.u8")],
    *[(shape, f"s32.{pair}.s32") for shape in ("m8n8k32", "m16n8k64") for pair in ("s4.s4", "u4.s4")],
    *[("m16n8k32", f"f32.{pair}.f32") for pair in ("e4m3.e4m3", "e5m2.e5m2", "e4m3.e5m2")],
]  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
        "e4m3": 8, "e5m2": 8}  # fmt: skip


def multiply(opcode: str, shape: str, kinds: tuple[str, ...], a: Array, b: Array, c: Array) -> Array:
    """Bits of ``a @ b + c`` for each warp, by the emulator."""
    to, left, right, plus = kinds
    (na, at_a), (nb, at_b), (nc, at_c) = LAYOUTS[shape, BITS[left]]
    held = [
        spread(bits_of(a, left), na, at_a, BITS[left]),
        spread(bits_of(b, right), nb, at_b, BITS[right]),
        spread(bits_of(c, plus), nc, at_c, BITS[plus]),
    ]
    counts = (*(one.shape[1] for one in held), nc // (32 // BITS[to]) if BITS[to] < 32 else nc)
    wide = left == "f64"
    d = np.zeros((len(held[0]), counts[3]), np.uint64 if wide else np.uint32)
    step = launch("k", 1, len(held[0]), "a", "b", "c", "d")
    ptx = kernel(opcode, counts, wide)
    answer, out = run(
        of_ptx(ptx), step, {"a": held[0], "b": held[1], "c": held[2], "d": d}, checks=frozenset({"races"})
    )
    assert answer.status == "ok", answer
    return gathered(out["d"], int(c.shape[1]), at_c, BITS[to])


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


@pytest.mark.parametrize(("shape", "names"), CASES)
def test_products_are_those_of_the_matrices(shape: str, names: str) -> None:
    kinds = tuple(names.split("."))
    to, left, right, plus = kinds
    (m, n, k), rng, warps = sizes(shape), np.random.default_rng(7), 2
    a, b = drawn(rng, left, (warps, m, k)), drawn(rng, right, (warps, k, n))
    c = rng.integers(-1000, 1000, (warps, m, n)).astype(float) if to == "s32" else rng.standard_normal((warps, m, n))
    bits = multiply(f"mma.sync.aligned.{shape}.row.col.{names}", shape, kinds, a, b, c)
    a, b, c = exact(a, left), exact(b, right), exact(c, plus)
    wanted, scale = a @ b + c, np.abs(a) @ np.abs(b) + np.abs(c)
    if to == "s32":
        np.testing.assert_array_equal(bits.astype(np.uint32).view(np.int32), wanted)
        return
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[to]
    found = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype).astype(np.float64)
    step = {"f16": 2.0**-11, "f32": 2.0**-24, "f64": (k + 1) * 2.0**-53}[to]
    assert (np.abs(found - wanted) <= step * scale).all()


def test_whole_sums_wrap_or_stay_in_range() -> None:
    ones, top = np.full((1, 16, 16), 127.0), np.full((1, 16, 8), 2.0**31 - 5)
    kinds, opcode = ("s32", "s8", "s8", "s32"), "mma.sync.aligned.m16n8k16.row.col"
    wrapped = multiply(f"{opcode}.s32.s8.s8.s32", "m16n8k16", kinds, ones, ones[:, :, :8], top)
    clamped = multiply(f"{opcode}.satfinite.s32.s8.s8.s32", "m16n8k16", kinds, ones, ones[:, :, :8], top)
    assert (wrapped == 2**31 - 5 + 16 * 127 * 127).all() and (clamped == 2**31 - 1).all()


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k256"])
@pytest.mark.parametrize("how", ["xor", "and"])
def test_bits_are_combined_and_counted(shape: str, how: str) -> None:
    (m, n, k), rng = sizes(shape), np.random.default_rng(3)
    a, b = drawn(rng, "b1", (1, m, k)), drawn(rng, "b1", (1, k, n))
    c = rng.integers(-5, 5, (1, m, n)).astype(float)
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{how}.popc"
    found = multiply(opcode, shape, ("s32", "b1", "b1", "s32"), a, b, c).astype(np.uint32).view(np.int32)
    left, right = a.astype(bool)[:, :, :, None], b.astype(bool)[:, None]
    both = (left ^ right) if how == "xor" else (left & right)
    np.testing.assert_array_equal(found, both.sum(axis=2) + c)


def test_infinities_and_not_a_number_come_through() -> None:
    a, b, c = np.zeros((1, 16, 16)), np.zeros((1, 16, 8)), np.zeros((1, 16, 8))
    a[0, 0, 0], b[0, 0, :] = np.inf, 1.0
    a[0, 1, 3], c[0, 2, 2] = np.nan, -np.inf
    opcode, kinds = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", ("f32", "f16", "f16", "f32")
    found = multiply(opcode, "m16n8k16", kinds, a, b, c).astype(np.uint32)
    assert (found[0, 0] == 0x7F800000).all() and (found[0, 1] == 0x7FFFFFFF).all() and found[0, 2, 2] == 0xFF800000


@pytest.mark.parametrize(
    ("opcode", "counts"),
    [
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", (2, 2, 8, 8)),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (2, 2, 4, 4)),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", (4, 2, 4, 4)),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", (4, 2, 4, 4)),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", (3, 2, 4, 4)),
    ],
)
def test_what_is_not_known_is_refused_by_name(opcode: str, counts: tuple[int, int, int, int]) -> None:
    four = np.zeros(4096, np.uint32)
    step = launch("k", 1, 32, "a", "b", "c", "d")
    answer, _ = run(of_ptx(kernel(opcode, counts, False)), step, {"a": four, "b": four, "c": four, "d": four})
    assert answer.status == "refused" and "the instruction mma." in answer.message, answer


@pytest.mark.parametrize("threads", [48, 40])
def test_a_warp_with_lanes_missing_is_reported_and_others_compute(threads: int) -> None:
    opcode = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    ones, d = np.full((64, 1), 0x01010101, np.uint32), np.zeros((64, 2), np.uint32)
    step = launch("k", 1, threads, "a", "b", "c", "d")
    buffers = {"a": ones, "b": ones, "c": np.ones((64, 2), np.uint32), "d": d}
    answer, out = run(of_ptx(kernel(opcode, (1, 1, 2, 2), False)), step, buffers)
    (fault,) = answer.faults
    assert fault.kind == "incomplete warp" and fault.count == threads - 32 and fault.where.thread == (32, 0, 0)
    assert (out["d"][:32] == 17).all() and (out["d"][32:] == 0).all()
