"""The ideas on rows, reductions and scans recognise the programs that they were thought of for."""

from pathlib import Path

import pytest

from agent.ideas.request import Request
from agent.ideas.source import propose
from agent.source.document import read
from agent.workload.find import find_workload
from agent.workload.settings import read_settings

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("fixture", "idea"),
    [
        ("matvec", "team-for-each-row"),
        ("spmv", "team-for-each-row"),
        ("histogram", "block-histogram"),
        ("layernorm", "row-over-blocks"),
        ("argmax", "argmax-by-shuffles"),
        ("scan", "scan-in-tiles"),
    ],
)
def test_a_fixture_and_its_idea(fixture: str, idea: str) -> None:
    document = read(str(FIXTURES / f"{fixture}.cu"))
    kernel = document.kernels[0]
    workload = find_workload(document, kernel, read_settings(FIXTURES))
    proposal = propose(Request(document, kernel, workload, workload.plan))
    assert idea in [found.name for found in proposal.ideas], dict(proposal.considered).get(idea)
