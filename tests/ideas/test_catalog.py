"""The frame: every module of the catalogue registers, every example shows what it says, and the page is up to date."""

import pkgutil
from pathlib import Path

import pytest

from agent.execution.compiler import CompileFailure, Options, build
from agent.ideas import catalog
from agent.ideas.idea import Scope
from agent.ideas.pages import example_candidates, example_request, page
from agent.ideas.registry import Entry, Match, Refusal, catalogued, entries
from agent.ideas.source import Request, implement, program, propose
from agent.ideas.view import view
from agent.source.document import parse
from tests.ideas.running import ask

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ideas.md"


def test_every_file_of_the_catalogue_is_an_idea() -> None:
    files = {module.name for module in pkgutil.iter_modules(catalog.__path__)}
    assert {entry.name.replace("-", "_") for entry in entries()} == files


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_examples_compile_in_every_variant(entry: Entry) -> None:
    request = example_request(entry)
    made = example_candidates(entry)
    assert made, propose(request).considered
    for candidate in made:
        built = build(program(request.document, request.kernel, candidate, "candidate"), Options(arch="sm_90"))
        assert not isinstance(built, CompileFailure), built
        assert candidate.ideas[0].name == entry.name


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m agent.ideas.pages > docs/ideas.md"


def test_what_an_idea_enables_exists() -> None:
    names = {entry.name for entry in entries()}
    assert {name for entry in entries() for name in (*entry.enables, *entry.conflicts)} <= names


def test_every_idea_is_proposed_or_has_a_reason() -> None:
    request = example_request(entries()[0])
    found = propose(request)
    named = [idea.name for idea in found.ideas] + [name for name, _ in found.considered]
    assert sorted(named) == [entry.name for entry in entries()]
    assert all(reason for _, reason in found.considered)


def test_a_damaged_kernel_gets_no_idea_and_the_reason() -> None:
    text = "__global__ void k(float* x, int n) { x[threadIdx.x] = ; }\n"
    document = parse(text.encode(), "broken.cu")
    (kernel,) = document.kernels
    assert kernel.damage
    whole = example_request(entries()[0])
    request = Request(document, kernel, whole.workload, whole.plan)
    found = propose(request)
    assert found.ideas == () and {reason for _, reason in found.considered} == {kernel.damage}
    assert implement(propose(whole).ideas[0], request) == ()


def test_a_kernel_that_the_plan_does_not_launch() -> None:
    text = next(entry for entry in entries() if entry.name == "index-exchange").example
    request = ask(text)
    document = parse(text.replace("void scale(", "void other(").encode(), "test.cu")
    other = Request(document, document.kernels[0], request.workload, request.plan)
    found = propose(other)
    assert not found.ideas and {reason for _, reason in found.considered} == {"the plan does not launch this kernel"}
    assert view(other).threads is None


def test_two_ideas_cannot_share_a_name() -> None:
    def examine(_: object) -> Match | Refusal:
        return Refusal("never")

    with pytest.raises(ValueError, match="index-exchange"):
        catalogued(name="index-exchange", title="", rationale="", needs=(), effect="", risk="", example="")(examine)


def test_the_scope_that_would_be_needed_is_named() -> None:
    """A non-square launch whose only remaining variant turns the launch is refused in words under a narrower scope."""
    request = example_request(next(entry for entry in entries() if entry.name == "index-exchange"))
    narrow = Request(request.document, request.kernel, request.workload, request.plan, Scope.DROP_IN)
    wide = {candidate.scope for idea in propose(request).ideas for candidate in implement(idea, request)}
    drop_in = {candidate.scope for idea in propose(narrow).ideas for candidate in implement(idea, narrow)}
    assert wide == {Scope.DROP_IN, Scope.RELAUNCH} and drop_in == {Scope.DROP_IN}
