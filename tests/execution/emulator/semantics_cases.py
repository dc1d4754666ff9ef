"""Every kind of pure instruction as a small piece of PTX, with the types that go in and come out.

``s0``, ``s1``, ... are sources, ``d0``, ... results. Type ``f32c`` is an f32 that nearly cancels the product of the
first two.
"""

from collections.abc import Iterator

from attrs import frozen

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


@frozen
class Case:
    text: str
    sources: tuple[str, ...]
    results: tuple[str, ...]


def width(kind: str) -> int:
    """Bits of a type."""
    if kind in ("pred", "lane", "nth"):
        return 1 if kind == "pred" else 32
    if kind in ("u8", "s8"):
        return 8
    kind = kind.removesuffix("c")
    if kind.endswith("x2"):
        return 32
    return 16 if kind == "bf16" else int(kind.lstrip("usbf"))


def cases() -> tuple[Case, ...]:
    parts = (_integers, _carries, _bits, _comparisons, _choices, _floats, _half, _approximate, _conversions, _moves)
    return tuple(case for part in parts for case in part())


def _case(text: str, sources: str, results: str) -> Case:
    return Case(text + ";", tuple(sources.split()), tuple(results.split()))


def _integers() -> Iterator[Case]:
    for t in INTEGERS:
        for base in ("add", "sub", "min", "max", "div", "rem", "mul.lo", "mul.hi"):
            yield _case(f"{base}.{t} d0, s0, s1", f"{t} {t}", t)
        for base in ("mad.lo", "mad.hi", "sad"):
            yield _case(f"{base}.{t} d0, s0, s1, s2", f"{t} {t} {t}", t)
    for t in ("s16", "s32", "s64"):
        yield _case(f"neg.{t} d0, s0", t, t)
        yield _case(f"abs.{t} d0, s0", t, t)
    for base in ("add", "sub"):
        yield _case(f"{base}.sat.s32 d0, s0, s1", "s32 s32", "s32")
    yield _case("mad.hi.sat.s32 d0, s0, s1, s2", "s32 s32 s32", "s32")
    for t, wide in WIDER.items():
        yield _case(f"mul.wide.{t} d0, s0, s1", f"{t} {t}", wide)
        yield _case(f"mad.wide.{t} d0, s0, s1, s2", f"{t} {t} {wide}", wide)
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield _case(f"mul24.{part}.{t} d0, s0, s1", f"{t} {t}", t)
            yield _case(f"mad24.{part}.{t} d0, s0, s1, s2", f"{t} {t} {t}", t)
    yield _case("mad24.hi.sat.s32 d0, s0, s1, s2", "s32 s32 s32", "s32")
    for t in ("u16x2", "s16x2"):
        for base in ("add", "min", "max"):
            yield _case(f"{base}.{t} d0, s0, s1", f"{t} {t}", t)
    yield _case("min.relu.s16x2 d0, s0, s1", "s16x2 s16x2", "s16x2")
    for base in ("min", "max"):
        yield _case(f"{base}.relu.s32 d0, s0, s1", "s32 s32", "s32")
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            r = "s32" if "s32" in (a, b) else "u32"
            yield _case(f"dp4a.{a}.{b} d0, s0, s1, s2", f"{a} {b} {r}", r)
            for half in ("lo", "hi"):
                yield _case(f"dp2a.{half}.{a}.{b} d0, s0, s1, s2", f"{a} {b} {r}", r)
    for base in ("vabsdiff2", "vabsdiff4"):
        for t in ("u32", "s32"):
            for total in ("", ".add"):
                yield _case(f"{base}.u32.{t}.{t}{total} d0, s0, s1, s2", f"{t} {t} u32", "u32")


def _carries() -> Iterator[Case]:
    for t in ("u32", "s32", "u64", "s64"):
        for base in ("add", "sub"):
            text = f"{base}.cc.{t} d0, s0, s1; {base}c.cc.{t} d1, s2, s3; {base}c.{t} d2, 0, 0"
            yield _case(text, f"{t} {t} {t} {t}", f"{t} {t} {t}")
        text = f"mad.lo.cc.{t} d0, s0, s1, s2; madc.hi.cc.{t} d1, s0, s1, s3; addc.{t} d2, 0, 0"
        yield _case(text, f"{t} {t} {t} {t}", f"{t} {t} {t}")


