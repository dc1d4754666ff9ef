"""A scan runs the kernels anyway: what no rule reads off the text and the run showed is told among the findings."""

from agent.execution.targets import find_target
from agent.source.document import parse
from agent.workload.settings import Settings
from cuda_lsp.scanning.kernel import Asked, listed, scanned
from cuda_lsp.scanning.values import Hint
from cuda_lsp.settings import Settings as HintSettings
from tests.cli.test_hints_counted import SPREAD


def told(text: str, ignore: tuple[str, ...] = ()) -> list[Hint]:
    document = parse(text.encode(), "spread.cu")
    (one,) = listed(document)
    asked = Asked(find_target("H200"), 60.0, (), Settings(), HintSettings(ignore=ignore))
    found = scanned(one, document, document.kernels[0], asked)
    assert found.cost is not None
    return [hint for hint in found.hints if hint.rule.startswith("M")]


def test_a_line_that_counts_show_to_be_bad_is_a_finding() -> None:
    (hint,) = told(SPREAD)
    assert (hint.rule, hint.line) == ("M1", 8)
    assert hint.message.startswith("the lanes of a warp are spread over x (counted at n=256")
    assert hint.message.endswith(": 32 sectors a request, 4 would do)")


def test_it_is_left_out_as_a_rule_is() -> None:
    assert told(SPREAD, ignore=("M1",)) == []
    assert told(SPREAD.replace("x[place(i)];", "x[place(i)];  // cuda-lsp: ignore[M1]")) == []
    assert told(SPREAD.replace("x[place(i)]", "x[i]")) == []
