"""Which assignment has the last word on what a use of a variable reads."""

import pytest

from agent.analysis.facts import analyse
from agent.analysis.patterns.settled import settled
from agent.analysis.syntax import descendants, text
from agent.source.document import parse

CASES = {
    "given anew": ("v = 1.f; v = s[0]; USE(v);", "v = s[0]"),
    "declared only": ("USE(v);", None),
    "given in a branch": ("v = s[0]; if (n > 1) { v = 2.f; } USE(v);", None),
    "given in the same branch": ("if (n > 1) { v = 2.f; USE(v); }", "v = 2.f"),
    "added to since": ("v = s[0]; v += 1.f; USE(v);", None),
    "changed later in the loop": ("v = s[0]; for (int i = 0; i < n; ++i) { USE(v); v = 2.f; }", None),
    "changed later in a while loop": ("v = s[0]; while (n > 1) { USE(v); v = 2.f; }", None),
    "given in each turn": ("for (int i = 0; i < n; ++i) { v = s[0]; USE(v); v = 2.f; }", "v = s[0]"),
    "used in a loop": ("v = s[0]; for (int i = 0; i < n; ++i) { USE(v); }", "v = s[0]"),
    "jumped over": ("if (n > 1) goto on; v = s[0]; on: USE(v);", None),
    "in its own new value": ("v = s[0]; v = USE(v);", None),
    "part of an expression": ("n = (v = s[0]) > 1.f; USE(v);", None),
}


@pytest.mark.parametrize("case", CASES)
def test_last_assignment(case: str) -> None:
    body, expected = CASES[case]
    source = f"__global__ void k(const float* s, int n) {{ float v = 0.f; {body} }}"
    document = parse(source.encode(), "test.cu")
    facts = analyse(document, document.kernels[0])
    call = next(one for one in descendants(facts.body, "call_expression") if text(one).startswith("USE"))
    use = next(one for one in descendants(call, "identifier") if text(one) == "v")
    symbol = facts.symbols.resolve(use)
    assert symbol is not None
    found = settled(use, symbol, facts)
    assert (None if found is None else text(found)) == expected