def _bits() -> Iterator[Case]:
    for bits in ("16", "32", "64"):
        t = f"b{bits}"
        for base in ("and", "or", "xor"):
            yield _case(f"{base}.{t} d0, s0, s1", f"{t} {t}", t)
        for base in ("not", "cnot"):
            yield _case(f"{base}.{t} d0, s0", t, t)
        yield _case(f"shl.{t} d0, s0, s1", f"{t} u32", t)
        yield _case(f"shl.{t} d0, s0, 7", t, t)
        for sign in "us":
            yield _case(f"shr.{sign}{bits} d0, s0, s1", f"{sign}{bits} u32", f"{sign}{bits}")
            yield _case(f"shr.{sign}{bits} d0, s0, 40", f"{sign}{bits}", f"{sign}{bits}")
    for base in ("and", "or", "xor"):
        yield _case(f"{base}.pred d0, s0, s1", "pred pred", "pred")
    yield _case("not.pred d0, s0", "pred", "pred")
    for way in ("l.clamp", "l.wrap", "r.clamp", "r.wrap"):
        yield _case(f"shf.{way}.b32 d0, s0, s1, s2", "b32 b32 u32", "b32")
    for table in (0x96, 0xE8, 0xCA, 0x1B, 0xF8, 0x80, 0xFE, 0x3C, 0x01, 0xEA, 0x78, 0x6A, 0xD8):
        yield _case(f"lop3.b32 d0, s0, s1, s2, {table}", "b32 b32 b32", "b32")
    for join in ("or", "and"):
        yield _case(f"lop3.{join}.b32 d0|d1, s0, s1, s2, 0x80, s3", "b32 b32 b32 pred", "b32 pred")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield _case(f"prmt.b32{mode} d0, s0, s1, s2", "b32 b32 b32", "b32")
    for selector in (0x5410, 0x7632, 0x3210, 0x0123, 0x7531, 0x4444, 0xB210):
        yield _case(f"prmt.b32 d0, s0, s1, {selector}", "b32 b32", "b32")
    for t in ("u32", "s32", "u64", "s64"):
        yield _case(f"bfe.{t} d0, s0, s1, s2", f"{t} u32 u32", t)
        yield _case(f"bfind.{t} d0, s0", t, "u32")
        yield _case(f"bfind.shiftamt.{t} d0, s0", t, "u32")
    for t in ("b32", "b64"):
        yield _case(f"bfi.{t} d0, s0, s1, s2, s3", f"{t} {t} u32 u32", t)
        yield _case(f"brev.{t} d0, s0", t, t)
        yield _case(f"clz.{t} d0, s0", t, "u32")
        yield _case(f"popc.{t} d0, s0", t, "u32")
    for mode in ("clamp", "wrap"):
        yield _case(f"bmsk.{mode}.b32 d0, s0, s1", "u32 u32", "b32")
        for t in ("u32", "s32"):
            yield _case(f"szext.{mode}.{t} d0, s0, s1", f"{t} u32", t)
    yield _case("fns.b32 d0, s0, s1, s2", "b32 lane nth", "b32")


def _comparisons() -> Iterator[Case]:
    for t in INTEGERS:
        for operator in (*COMPARISONS[:6], *(("lo", "ls", "hi", "hs") if t.startswith("u") else ())):
            yield _case(f"setp.{operator}.{t} d0, s0, s1", f"{t} {t}", "pred")
    for t in ("f32", "f64", "f16", "bf16"):
        for operator in COMPARISONS:
            yield _case(f"setp.{operator}.{t} d0, s0, s1", f"{t} {t}", "pred")
    for operator in ("lt", "geu", "eq"):
        for t in ("f32", "f16"):
            yield _case(f"setp.{operator}.ftz.{t} d0, s0, s1", f"{t} {t}", "pred")
    for join in ("and", "or", "xor"):
        yield _case(f"setp.lt.{join}.s32 d0|d1, s0, s1, s2", "s32 s32 pred", "pred pred")
        yield _case(f"setp.ltu.{join}.f32 d0, s0, s1, !s2", "f32 f32 pred", "pred")
    yield _case("setp.lt.f16x2 d0|d1, s0, s1", "f16x2 f16x2", "pred pred")
    yield _case("setp.geu.bf16x2 d0|d1, s0, s1", "bf16x2 bf16x2", "pred pred")
    for result in ("u32", "f32"):
        for t in ("s32", "u64", "f32", "f64"):
            yield _case(f"set.gt.{result}.{t} d0, s0, s1", f"{t} {t}", result)
    yield _case("set.lt.and.u32.f32 d0, s0, s1, s2", "f32 f32 pred", "u32")
    for result, t in (("f16", "f16"), ("f16x2", "f16x2"), ("u32", "f16x2"), ("u16", "bf16"), ("bf16x2", "bf16x2")):
        yield _case(f"set.gtu.{result}.{t} d0, s0, s1", f"{t} {t}", result)
    for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        for t in ("f32", "f64"):
            yield _case(f"testp.{test}.{t} d0, s0", t, "pred")


