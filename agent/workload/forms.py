"""Contents of a buffer as numbers that a kernel can follow: the same formulas as ``generators.recipe``, named.

``agent/execution/gpu/kernels/making.cu`` computes them on a card, bit for bit as NumPy does here.
"""

import struct
import zlib

import numpy as np
from attrs import frozen

from agent.workload import dtypes, floats, integers, random
from agent.workload.binding import BoundBuffer

FORMULAS = (
    "zeros", "ones", "constant", "normal", "uniform", "large-mean", "spikes", "ties", "sorted", "constant-rows",
    "signed-zeros", "denormals", "small-integers", "all-negative", "large-magnitude", "large-negative", "nan-inf",
    "image", "single uniform", "single normal",
    "whole constant", "whole below", "whole rising", "whole rows", "whole spikes", "whole offsets", "whole permuted",
    "whole image", "whole iota", "bytes",
)  # fmt: skip
"""In the order of the kernel's own list."""

NUMBERS = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3}
"""The float types as the kernels count them."""
_WIDTHS = {1: 4, 2: 5, 4: 6, 8: 7}
_LAYOUT = struct.Struct("<QQiiii4d4Q4d")
_LARGEST = 2**63
"""Whole numbers that double arithmetic is applied to stay below this."""


@frozen
class Form:
    """``count`` scalars of type ``scalar`` by ``formula``; ``stream`` tells the buffers of one workload apart.

    ``reals`` and ``wholes`` are the formula's constants, four at most. ``bounds`` are low, high and the nearest numbers
    of the type inside them; None where there are none.
    """

    formula: str
    scalar: str
    count: int
    stream: int
    reals: tuple[float, ...] = ()
    wholes: tuple[int, ...] = ()
    bounds: tuple[float, float, float, float] | None = None
    free: bool = False

    @property
    def nbytes(self) -> int:
        return self.count * dtypes.size_of(self.scalar)

    def key(self, seed: int) -> int:
        """What the contents of this seed are drawn with: the first eight bytes of :meth:`packed`."""
        return random.key(seed, self.stream)

    def packed(self, seed: int) -> bytes:
        """The kernel's parameter, for the contents of this seed."""
        reals, wholes = (*self.reals, 0.0, 0.0, 0.0, 0.0)[:4], (*self.wholes, 0, 0, 0, 0)[:4]
        kind = NUMBERS.get(self.scalar, _WIDTHS[dtypes.size_of(self.scalar)])
        return _LAYOUT.pack(
            self.key(seed), self.count, FORMULAS.index(self.formula), kind,
            self.free, self.bounds is not None, *reals, *(value % 2**64 for value in wholes),
            *(self.bounds or (0.0, 0.0, 0.0, 0.0)),
        )  # fmt: skip


def form(buffer: BoundBuffer, family: str) -> Form | None:
    """The form of a buffer's contents, or None where they have none. A family or domain that ``recipe`` would refuse
    has none either."""
    scalar, lanes = dtypes.base(buffer.dtype)
    kind, count = buffer.domain.kind, buffer.count * lanes
    stream = zlib.crc32(buffer.name.encode())
    if kind == "bytes" and not dtypes.is_raw(buffer.dtype):
        return Form("bytes", scalar, count, stream)
    if dtypes.is_raw(buffer.dtype):
        return _whole(scalar, count, stream, "integers", None, None, family) if kind == "bytes" else None
    if scalar in dtypes.FLOATS:
        return _real(scalar, count, stream, buffer, family) if kind in floats.DOMAINS else None
    return _whole(scalar, count, stream, kind, buffer.low, buffer.high, family) if kind in integers.DOMAINS else None


def _real(scalar: str, count: int, stream: int, buffer: BoundBuffer, family: str) -> Form:
    low, high = buffer.low, buffer.high
    formula = floats.formula(buffer.domain.kind, low, high, family)
    bottom, top = floats.span(low, high)
    free = low is None and high is None
    bounds = None if free else floats.limits(scalar, low, high)
    if formula == "uniform" and scalar != "f64":
        scale, offset = floats.single_uniform(low, high)
        return Form("single uniform", scalar, count, stream, (bottom, top - bottom, scale, offset), (), bounds, free)
    if formula == "normal" and scalar != "f64" and free:
        return Form("single normal", scalar, count, stream, free=True)
    reals, wholes = _constants(formula, scalar, count, low, high)
    return Form(formula, scalar, count, stream, (bottom, top - bottom, *reals), wholes, bounds, free)


def _constants(
    formula: str, scalar: str, count: int, low: float | None, high: float | None
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """What a formula needs beyond the span: see the kernel."""
    signed = low is None or low < 0
    match formula:
        case "constant":
            return (floats.span(low, high)[0],), ()
        case "large-mean":
            return (floats.span(low, high)[1],), ()
        case "constant-rows":
            return (), (floats.stretch(count),)
        case "signed-zeros":
            return (-0.0 if signed else 0.0,), ()
        case "denormals":
            return (floats.TINY[scalar],), (int(signed), int(high is not None and high <= 0))
        case "small-integers":
            least, most = floats.whole_bounds(low, high)
            return (least,), (int(most - least) + 1,)
        case "all-negative":
            least, most = floats.negative_span(low, high)
            return (least, most - least), ()
        case "large-magnitude" | "large-negative":
            return (floats.LARGE[scalar],), ()
        case _:
            return (), ()


def _whole(
    scalar: str, count: int, stream: int, kind: str, low: float | None, high: float | None, family: str
) -> Form | None:
    first, end = integers.bounds(scalar, kind, low, high)
    formula, wholes, reals = _whole_formula(kind, family, count, first, end)
    if end - first >= _LARGEST or any(value < 0 for value in wholes):
        return None
    base = 0 if kind in integers.ABSOLUTE else first
    return Form(f"whole {formula}", scalar, count, stream, reals, (*(*wholes, 0, 0, 0)[:3], base))


def _whole_formula(
    kind: str, family: str, count: int, first: int, end: int
) -> tuple[str, tuple[int, ...], tuple[float, ...]]:
    span = max(1, end - first)
    if kind in ("integers", "uniform", "index"):
        match family:
            case "ties" | "small-integers":
                return "below", (min(4 if family == "ties" else 16, span),), ()
            case "sorted":
                return "rising", (span,), ()
            case "constant-rows":
                return "rows", (span, floats.stretch(count)), ()
            case "spikes":
                return "spikes", (span,), ()
        return "below", (span,), ()
    if kind == "offsets":
        rows = max(count - 1, 1)
        least, rest = divmod(end - first, rows)
        plain = family in ("constant-rows", "spikes")
        return "offsets", (rows, least, rest), (0.0, 0.0, float(family == "spikes"), float(not plain))
    if kind == "permutation":
        return "permuted", (random.half_bits(count),), ()
    constants = {"constant": 0, "zeros": 0, "ones": 1}
    if kind in constants:
        return "constant", (constants[kind],), ()
    return {"sorted": "rising", "image": "image", "iota": "iota"}[kind], (span,), ()


def tables() -> tuple[bytes, bytes, bytes]:
    """The three tables of the normal distribution that the kernel looks up."""
    single, slopes = random.single_quantiles()
    return random.quantiles().tobytes(), np.ascontiguousarray(single).tobytes(), np.ascontiguousarray(slopes).tobytes()
