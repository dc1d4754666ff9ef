"""Names of the C and C++ headers that nvcc gives device code and NVRTC does not, defined only where used.

Values are those of the C standard's headers on the platforms CUDA runs on (IEEE 754, 32-bit int, 64-bit long long);
``long`` follows the compiler.
"""

import re
from collections.abc import Mapping, Sequence

from agent.source.lexing import word_set
from agent.source.mixed_math import POW
from agent.source.type_traits import TRAITS, TYPE_TRAITS

_DEFINES_LIMITS = re.compile(r"cooperative_groups|cub/|cuda/|curand_kernel")
_DEFINES_WIDE = re.compile(r"cooperative_groups|cub/|cuda/|curand_kernel|cuda_pipeline|cuda_awbarrier")
_LONG = "(sizeof(long) == 8 ? 0x7fffffffffffffffLL : 0x7fffffffLL)"
_SIGNED, _UNSIGNED = "decltype((char *)0 - (char *)0)", "decltype(sizeof(0))"

_WIDE = {_SIGNED: "long long", _UNSIGNED: "unsigned long long"}

TYPES = {
    **{
        f"{kind}{bits}_t": written
        for bits, signed, unsigned in (
            (8, "signed char", "unsigned char"),
            (16, "short", "unsigned short"),
            (32, "int", "unsigned int"),
            (64, _SIGNED, _UNSIGNED),
        )
        for kind, written in (("int", signed), ("uint", unsigned))
    },
    "intptr_t": _SIGNED,
    "uintptr_t": _UNSIGNED,
    "intmax_t": _SIGNED,
    "uintmax_t": _UNSIGNED,
    "ssize_t": _SIGNED,
    "uint": "unsigned int",
    "ushort": "unsigned short",
    "ulong": "unsigned long",
    # of cuda.h and cufft.h, which NVRTC cannot read
    "CUtexObject": "unsigned long long",
    "CUsurfObject": "unsigned long long",
    "CUdeviceptr": "unsigned long long",
    "cufftReal": "float",
    "cufftDoubleReal": "double",
    "cufftComplex": "float2",
    "cufftDoubleComplex": "double2",
}