def _choices() -> Iterator[Case]:
    for t in ("b16", "b32", "b64", "f32"):
        yield _case(f"selp.{t} d0, s0, s1, s2", f"{t} {t} pred", t)
    yield _case("slct.b32.s32 d0, s0, s1, s2", "b32 b32 s32", "b32")
    yield _case("slct.f64.f32 d0, s0, s1, s2", "f64 f64 f32", "f64")
    yield _case("slct.ftz.u64.f32 d0, s0, s1, s2", "u64 u64 f32", "u64")


def _floats() -> Iterator[Case]:
    for t, flush in (("f32", ""), ("f32", ".ftz"), ("f64", "")):
        for mode in ROUNDINGS:
            for base in ("add", "sub", "mul", "div"):
                yield _case(f"{base}.{mode}{flush}.{t} d0, s0, s1", f"{t} {t}", t)
            yield _case(f"fma.{mode}{flush}.{t} d0, s0, s1, s2", f"{t} {t} {t}c", t)
            for base in ("rcp", "sqrt"):
                yield _case(f"{base}.{mode}{flush}.{t} d0, s0", t, t)
        for base in ("neg", "abs"):
            yield _case(f"{base}{flush}.{t} d0, s0", t, t)
        for base in ("min", "max"):
            yield _case(f"{base}{flush}.{t} d0, s0, s1", f"{t} {t}", t)
    for t in ("f32", "f64"):
        yield _case(f"copysign.{t} d0, s0, s1", f"{t} {t}", t)
    for mode in ("rn.sat", "rz.sat", "rn.ftz.sat", "rz.ftz.sat"):
        for base in ("add", "sub", "mul"):
            yield _case(f"{base}.{mode}.f32 d0, s0, s1", "f32 f32", "f32")
        yield _case(f"fma.{mode}.f32 d0, s0, s1, s2", "f32 f32 f32c", "f32")
    for base in ("min", "max"):
        for mode in ("NaN", "xorsign.abs", "NaN.xorsign.abs", "ftz.NaN"):
            yield _case(f"{base}.{mode}.f32 d0, s0, s1", "f32 f32", "f32")


def _half() -> Iterator[Case]:
    for t in HALVES:
        flushes = t.startswith("f")
        for base in ("min", "max"):
            for mode in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", *((".ftz",) if flushes else ())):
                yield _case(f"{base}{mode}.{t} d0, s0, s1", f"{t} {t}", t)
        for base in ("add", "sub", "mul"):
            for mode in (".rn", *((".sat", ".ftz", ".ftz.sat") if flushes else ())):
                yield _case(f"{base}{mode}.{t} d0, s0, s1", f"{t} {t}", t)
        for mode in ("", ".relu", *((".sat", ".ftz", ".ftz.relu") if flushes else ())):
            yield _case(f"fma.rn{mode}.{t} d0, s0, s1, s2", f"{t} {t} {t}", t)
        for base in ("neg", "abs"):
            yield _case(f"{base}.{t} d0, s0", t, t)


def _approximate() -> Iterator[Case]:
    for flush in ("", ".ftz"):
        for base in ("ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt"):
            yield _case(f"{base}.approx{flush}.f32 d0, s0", "f32", "f32")
        for base in ("approx", "full"):
            yield _case(f"div.{base}{flush}.f32 d0, s0, s1", "f32 f32", "f32")
    yield _case("tanh.approx.f32 d0, s0", "f32", "f32")
    yield _case("rcp.approx.ftz.f64 d0, s0", "f64", "f64")
    yield _case("rsqrt.approx.ftz.f64 d0, s0", "f64", "f64")
    yield _case("rsqrt.approx.f64 d0, s0", "f64", "f64")
    for t in HALVES:
        yield _case(f"ex2.approx{'.ftz' if t.startswith('b') else ''}.{t} d0, s0", t, t)
        yield _case(f"tanh.approx.{t} d0, s0", t, t)


