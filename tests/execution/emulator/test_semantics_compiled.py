"""Both back ends stand on one table of semantics: what compiled code computes equals what NumPy computes, bit for bit,
over the inputs that a card was asked, and so it equals the card where PTX defines the result."""

import numpy as np
import pytest

from tests.execution.emulator.semantics_cases import cases
from tests.execution.emulator.semantics_record import key
from tests.execution.emulator.semantics_running import emulated
from tests.execution.emulator.test_semantics_card import agree, recorded

pytest.importorskip("llvmlite")

CASES = cases()
PART = 120
# of rounding other than to nearest, of halves made from float64, and of selectors that pick from a table
LEFT_OUT = ("prmt", "fns", "cvt", "ex2", "tanh", "fma", "add", "sub", "mul", "div", "rcp", "sqrt")


@pytest.mark.parametrize("first", range(0, len(CASES), PART))
def test_compiled_code_equals_the_numpy_back_end_and_the_card(first: int) -> None:
    from tests.execution.emulator.semantics_compiled import compiled

    chosen = CASES[first : first + PART]
    found = compiled((case, recorded()[key(case.sources)]) for case in chosen)
    for case in chosen:
        rows, result = recorded()[key(case.sources)], found[case.text]
        if isinstance(result, str):
            assert case.text.startswith(LEFT_OUT), f"{case.text} has no compiled form: {result}"
            continue
        wanted = emulated(case, rows)
        wrong = np.flatnonzero((result != wanted).any(axis=0))
        shown = [([hex(x) for x in rows[:, lane]], hex(result[0, lane]), hex(wanted[0, lane])) for lane in wrong[:3]]
        assert not len(wrong), f"{case.text} {len(wrong)} lanes: {shown}"
        agree(case, rows, result, recorded()[case.text].astype(np.uint64))


def test_what_compilers_write_most_has_a_compiled_form() -> None:
    from llvmlite import ir

    from tests.execution.emulator.semantics_compiled import lowered

    common = [case for case in CASES if not any(word in case.text for word in (".rz.", ".rm.", ".rp.", "e4m3", "e5m2"))]
    module = ir.Module()
    missing = [case.text for number, case in enumerate(common) if lowered(module, f"case{number}", case)]
    assert len(missing) < len(common) // 20, missing
