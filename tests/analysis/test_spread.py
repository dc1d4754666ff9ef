"""What lanes of a warp are apart, through pointers and numbers that move: coefficients by hand."""

import pytest

from agent.analysis.facts import Facts, analyse
from agent.source.document import parse

HEAD = "__global__ void k(const float* x, float* y, const int* order, int n, int m) {\n int i = threadIdx.x;\n"


def facts(body: str, before: str = "") -> Facts:
    document = parse(f"{before}{HEAD}{body}\n}}\n".encode())
    return analyse(document, document.kernels[0])


# the body, what threadIdx.x is multiplied with in the access to x
FOLLOWED = {
    "x += i * 4; y[i] = x[0];": "4",
    "const float* p = x + i; p += 8 * i; for (int k = 0; k < n; ++k) { y[i] += *p; p += m; }": "9",
    "const float* p = x + 2 * i; for (int k = 0; k < n; ++k) { y[i] += *p; p++; }": "2",
    "int at = i * n; while (at < m) { y[i] += x[at]; if (n > 2) at += 32; at += n; y[0] = at; }": "n",
    "y[i] = x[3 * i]; x += i;": "3",
    "y[i] = *((const float*)&x[5 * i]);": "5",
}


@pytest.mark.parametrize("body", FOLLOWED)
def test_lanes_are_followed_through_steps(body: str) -> None:
    (read,) = [one for one in facts(body).accesses if one.name == "x"]
    assert read.spread is not None and str(read.spread.coefficient("threadIdx.x")) == FOLLOWED[body]


# threads take different steps, or one of several pointers
NOT_FOLLOWED = (
    "const float* p = x + i; if (i > 3) p += 8; y[i] = *p;",
    "const float* p = x; for (int k = 0; k < n; ++k) { y[i] += *p; p += order[i]; }",
    "const float* p = x + i; if (n) p = x; y[i] = *p;",
    "move(x); y[i] = x[i]; x = y;",
)


@pytest.mark.parametrize("body", NOT_FOLLOWED)
def test_what_threads_may_do_differently_is_not_followed(body: str) -> None:
    found = [one.spread for one in facts(body).accesses if one.name in ("x", "") and not one.writes and one.name != "y"]
    assert all(one is None or "unknown" in one.depends for one in found)


def test_two_moments_are_never_taken_for_one() -> None:
    body = "const float* p = x + i; for (int k = 0; k < n; ++k) { y[i] = *p; p += m; y[i] += *p; }"
    one, other = [access.spread for access in facts(body).accesses if access.name == "x"]
    assert one is not None and other is not None and (one - other).constant is None


def test_a_macro_that_takes_a_vector_is_known_by_its_text() -> None:
    before = "#define F4(v) (reinterpret_cast<float4*>(&(v))[0])\n#define AT(v) *(float4*)(&(v))\n"
    before += "#define G(v) g(&(v))\n"
    found = [one.cast for one in facts("y[i] = F4(x[i]).x + AT(x[4 * i]).x + G(x[i]) + x[i];", before).accesses]
    assert found[1:] == [("float", "float4"), ("float", "float4"), None, None]
