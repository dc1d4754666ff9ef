"""Conditions decided for many threads at once, against the same decided by hand or one thread at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.analysis.affine import Atom, Poly, number, unknown
from agent.analysis.facts import Facts, analyse
from agent.analysis.guards import decide, guards
from agent.analysis.syntax import callee
from agent.analysis.vectors import vector
from agent.source.document import parse

THREADS = {"threadIdx.x": np.arange(8)}


def facts(body: str) -> Facts:
    document = parse(f"__global__ void k(float* y, int n) {{ {body} }}".encode())
    return analyse(document, document.kernels[0])


DECISIONS = {
    "threadIdx.x < 4": ("11110000", "00001111"),
    "threadIdx.x < n": ("00000000", "00000000"),
    "threadIdx.x < 4 && n > 2": ("00000000", "00001111"),
    "threadIdx.x < 4 || n > 2": ("11110000", "00000000"),
    "!(threadIdx.x % 2 == 0)": ("01010101", "10101010"),
    "threadIdx.x & 4": ("00001111", "11110000"),
    "1 > 2": ("00000000", "11111111"),
}


@pytest.mark.parametrize("condition", DECISIONS)
def test_decisions(condition: str) -> None:
    found = facts(f"if ({condition}) y[0] = 1;")
    (guard,) = guards(found.accesses[0].node, found.node)
    yes, no = (np.broadcast_to(one, 8) for one in decide(guard.condition, found.scope, THREADS))
    assert ("".join("01"[int(bit)] for bit in yes), "".join("01"[int(bit)] for bit in no)) == DECISIONS[condition]


GUARDS = {
    "if (n) mark();": [("(n)", True, "if")],
    "if (n) ; else mark();": [("(n)", False, "if")],
    "if (n > 3) return; mark();": [("(n > 3)", False, "exit")],
    "for (int i = 0; i < n; ++i) { if (i == 2) continue; mark(); }": [
        ("(i == 2)", False, "exit"),
        ("i < n", True, "loop"),
    ],
    "while (n) mark();": [("(n)", True, "loop")],
    "do mark(); while (n);": [],
    "int a = n > 2 ? mark() : 0;": [("n > 2", True, "if")],
    "bool b = n > 2 && mark();": [("n > 2", True, "if")],
    "bool b = n > 2 || mark();": [("n > 2", False, "if")],
    "switch (n) { case 1: mark(); }": [("(n)", True, "switch")],
    "if (n) { y[0] = 1; } mark();": [],
}


@pytest.mark.parametrize("body", GUARDS)
def test_guards(body: str) -> None:
    found = facts(body)
    call = next(one for one in found.calls if callee(one) == "mark")
    listed = [
        (one.condition.text.decode(), one.taken, one.kind) for one in guards(call, found.node) if one.condition.text
    ]
    assert listed == GUARDS[body]


LEAVES = st.one_of(
    st.integers(-40, 40).map(number), st.sampled_from(["t", "u", "n"]).map(lambda name: unknown(Atom(name)))
)


def combined(children: st.SearchStrategy[Poly]) -> st.SearchStrategy[Poly]:
    def formula(operation: str, left: Poly, right: Poly) -> Poly:
        return unknown(Atom(f"({left}){operation}({right})", frozenset(), (operation, (left, right))))

    sums = st.tuples(children, children).flatmap(
        lambda pair: st.sampled_from([pair[0] + pair[1], pair[0] - pair[1], pair[0] * pair[1]])
    )
    return sums | st.builds(formula, st.sampled_from(["min", "max", "/", "%", "&", "|", "^"]), children, children)


@given(st.recursive(LEAVES, combined, max_leaves=6), st.integers(-50, 50))
def test_many_threads_at_once_are_the_same_as_one_by_one(poly: Poly, n: int) -> None:
    threads = [(t, t * 3 - 7) for t in range(6)]
    alone = [poly.evaluate({"t": t, "u": u, "n": n}) for t, u in threads]
    at_once = vector(poly, {"t": np.array([t for t, _ in threads]), "u": np.array([u for _, u in threads]), "n": n})
    if None in alone:
        assert at_once is None
    else:
        assert at_once is not None and list(np.broadcast_to(at_once, 6)) == alone
