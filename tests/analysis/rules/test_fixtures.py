"""The fixtures get the hints that they deserve, and rewrites by the catalogue silence them. Which lines deserve what
was read off the files by eye (their head comments say what is naive)."""

from pathlib import Path

import pytest

from agent.analysis.rules import Selection, check, rules
from agent.analysis.rules.pages import ideas
from agent.ideas.registry import entries
from agent.ideas.request import Request
from agent.ideas.source import implement, program, propose
from agent.source.document import Document, read
from agent.workload.find import find_workload

ROOT = Path(__file__).resolve().parents[3] / "fixtures"

DESERVED = {
    "argmax.cu": [],
    "bias_gelu.cu": [("M3", "x[row * cols + col]")],
    "black_scholes.cu": [],
    "conv2d.cu": [("M2", "x[((image * channels + c) * height + h) * width + w]")],
    "cosine.cu": [("W6", "for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {")],
    "gaussian_blur.cu": [("M3", "in[row * width + col]")],
    "heat.cu": [("M3", "now[here - 1]")],
    "histogram.cu": [("T3", "atomicAdd(&bins[data[i]], 1u)")],
    "lattice_boltzmann.cu": [
        ("M2", "in[(from_y * width + from_x) * Q + q]"),
        ("M1", "out[(y * width + x) * Q + q]"),
    ],
    "layernorm.cu": [("W6", "for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {")],
    "matmul.cu": [("M3", "a[row * k + i]")],
    "matvec.cu": [("M2", "a[(size_t)row * cols + i]")],
    "reduction.cu": [("W6", "for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {")],
    "rmsnorm.cu": [("W6", "for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {")],
    "scan.cu": [],
    "softmax.cu": [("W6", "for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {")],
    "transpose.cu": [("M2", "out[(size_t)col * rows + row]")],
    "broken/divergent_barrier.cu": [("Y1", "__syncthreads()")],
    "broken/hang.cu": [],
    "broken/missing_barrier.cu": [("Y3", "s[t + stride]")],
    "broken/out_of_bounds.cu": [("L4", "x[i]")],
    "broken/race.cu": [("Y3", "s[t - 1]")],
    "broken/syntax_error.cu": [],
}
LINES = {
    "broken/divergent_barrier.cu": 30,
    "broken/missing_barrier.cu": 28,
    "broken/out_of_bounds.cu": 25,
    "broken/race.cu": 27,
}


def said(document: Document, rule: str = "") -> list[tuple[str, str]]:
    return [
        (finding.rule, document.slice_text(finding.span).split("\n")[0])
        for kernel in document.kernels
        for finding in check(document, kernel)
        if finding.rule.startswith(rule)
    ]


@pytest.mark.parametrize("name", DESERVED)
def test_what_a_fixture_deserves(name: str) -> None:
    assert said(read(ROOT / name)) == DESERVED[name]


@pytest.mark.parametrize("name", LINES)
def test_a_fault_is_on_the_line_that_the_fixture_says(name: str) -> None:
    document = read(ROOT / name)
    (finding,) = (finding for kernel in document.kernels for finding in check(document, kernel))
    assert document.line(finding.span.start) == LINES[name]
    assert all(document.line(other.span.start) > 1 and other.words for other in finding.related)


FIXED = [
    (name, rule.id, rule.fix)
    for name, found in DESERVED.items()
    for rule in rules()
    if rule.fix and any(rule.id == identity for identity, _ in found)
] + [("matvec.cu", "M2", "team-for-each-row"), ("transpose.cu", "M2", "transposed-staging")]


@pytest.mark.parametrize(("name", "rule", "fix"), FIXED)
def test_the_catalogue_silences_what_it_mends(name: str, rule: str, fix: str) -> None:
    document = read(ROOT / name)
    for kernel in document.kernels:
        before = [finding for finding in check(document, kernel) if finding.rule == rule]
        if not before:
            continue
        assert {finding.fix for finding in before} == {fix}
        workload = find_workload(document, kernel)
        request = Request(document, kernel, workload, workload.plan)
        fitting = [idea for idea in propose(request).ideas if idea.name == fix]
        assert fitting, f"{fix} does not apply to {name}"
        candidate = implement(fitting[0], request)[0]
        rewritten = program(document, kernel, candidate, "test").document
        left = said(rewritten, rule)
        places = len(before[0].related) + 1
        # a tree that stays is one of several; what was mended is no longer named
        remaining = sum(
            len(finding.related) + 1
            for one in rewritten.kernels
            for finding in check(rewritten, one, selection=Selection(select=(rule,)))
        )
        assert remaining < places and (rule == "W6" or left == [])


def test_a_fix_is_an_idea_of_the_catalogue() -> None:
    named = {idea for rule in rules() for idea in ideas(rule)}
    assert {"team-for-each-row", "transposed-staging", "index-exchange"} <= named <= {entry.name for entry in entries()}


def test_a_row_that_no_thread_walks_over_has_no_idea_that_would_not_fit() -> None:
    document = read(ROOT / "conv2d.cu")
    (finding,) = (one for kernel in document.kernels for one in check(document, kernel) if one.rule == "M2")
    assert finding.fix is None


def test_at_least_twelve_rules_of_which_no_two_are_alike() -> None:
    found = rules()
    assert len(found) >= 12
    assert len({rule.id for rule in found}) == len({rule.name for rule in found}) == len(found)
    assert len({rule.title for rule in found}) == len(found)
