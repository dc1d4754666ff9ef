"""The float64 oracle: the original itself, with every ``float`` made a ``double`` by a prefix of macros on its slice.

Nothing else changes, so it computes what the author wrote, with rounding some nine digits finer. Literals keep their
float value (``0.1f`` stays what it was). Where the text depends on how a float looks in memory, or on types narrower
than float, promotion would compute something else, and is refused. Whether the result fits is checked by running it.
"""

import re
from collections.abc import Iterable

import numpy as np
from attrs import evolve, frozen

from agent.evaluation.values import to_floats
from agent.execution.compiler.result import Options
from agent.execution.device import Bytes
from agent.source.slicing import Slice
from agent.workload.binding import (
    Argument,
    Bound,
    BoundBuffer,
    BoundFill,
    BoundLaunch,
    BoundStep,
    PointerArgument,
    RecordArgument,
    ValueArgument,
)
from agent.workload.dtypes import base, is_raw

_MATH = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs "
    "floor frexp ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nearbyint norm norm3d "
    "norm4d normcdf normcdfinv rcbrt remquo rint rnorm3d rnorm4d round rsqrt scalbln scalbn sin sincos sincospi sinh "
    "sinpi sqrt tan tanh tgamma trunc"
)
_SEVERAL = dict.fromkeys(
    ("fmax", "fmin", "pow", "fmod", "atan2", "copysign", "fdim", "hypot", "rhypot", "remainder"), 2
) | {"fma": 3}

_FAST = "cos sin tan exp exp10 log log2 log10 sincos"
_ROUNDED = {"fadd": "dadd", "fsub": "dsub", "fmul": "dmul", "fdiv": "ddiv", "frcp": "drcp", "fsqrt": "dsqrt"}
_MODES = ("rn", "rz", "ru", "rd")
_INTEGERS = ("int", "uint", "ll", "ull")