def _conversions() -> Iterator[Case]:
    integers = ("u8", "s8", *INTEGERS)
    for a in integers:
        for b in integers:
            if a != b:
                yield _case(f"cvt.{b}.{a} d0, s0", a, b)
                # where every value fits there is nothing to saturate, and ptxas refuses it
                if width(a) > width(b) or (a[0] != b[0] and (a[0] == "s" or width(a) == width(b))):
                    yield _case(f"cvt.sat.{b}.{a} d0, s0", a, b)
    for f in ("f16", "bf16", "f32", "f64"):
        for i in INTEGERS if f == "bf16" else integers:
            for mode in ("rni", "rzi", "rmi", "rpi"):
                yield _case(f"cvt.{mode}.{i}.{f} d0, s0", f, i)
            for mode in ("rn",) if f == "bf16" else ROUNDINGS:
                yield _case(f"cvt.{mode}.{f}.{i} d0, s0", i, f)
    for i in ("s32", "u64"):
        for mode in ("rzi", "rpi"):
            yield _case(f"cvt.{mode}.ftz.{i}.f32 d0, s0", "f32", i)
    for i in ("s32", "u32"):
        yield _case(f"cvt.rn.sat.f32.{i} d0, s0", i, "f32")
    for f in ("f16", "f32", "f64"):
        for mode in ("rni", "rzi", "rmi", "rpi", "sat"):
            yield _case(f"cvt.{mode}.{f}.{f} d0, s0", f, f)
    for mode in ("rni.ftz", "rmi.ftz", "rni.sat", "rmi.sat", "ftz", "ftz.sat"):
        yield _case(f"cvt.{mode}.f32.f32 d0, s0", "f32", "f32")
    for narrow, wide in (("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")):
        yield _case(f"cvt.{wide}.{narrow} d0, s0", narrow, wide)
        for mode in ("rn", "rz") if narrow == "bf16" else (*ROUNDINGS, "rn.sat"):
            yield _case(f"cvt.{mode}.{narrow}.{wide} d0, s0", wide, narrow)
        if narrow != "bf16":
            yield _case(f"cvt.sat.{wide}.{narrow} d0, s0", narrow, wide)
    for mode in ROUNDINGS:
        yield _case(f"cvt.{mode}.ftz.f32.f64 d0, s0", "f64", "f32")
    yield _case("cvt.ftz.f64.f32 d0, s0", "f32", "f64")
    yield _case("cvt.rn.ftz.f16.f32 d0, s0", "f32", "f16")
    yield _case("cvt.ftz.f32.f16 d0, s0", "f16", "f32")
    for t in ("f16x2", "bf16x2"):
        for mode in ("rn", "rz", "rn.relu", "rz.relu"):
            yield _case(f"cvt.{mode}.{t}.f32 d0, s0, s1", "f32 f32", t)
        yield _case(f"cvt.rn.relu.{t.removesuffix('x2')}.f32 d0, s0", "f32", t.removesuffix("x2"))
    for a, b in (("f16", "bf16"), ("bf16", "f16"), ("f64", "bf16")):
        yield _case(f"cvt.rn.{b}.{a} d0, s0", a, b)
    yield _case("cvt.f64.bf16 d0, s0", "bf16", "f64")
    for mode in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"):
        yield _case(f"cvt.{mode}.tf32.f32 d0, s0", "f32", "b32")
    for t in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield _case(f"cvt.rn.satfinite{relu}.{t}.f32 d0, s0, s1", "f32 f32", "b16")
            yield _case(f"cvt.rn{relu}.f16x2.{t} d0, s0", "b16", "f16x2")
        yield _case(f"cvt.rn.satfinite.{t}.f16x2 d0, s0", "f16x2", "b16")


def _moves() -> Iterator[Case]:
    for whole, part, count in (("b64", "b32", 2), ("b64", "b16", 4), ("b32", "b16", 2)):
        sources = ", ".join(f"s{index}" for index in range(count))
        results = ", ".join(f"d{index}" for index in range(count))
        yield _case(f"mov.{whole} d0, {{{sources}}}", " ".join([part] * count), whole)
        yield _case(f"mov.{whole} {{{results}}}, s0", whole, " ".join([part] * count))
