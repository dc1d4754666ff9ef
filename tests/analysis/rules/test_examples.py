"""Each rule's own examples: a finding on every marked line and on no other, and silence where silence is claimed."""

import re

import pytest

from agent.analysis.rules import EVERYTHING, Rule, check, rules
from agent.analysis.rules.registry import by_id
from agent.source.document import Document, parse


def found_lines(document: Document, rule: str) -> list[int]:
    return sorted(
        document.line(finding.span.start)
        for kernel in document.kernels
        for finding in check(document, kernel, selection=EVERYTHING)
        if finding.rule == rule
    )


def marked_lines(text: str, rule: str) -> list[int]:
    return [at for at, line in enumerate(text.split("\n"), 1) if re.search(rf"// (?:.*\b)?{rule}\b(?!:)", line)]


def cases(kind: str) -> list[object]:
    return [
        pytest.param(one, text, id=f"{one.id}-{at}") for one in rules() for at, text in enumerate(getattr(one, kind))
    ]


@pytest.mark.parametrize(("rule", "text"), cases("fires"))
def test_it_fires_where_marked(rule: Rule, text: str) -> None:
    document = parse(text.encode(), "example.cu")
    assert document.kernels and all(kernel.damage is None for kernel in document.kernels)
    assert marked_lines(text, rule.id)
    assert found_lines(document, rule.id) == marked_lines(text, rule.id)


@pytest.mark.parametrize(("rule", "text"), cases("silent"))
def test_it_is_silent(rule: Rule, text: str) -> None:
    document = parse(text.encode(), "example.cu")
    assert document.kernels and all(kernel.damage is None for kernel in document.kernels)
    assert found_lines(document, rule.id) == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_the_form_of_a_rule(rule: Rule) -> None:
    assert rule.fires and rule.silent and rule.silent_when
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.title[0].isupper() or not rule.title[0].isalpha() or rule.title.startswith(("threadIdx", "blockIdx"))
    assert not rule.title.endswith(".") and rule.why.endswith(".")
    assert by_id()[rule.id] is rule