MACROS = {
    "CHAR_BIT": "8",
    "SCHAR_MIN": "(-128)",
    "SCHAR_MAX": "127",
    "UCHAR_MAX": "255",
    "CHAR_MIN": "(-128)",
    "CHAR_MAX": "127",
    "SHRT_MIN": "(-32768)",
    "SHRT_MAX": "32767",
    "USHRT_MAX": "65535",
    "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295U",
    "LLONG_MAX": "9223372036854775807LL",
    "LLONG_MIN": "(-9223372036854775807LL - 1LL)",
    "ULLONG_MAX": "18446744073709551615ULL",
    "LONG_MAX": f"((long){_LONG})",
    "LONG_MIN": f"((long)(-{_LONG} - 1))",
    "ULONG_MAX": "(~0UL)",
    "INT8_MIN": "(-128)",
    "INT8_MAX": "127",
    "UINT8_MAX": "255",
    "INT16_MIN": "(-32768)",
    "INT16_MAX": "32767",
    "UINT16_MAX": "65535",
    "INT32_MAX": "2147483647",
    "INT32_MIN": "(-2147483647 - 1)",
    "UINT32_MAX": "4294967295U",
    "INT64_MAX": f"(({_SIGNED})9223372036854775807LL)",
    "INT64_MIN": f"(({_SIGNED})(-9223372036854775807LL - 1LL))",
    "UINT64_MAX": f"(({_UNSIGNED})18446744073709551615ULL)",
    "SIZE_MAX": f"(({_UNSIGNED})-1)",
    "RAND_MAX": "2147483647",
    "INFINITY": "(__int_as_float(0x7f800000))",
    "NAN": "(__int_as_float(0x7fffffff))",
    "HUGE_VALF": "(__int_as_float(0x7f800000))",
    "HUGE_VAL": "(__longlong_as_double(0x7ff0000000000000LL))",
    "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}

FLOAT_MACROS = {
    "FLT_RADIX": "2",
    "FLT_MANT_DIG": "24",
    "FLT_DIG": "6",
    "FLT_MAX": "3.402823466e+38F",
    "FLT_MIN": "1.175494351e-38F",
    "FLT_EPSILON": "1.192092896e-07F",
    "FLT_MAX_EXP": "128",
    "FLT_MIN_EXP": "(-125)",
    "DBL_MANT_DIG": "53",
    "DBL_DIG": "15",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "DBL_MAX_EXP": "1024",
    "DBL_MIN_EXP": "(-1021)",
}

# nvcc's own headers overload these for device code in namespace std
_STD_FUNCTIONS = word_set(
    "abs fabs sqrt cbrt pow exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh "
    "asinh acosh atanh floor ceil round trunc rint nearbyint lround llround lrint llrint fmod remainder fma fmax "
    "fmin fdim hypot copysign erf erfc tgamma lgamma isnan isinf isfinite signbit frexp ldexp modf scalbn ilogb "
    "logb nextafter"
)
_STD_TYPES = frozenset(name for name in ("size_t", "ptrdiff_t", *TYPES) if name.endswith("_t")) - {"ssize_t"}

# Headers that bring neither <float.h> nor <stdint.h>, with nvcc and any C++ library; anything else may.
_PLAIN = word_set(
    "stdio.h cstdio stdlib.h cstdlib math.h cmath string.h cstring assert.h cassert limits.h climits time.h "
    "ctime sys/time.h unistd.h errno.h stddef.h cstddef stdbool.h sys/types.h cuda_runtime.h cuda_runtime_api.h "
    "cuComplex.h device_launch_parameters.h cuda_fp16.h cuda_bf16.h mma.h cooperative_groups.h math_constants.h "
    "vector_types.h"
)
_WITHOUT_FLOAT = _PLAIN | word_set(
    "iostream fstream sstream iomanip string vector chrono limits algorithm numeric random map set unordered_map "
    "memory utility functional array tuple type_traits complex thread mutex atomic stdexcept cuda.h stdint.h cstdint "
    "inttypes.h"
)
_WITHOUT_INTEGERS = _PLAIN | {"float.h", "cfloat"}
_OF_STDINT = re.compile(r"uint\d+_t|u?intmax_t|u?intptr_t|U?INT\d+_M(?:AX|IN)|SIZE_MAX")

# What <limits> and <algorithm> give device code under nvcc's --expt-relaxed-constexpr.
_NUMERIC_LIMITS = """namespace std { template <class T> struct numeric_limits;
#define CUDA_LSP_LIMITS(T, is_integer_, min_, lowest_, max_, epsilon_, infinity_, nan_) \\
template <> struct numeric_limits<T> { \\
static constexpr bool is_specialized = true, is_signed = (T)-1 < (T)0, is_integer = is_integer_; \\
static constexpr __host__ __device__ T min() { return min_; } \\
static constexpr __host__ __device__ T lowest() { return lowest_; } \\
static constexpr __host__ __device__ T max() { return max_; } \\
static constexpr __host__ __device__ T epsilon() { return epsilon_; } \\
static constexpr __host__ __device__ T infinity() { return infinity_; } \\
static constexpr __host__ __device__ T quiet_NaN() { return nan_; } };
#define CUDA_LSP_SIGNED(T, U) \\
CUDA_LSP_LIMITS(T, true, -(T)((U)-1 / 2) - 1, -(T)((U)-1 / 2) - 1, (T)((U)-1 / 2), 0, 0, 0)
#define CUDA_LSP_UNSIGNED(T) CUDA_LSP_LIMITS(T, true, 0, 0, (T)-1, 0, 0, 0)
CUDA_LSP_LIMITS(float, false, 1.175494351e-38F, -3.402823466e+38F, 3.402823466e+38F, 1.192092896e-07F, \\
__builtin_bit_cast(float, 0x7f800000), __builtin_bit_cast(float, 0x7fc00000))
CUDA_LSP_LIMITS(double, false, 2.2250738585072014e-308, -1.7976931348623157e+308, 1.7976931348623157e+308, \\
2.2204460492503131e-16, __builtin_bit_cast(double, 0x7ff0000000000000LL), \\
__builtin_bit_cast(double, 0x7ff8000000000000LL))
CUDA_LSP_SIGNED(signed char, unsigned char) CUDA_LSP_SIGNED(short, unsigned short) CUDA_LSP_SIGNED(int, unsigned)
CUDA_LSP_SIGNED(long, unsigned long) CUDA_LSP_SIGNED(long long, unsigned long long)
CUDA_LSP_UNSIGNED(unsigned char) CUDA_LSP_UNSIGNED(unsigned short) CUDA_LSP_UNSIGNED(unsigned)
CUDA_LSP_UNSIGNED(unsigned long) CUDA_LSP_UNSIGNED(unsigned long long) }
"""
_RELAXED = {
    "numeric_limits": _NUMERIC_LIMITS,
    "max": "namespace std { template <class T> constexpr __host__ __device__ const T& max(const T& a, const T& b) "
    "{ return a < b ? b : a; } }\n",
    "min": "namespace std { template <class T> constexpr __host__ __device__ const T& min(const T& a, const T& b) "
    "{ return b < a ? b : a; } }\n",
}


# What device code calls of the runtime's device side, which NVRTC does not declare; as in cuda_device_runtime_api.h.
_DEVICE_RUNTIME = {
    "cudaGridDependencySynchronize": "static __device__ __forceinline__ void cudaGridDependencySynchronize() "
    '{ asm volatile("griddepcontrol.wait;" ::: "memory"); }',
    "cudaTriggerProgrammaticLaunchCompletion": "static __device__ __forceinline__ void "
    'cudaTriggerProgrammaticLaunchCompletion() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }',
}
# Types that headers of libraries (cuBLAS, PyTorch, CUTLASS) bring with them.
_NARROW = {
    "cuda_bf16.h": re.compile(r"_*nv_bfloat16\w*"),
    "cuda_fp16.h": re.compile(r"__half\w*|half|half2"),
    "cuda_fp8.h": re.compile(r"__nv_fp8\w*"),
    "cuda_fp4.h": re.compile(r"__nv_fp4\w*"),
}
_OF_THRUST = re.compile(r"thrust/|cub/")
_BRINGS_NARROW = re.compile(r"(?:cublas|cudnn|cusparse|cute|cutlass|torch|ATen|c10|cub|nccl|cuda_fp8)[\w/]*[./].*")
# Types of the standard library that nvcc takes in device code, beyond those of TRAITS: CCCL has the same.
_STANDARD_TYPES = {
    "cuda/std/type_traits": word_set(
        "common_type common_type_t add_lvalue_reference add_lvalue_reference_t add_rvalue_reference "
        "add_rvalue_reference_t add_volatile add_volatile_t add_cv add_cv_t remove_cvref remove_cvref_t "
        "remove_all_extents remove_all_extents_t make_signed make_signed_t invoke_result invoke_result_t result_of "
        "result_of_t is_invocable is_invocable_v is_invocable_r is_invocable_r_v is_function is_function_v "
        "is_trivially_copy_constructible is_trivially_copy_constructible_v is_trivially_destructible "
        "is_trivially_destructible_v is_trivially_default_constructible is_trivially_default_constructible_v "
        "is_standard_layout is_standard_layout_v is_constructible is_constructible_v is_default_constructible "
        "is_default_constructible_v is_copy_constructible is_copy_constructible_v is_scalar is_scalar_v is_object "
        "is_object_v is_fundamental is_fundamental_v is_trivial is_trivial_v is_pod is_pod_v is_lvalue_reference "
        "is_lvalue_reference_v is_rvalue_reference is_rvalue_reference_v is_volatile is_volatile_v is_member_pointer "
        "is_assignable is_assignable_v conjunction conjunction_v disjunction disjunction_v negation negation_v "
        "alignment_of alignment_of_v rank rank_v extent extent_v aligned_storage aligned_storage_t type_identity "
        "type_identity_t is_compound is_compound_v is_null_pointer is_null_pointer_v is_nothrow_move_constructible"
    ),
    "cuda/std/utility": word_set(
        "move forward declval integer_sequence index_sequence make_index_sequence make_integer_sequence "
        "index_sequence_for in_place in_place_t"
    ),
    "cuda/std/cstddef": word_set("byte nullptr_t max_align_t"),
    "cuda/std/initializer_list": word_set("initializer_list"),
}
# What it takes only with --expt-relaxed-constexpr.
_STANDARD_FUNCTIONS = {
    "cuda/std/utility": word_set("pair make_pair swap exchange as_const cmp_less cmp_equal to_underlying"),
    "cuda/std/tuple": word_set("tuple make_tuple tie get apply tuple_size tuple_size_v tuple_element tuple_element_t"),
    "cuda/std/array": word_set("array"),
    "cuda/std/optional": word_set("optional nullopt nullopt_t make_optional"),
    "cuda/std/functional": word_set(
        "plus minus multiplies divides modulus negate less less_equal greater greater_equal equal_to not_equal_to "
        "logical_and logical_or logical_not bit_and bit_or bit_xor invoke identity"
    ),
    "cuda/std/algorithm": word_set("clamp lower_bound upper_bound fill copy"),
    "cuda/std/bit": word_set("bit_cast popcount countl_zero countr_zero bit_width bit_ceil bit_floor has_single_bit"),
    "cuda/std/span": word_set("span dynamic_extent"),
    "cuda/std/numeric": word_set("gcd lcm midpoint accumulate"),
    "cuda/std/ratio": word_set("ratio"),
}
# What Thrust, whose headers NVRTC does not take, gives device code under the names of the standard library.
_THRUST = {
    "cuda/std/tuple": word_set("tuple make_tuple tie get tuple_size tuple_element"),
    "cuda/std/utility": word_set("pair make_pair swap"),
    "cuda/std/functional": word_set(
        "plus minus multiplies divides modulus negate less less_equal greater greater_equal equal_to not_equal_to "
        "logical_and logical_or logical_not bit_and bit_or bit_xor"
    ),
}


def _standard(std_words: frozenset[str], relaxed_constexpr: bool) -> list[str]:
    """Lines that give names of ``namespace std`` as those of CCCL."""
    return _from_cccl("std", std_words, [_STANDARD_TYPES, *([_STANDARD_FUNCTIONS] if relaxed_constexpr else [])])


def _from_cccl(namespace: str, words: frozenset[str], tables: Sequence[Mapping[str, frozenset[str]]]) -> list[str]:
    used = [(header, sorted(words & names)) for table in tables for header, names in table.items()]
    using = " ".join(f"using ::cuda::std::{name};" for _, names in used for name in names)
    lines = [f"#include <{header}>\n" for header in dict.fromkeys(header for header, names in used if names)]
    return [*lines, f"namespace {namespace} {{ {using} }}\n"] if using else []


def _narrow(words: frozenset[str], given: frozenset[str], includes: frozenset[str], kept: frozenset[str]) -> list[str]:
    """The headers of the types that a library's header would have brought."""
    if not any(_BRINGS_NARROW.fullmatch(name) for name in includes):
        return []
    wanted = words - given
    return [
        f"#include <{header}>\n"
        for header, names in _NARROW.items()
        if header not in kept and any(names.fullmatch(word) for word in wanted)
    ]


def _standard_header(name: str) -> str | None:
    """Where CCCL defines a macro, if it does."""
    if name in FLOAT_MACROS:
        return "cuda/std/cfloat"
    if name in ("INFINITY", "NAN"):
        return "cuda/std/cmath"
    if name.startswith(("M_", "HUGE_", "RAND_")):
        return None
    return "cuda/std/cstdint" if _OF_STDINT.fullmatch(name) else "cuda/std/climits"


def prologue(
    words: frozenset[str],
    std_words: frozenset[str],
    given: frozenset[str],
    includes: frozenset[str],
    kept: frozenset[str],
    relaxed_constexpr: bool,
    thrust_words: frozenset[str] = frozenset(),
) -> str:
    """Definitions for the used ``words`` that are not ``given`` by the slice; ``std_words`` are those after ``std::``,
    ``thrust_words`` those after ``thrust::``.

    ``includes`` are the headers that the user's files include, ``kept`` those that the slice includes.
    Names of ``<float.h>`` and ``<stdint.h>`` come only where the file includes something that may bring them, as with
    nvcc; the rest nvcc includes by itself.
    """
    integers, floats = bool(includes - _WITHOUT_INTEGERS), bool(includes - _WITHOUT_FLOAT)

    def there(name: str) -> bool:
        return integers or not _OF_STDINT.fullmatch(name)

    members = [name for name in sorted(std_words & _STD_TYPES) if there(name)]
    types = [name for name in sorted((words | frozenset(members)) & TYPES.keys() - given) if there(name)]
    known = {**MACROS, **FLOAT_MACROS} if floats else MACROS
    macros = [name for name in sorted(words & known.keys() - given) if there(name)]
    using = [f"using ::{name};" for name in (*sorted(std_words & _STD_FUNCTIONS), *members)]
    cccl = _standard(std_words, relaxed_constexpr)
    cccl += _from_cccl("thrust", thrust_words, [_THRUST]) if any(map(_OF_THRUST.match, includes)) else []
    kept |= {"cuda/std"} if cccl else set()
    # CCCL's headers define 64-bit types in their own way and complain about macros that they would define
    wide = any(_DEFINES_WIDE.match(header) for header in kept)
    standard = any(_DEFINES_LIMITS.match(header) for header in kept)
    theirs = {name: header for name in macros if standard and (header := _standard_header(name))}
    lines = _narrow(words, given, includes, kept)
    lines += [f"#include <{header}>\n" for header in sorted(set(theirs.values()))]
    lines += [f"typedef {_WIDE.get(TYPES[name], TYPES[name]) if wide else TYPES[name]} {name};\n" for name in types]
    lines += [f"#define {name} {known[name]}\n" for name in macros if name not in theirs]
    lines += [TYPE_TRAITS] if std_words & TRAITS else []
    lines += [POW] if "pow" in words else []
    lines += [f"namespace std {{ {' '.join(using)} }}\n"] if using else []
    lines += cccl
    lines += [f"{_DEVICE_RUNTIME[name]}\n" for name in sorted(words & _DEVICE_RUNTIME.keys() - given)]
    lines += [_RELAXED[name] for name in sorted(std_words & _RELAXED.keys())] if relaxed_constexpr else []
    # what is wrong in these lines must not be reported on a line of the user's
    return "".join(['#line 1 "<cuda-lsp>"\n', *lines]) if lines else ""