_REFUSALS = (
    (
        re.compile(r"\b(?:__)?half2?\b|\b__h\w+\(|bfloat16|\b__nv_fp8|\bwmma\b|\bmma\b"),
        "it uses types narrower than float",
    ),
    (re.compile(r"\b__float_as_u?int\b"), "it works on the bits of a float"),
    (re.compile(r"\b__u?int_as_float\s*\(\s*(?!0[xX])\D"), "it works on the bits of a float"),
    (re.compile(r"\bunion\b|\bmemcpy\b|\b(?:__builtin_)?bit_cast\b"), "it may look at the bits of a float"),
    (re.compile(r"\basm\b"), "it has inline assembly"),
    (re.compile(r"\btex(?:1D|2D|3D|ture|Cube)\w*|\bsurf[123]D\w*"), "it reads textures"),
    (re.compile(r"\bcuda(?:Texture|Surface)Object_t\b"), "it reads textures"),
    (
        re.compile(
            r"reinterpret_cast\s*<\s*(?:const\s+|volatile\s+)*(?!(?:const|volatile|float[234]?|double[234]?)\b)\w"
        ),
        "it reinterprets memory as another type",
    ),
    (
        re.compile(
            r"\(\s*(?:const\s+)?(?:(?:unsigned|signed|int\d?|uint\w*|char\d?|uchar\d?|short\d?|long\d?|size_t|u?int\d+_t)\s*)+\*+\s*\)"
        ),
        "it casts a pointer to another type",
    ),
)

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*\n", re.MULTILINE)
_LINE = re.compile(r"^#line\b", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@frozen
class Refused:
    """Why there is no float64 oracle."""

    reason: str


def promote_slice(slice_: Slice, bound: Bound) -> Slice | Refused:
    """The slice in double precision; its name expressions change with it (``scale<float>`` to ``scale<double>``)."""
    code = _COMMENT.sub(" ", _without_includes(slice_.text))
    for pattern, reason in _REFUSALS:
        if pattern.search(code):
            return Refused(reason)
    if not re.search(r"\bfloat[234]?\b", code) and not any("float" in name for name in slice_.names):
        return Refused("it computes in float64 itself" if "double" in code else "it has no float arithmetic")
    if any(re.search(r"\bfloat", text) for _, text in slice_.headers):
        return Refused("its own headers use float, and only the file itself can be promoted")
    if any(
        isinstance(one, RecordArgument)
        for step in bound.steps
        if isinstance(step, BoundLaunch)
        for one in step.arguments
    ):
        return Refused("it takes a struct by value")
    if any(is_raw(buffer.dtype) for buffer in bound.buffers):
        return Refused("a buffer holds structs of mixed members")
    if any(
        isinstance(step, BoundFill) and step.byte not in (0,) and _is_single(bound, step.buffer) for step in bound.steps
    ):
        return Refused("a float buffer is filled with a byte other than 0")
    at = _start(slice_.text)
    text = slice_.text[:at] + prefix(code) + slice_.text[at:]
    return evolve(slice_, text=text, names=tuple(map(promote_name, slice_.names)))


def _start(text: str) -> int:
    """Behind the includes and behind what stands before the user's own first line."""
    first = _LINE.search(text)
    return max((match.end() for match in _INCLUDE.finditer(text)), default=first.start() if first else 0)


def promote_name(name: str) -> str:
    return re.sub(r"\bfloat([234]?)\b", r"double\1", name)


def promote_options(options: Options) -> Options:
    """Fast-math has no place in an oracle."""
    fast = re.compile(r"--?(?:use_fast_math|ftz|prec-div|prec-sqrt)\b")
    return evolve(options, flags=tuple(flag for flag in options.flags if not fast.match(flag)))


def promote_bound(bound: Bound) -> Bound:
    """The same launches over buffers of doubles: float buffers, offsets into them and dynamic shared memory double."""
    return evolve(
        bound,
        buffers=tuple(map(_promote_buffer, bound.buffers)),
        steps=tuple(_promote_step(step, bound) for step in bound.steps),
    )


def promote_bytes(data: Bytes, dtype: str) -> Bytes:
    """Contents of a buffer, widened where it holds floats."""
    return to_floats(data, dtype).view(np.uint8) if base(dtype)[0] == "f32" else data


def promote_dtype(dtype: str) -> str:
    return dtype.replace("f32", "f64")


def _is_single(bound: Bound, name: str) -> bool:
    return any(buffer.name == name and base(buffer.dtype)[0] == "f32" for buffer in bound.buffers)


def _promote_buffer(buffer: BoundBuffer) -> BoundBuffer:
    if base(buffer.dtype)[0] != "f32":
        return buffer
    return evolve(buffer, dtype=promote_dtype(buffer.dtype), nbytes=2 * buffer.nbytes)


def _promote_step(step: BoundStep, bound: Bound) -> BoundStep:
    if not isinstance(step, BoundLaunch):
        return step
    arguments = tuple(_promote_argument(argument, bound) for argument in step.arguments)
    return evolve(step, kernel=promote_name(step.kernel), shared=2 * step.shared, arguments=arguments)


def _promote_argument(argument: Argument, bound: Bound) -> Argument:
    if isinstance(argument, PointerArgument):
        return evolve(argument, offset=argument.offset * (2 if _is_single(bound, argument.buffer) else 1))
    if isinstance(argument, ValueArgument) and argument.dtype == "f32":
        return ValueArgument("f64", float(argument.value))
    return argument


def _without_includes(text: str) -> str:
    return _INCLUDE.sub("", text)


def prefix(code: str) -> str:
    """The macros; ``float`` itself comes last, so that none of the others contains it already replaced."""
    return "".join(f"{line}\n" for line in _prefix(code))


def _prefix(code: str) -> Iterable[str]:
    for name, count in _SEVERAL.items():
        # with a literal such as 0.0f one argument stays a float, and the overloads of <math.h> are then ambiguous
        parameters = [f"double {letter}" for letter in "abc"[:count]]
        yield (
            f"static __device__ __forceinline__ double oracle_{name}({', '.join(parameters)}) "
            f"{{ return {name}({', '.join('abc'[:count])}); }}"
        )
    for name in _SEVERAL:
        yield f"#define {name}f oracle_{name}"
        if not re.search(rf"::\s*{name}\b", code):
            yield f"#define {name} oracle_{name}"
    for name in _MATH.split():
        yield f"#define {name}f {name}"
    for name in _FAST.split():
        yield f"#define __{name}f {name}"
    yield "#define __powf oracle_pow"
    for single, double in _ROUNDED.items():
        for mode in _MODES:
            yield f"#define __{single}_{mode} __{double}_{mode}"
    for mode in _MODES:
        yield f"#define __fmaf_{mode} __fma_{mode}"
        for integer in _INTEGERS:
            yield f"#define __float2{integer}_{mode} __double2{integer}_{mode}"
        yield f"#define __double2float_{mode}(x) (x)"
    for integer in _INTEGERS:
        yield f"#define __{integer}2float_rn __{integer}2double_rn"
    yield "#define __frsqrt_rn rsqrt"
    yield "#define __fdividef(x, y) ((double)(x) / (y))"
    yield "#define __saturatef(x) oracle_fmin(oracle_fmax((x), 0.0), 1.0)"
    for lanes in "234":
        yield f"#define make_float{lanes} make_double{lanes}"
        yield f"#define float{lanes} double{lanes}"
    yield "#define float double"
