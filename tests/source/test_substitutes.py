"""Values of the C headers, against Python's and NumPy's own."""

import math

import numpy as np
import pytest

from agent.source.substitutes import FLOAT_MACROS, MACROS, TYPES, prologue

INTEGERS = {
    "CHAR": np.int8, "SCHAR": np.int8, "SHRT": np.int16, "INT": np.int32, "LLONG": np.int64, "INT8": np.int8,
    "INT16": np.int16, "INT32": np.int32,
}  # fmt: skip
UNSIGNED = {
    "UCHAR": np.uint8, "USHRT": np.uint16, "UINT": np.uint32, "ULLONG": np.uint64, "UINT8": np.uint8,
    "UINT16": np.uint16, "UINT32": np.uint32,
}  # fmt: skip
MATH = {
    "M_E": math.e,
    "M_LOG2E": math.log2(math.e),
    "M_LOG10E": math.log10(math.e),
    "M_LN2": math.log(2),
    "M_LN10": math.log(10),
    "M_PI": math.pi,
    "M_PI_2": math.pi / 2,
    "M_PI_4": math.pi / 4,
    "M_1_PI": 1 / math.pi,
    "M_2_PI": 2 / math.pi,
    "M_2_SQRTPI": 2 / math.sqrt(math.pi),
    "M_SQRT2": math.sqrt(2),
    "M_SQRT1_2": math.sqrt(0.5),
}


def value(text: str) -> int:
    return eval(text.rstrip(")").rstrip("UL") + ")" * text.endswith(")") if "-" not in text else text.replace("LL", ""))


@pytest.mark.parametrize("name", [*INTEGERS, *UNSIGNED])
def test_integer_limits(name):
    info = np.iinfo({**INTEGERS, **UNSIGNED}[name])
    assert value(MACROS[f"{name}_MAX"]) == info.max
    if name in INTEGERS:
        assert value(MACROS[f"{name}_MIN"]) == info.min


@pytest.mark.parametrize(("prefix", "dtype"), [("FLT", np.float32), ("DBL", np.float64)])
def test_float_limits(prefix, dtype):
    info = np.finfo(dtype)
    for name, expected in (("MAX", info.max), ("MIN", info.tiny), ("EPSILON", info.eps)):
        assert dtype(FLOAT_MACROS[f"{prefix}_{name}"].rstrip("F")) == expected
    assert int(FLOAT_MACROS[f"{prefix}_MANT_DIG"]) == info.nmant + 1
    assert int(FLOAT_MACROS[f"{prefix}_DIG"]) == info.precision
    assert int(FLOAT_MACROS[f"{prefix}_MAX_EXP"]) == info.maxexp
    assert int(FLOAT_MACROS[f"{prefix}_MIN_EXP"].strip("()")) == info.minexp + 1


def test_mathematical_constants():
    assert {name for name in MACROS if name.startswith("M_")} == MATH.keys()
    for name, expected in MATH.items():
        assert float(MACROS[name]) == pytest.approx(expected, rel=2e-16)


def test_only_what_is_used_and_not_given():
    none = frozenset()
    assert prologue(none, none, none, none, none, False) == ""
    used = frozenset({"uint", "M_PI", "foo"})
    assert prologue(used, none, none, none, none, False).count("\n") == 3
    assert "M_PI" not in prologue(used, none, frozenset({"M_PI"}), none, none, False)


def test_names_of_a_header_need_a_header_that_may_bring_them():
    used = frozenset({"uint8_t", "FLT_MAX", "INT_MAX"})
    nothing = prologue(used, frozenset(), frozenset(), frozenset({"cstdio", "cuda_fp16.h"}), frozenset(), False)
    assert "INT_MAX" in nothing and "uint8_t" not in nothing and "FLT_MAX" not in nothing
    for header in ("helper.h", "thrust/sort.h"):
        both = prologue(used, frozenset(), frozenset(), frozenset({header}), frozenset(), False)
        assert "uint8_t" in both and "FLT_MAX" in both
    assert "FLT_MAX" not in prologue(used, frozenset(), frozenset(), frozenset({"cstdint"}), frozenset(), False)
    assert "uint8_t" not in prologue(used, frozenset(), frozenset(), frozenset({"cfloat"}), frozenset(), False)


def test_fixed_width_types_have_their_width():
    widths = {"signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned int": 32}
    for bits in (8, 16, 32):
        assert widths[TYPES[f"int{bits}_t"]] == bits == widths[TYPES[f"uint{bits}_t"]]
        assert TYPES[f"uint{bits}_t"].startswith("unsigned")
