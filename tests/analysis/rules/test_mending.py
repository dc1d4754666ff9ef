"""Mechanical repairs: the finding is gone, nothing new is found, the result compiles, and nothing is offered where it
could be wrong."""

import pytest

from agent.analysis.rules import EVERYTHING, Finding, Rule, Severity, check, rules
from agent.execution.compiler import compile_slice
from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.source.document import Document, parse
from agent.source.edits import apply_edits
from agent.source.slicing import device_slice

MENDED = {"A1", "A3", "A4", "A5", "A8", "L14", "L19", "R4", "R6", "S1", "W1", "W4", "Y3", "Y4", "Y5"}


def findings(document: Document, rule: str) -> list[Finding]:
    found = [one for kernel in document.kernels for one in check(document, kernel, selection=EVERYTHING)]
    return [one for one in found if one.rule == rule]


def mended(text: str, rule: str, at: int = 0) -> str:
    document = parse(text.encode(), "example.cu")
    repair = findings(document, rule)[at].repair
    assert repair is not None
    return apply_edits(document.text, repair.edits).decode()


def offered(text: str, rule: str) -> list[bool]:
    return [one.repair is not None for one in findings(parse(text.encode(), "example.cu"), rule)]


def compiled(text: str) -> Build | CompileFailure:
    document = parse(text.encode(), "example.cu")
    return compile_slice(device_slice(document, [document.kernels[0].qualified_name]), Options("sm_90"))


def test_some_rules_mend() -> None:
    can = {rule.id for rule in rules() for example in rule.fires if any(offered(example, rule.id))}
    assert can == MENDED


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.id in MENDED], ids=lambda rule: rule.id)
def test_what_is_mended_is_found_no_more_and_compiles(rule: Rule) -> None:
    for example in rule.fires:
        for at, there in enumerate(offered(example, rule.id)):
            if not there:
                continue
            new = parse(mended(example, rule.id, at).encode(), "example.cu")
            old = parse(example.encode(), "example.cu")
            assert len(findings(new, rule.id)) < len(findings(old, rule.id))
            for other in rules():
                if other.severity is Severity.WARNING:
                    assert other is rule or len(findings(new, other.id)) <= len(findings(old, other.id))
        text = example
        while any(offered(text, rule.id)):
            text = mended(text, rule.id, offered(text, rule.id).index(True))
        assert isinstance(compiled(text), Build), compiled(text)


def test_line_ends_are_the_files() -> None:
    text = next(rule for rule in rules() if rule.id == "Y3").fires[0].replace("\n", "\r\n")
    new = mended(text, "Y3")
    assert "\r\n    __syncthreads();\r\n    float left" in new.replace("= 0.0f;  ", "= 0.0f;")
    assert new.count("\n") == new.count("\r\n")


POWER = "__global__ void k({type}* v) {{ v[threadIdx.x] = {call}; }}\n"


@pytest.mark.parametrize(
    ("type", "call", "wanted"),
    [
        ("float", "powf(v[0] + 1.0f, 2.0f)", "((v[0] + 1.0f) * (v[0] + 1.0f))"),
        ("float", "2.0f / powf(v[0], 3.0f)", "2.0f / (v[0] * v[0] * v[0])"),
        ("float", "powf(v[0], 4.0f)", "((v[0] * v[0]) * (v[0] * v[0]))"),
        ("double", "pow(v[0], 2.0)", "(v[0] * v[0])"),
        ("double", "pow(v[0], 0.5)", "sqrt(v[0])"),
        # a product would be of another type than the power
        ("float", "pow(v[0], 2.0)", None),
        ("double", "powf(v[0], 2.0f)", None),
        ("int", "pow(v[0], 2.0)", None),
    ],
)
def test_a_power_becomes_a_product_of_its_own_type(type: str, call: str, wanted: str | None) -> None:
    text = POWER.format(type=type, call=call)
    assert offered(text, "A4") == [wanted is not None]
    if wanted is not None:
        assert f"= {wanted};" in mended(text, "A4") or f"= {wanted}" in mended(text, "A4")
        assert isinstance(compiled(mended(text, "A4")), Build)


REFERENCE = (
    "struct S { int n; }; __global__ void k(float* x, const S& s) { if (threadIdx.x < s.n) x[threadIdx.x] = 1; }\n"
)


def test_a_reference_that_is_written_or_declared_elsewhere_stays() -> None:
    assert offered(REFERENCE, "R4") == [True]
    assert offered(REFERENCE.replace("const S&", "S&"), "R4") == [False]
    declared = REFERENCE.replace("__global__", "__global__ void k(float* x, const S& s);\n__global__", 1)
    assert offered(declared, "R4") == [False]


TILE = next(rule for rule in rules() if rule.id == "S1").fires[0].replace("  // S1", "")


@pytest.mark.parametrize(
    "more",
    [
        "float* flat = &tile[0][0]; flat[threadIdx.x] = 0.0f;",
        "float* row = tile[threadIdx.y]; row[0] = 0.0f;",
        "out[0] = sizeof(tile);",
    ],
)
def test_an_array_whose_shape_is_used_otherwise_is_not_padded(more: str) -> None:
    assert offered(TILE, "S1") == [True]
    text = TILE.replace("    __syncthreads();\n", f"    __syncthreads();\n    {more}\n", 1)
    assert not any(offered(text, "S1"))


def test_padding_stops_at_what_a_block_may_have() -> None:
    big = TILE.replace("[TILE][TILE]", "[384][TILE]")
    assert not any(offered(big, "S1")), "384 x 33 floats are more than 48 KB"
    sum_ = TILE.replace("[TILE][TILE]", "[TILE][TILE * 2 - 32]")
    assert "[TILE][(TILE * 2 - 32) + 1]" in mended(sum_, "S1")


SHUFFLE = (
    "__global__ void k(float* x, int n) {{\n    float v = x[threadIdx.x];\n    {code}\n    x[threadIdx.x] = v;\n}}\n"
)


@pytest.mark.parametrize(
    ("code", "sure"),
    [
        ("v += __shfl_xor(v, 1);", True),
        ("if (n > 3) v += __shfl(v, 0, 8);", True),
        ("if (threadIdx.x < n) v += __shfl_xor(v, 1);", False),
        ("for (int i = threadIdx.x; i < n; ++i) v += __shfl_xor(v, 1);", False),
        ("if (v > 0.0f) v += __shfl_xor(v, 1);", False),
    ],
)
def test_the_full_mask_only_where_all_lanes_come(code: str, sure: bool) -> None:
    assert offered(SHUFFLE.format(code=code), "W1") == [sure]


def test_every_old_warp_call_is_marked_and_mended_with_all_the_others() -> None:
    text = SHUFFLE.format(
        code="v += __shfl(__shfl_xor(v, 1), 2);\n    unsigned b = __ballot(v > 0.0f);\n    v += __all(b) + __any(n);"
    )
    document = parse(text.encode(), "example.cu")
    found = findings(document, "W1")
    assert [document.slice_text(one.span)[:6] for one in found] == ["__shfl", "__shfl", "__ball", "__all(", "__any("]
    for one in found:
        assert one.repair is not None and one.repair.title.endswith("in all 5 calls")
        after = parse(apply_edits(document.text, one.repair.edits), "example.cu")
        assert findings(after, "W1") == []
        assert "__shfl_sync(0xffffffffu, __shfl_xor_sync(0xffffffffu, v, 1), 2)" in after.text.decode()
        built = compile_slice(device_slice(after, ["k"]), Options(arch="sm_90"))
        assert isinstance(built, Build), built


RACE = """\
__global__ void k(const float* x, float* y, int n) {{
    __shared__ float s[256];
    int t = threadIdx.x;
    {before}
    s[t] = x[t];
    y[t] = s[(t + 1) % 256];
}}
"""


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("", True),
        ("if (n > 7) return;", True),
        ("if (t == 5) y[0] = 1.0f; else if (x[0] > 1.0f && t > 3) return;", False),
        ("while (x[t] > 0.0f) { if (t > 3) break; }", False),
    ],
)
def test_a_barrier_only_where_all_threads_come(before: str, wanted: bool) -> None:
    assert offered(RACE.format(before=before), "Y3") == [wanted]


def test_a_barrier_in_a_body_on_one_line() -> None:
    text = RACE.format(before="").replace("    s[t] = x[t];\n    y[t]", "    s[t] = x[t]; y[t]")
    assert "s[t] = x[t]; __syncthreads(); y[t] = s[(t + 1) % 256];" in mended(text, "Y3")
