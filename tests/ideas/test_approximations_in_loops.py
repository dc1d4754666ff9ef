"""In loops, exponentials and powers of what is not negative may be approximated: the verdict weighs what that costs."""

import pytest

from agent.ideas import source
from tests.ideas.running import ask
from tests.ideas.test_float_arithmetic import NAME, kernel, lines

LOOP = "float s = 0, d = 0;\n    for (int k = 0; k < n; ++k) {\n        LINE\n    }\n    y[i] = s;"

TAKEN = {
    "s += expf(-x[k]);": "s += __expf(-x[k]);",
    "s += exp(x[k] * x[i]);": "s += __expf(x[k] * x[i]);",
    "s += powf(fabsf(x[k]), x[i]);": "s += __powf(fabsf(x[k]), x[i]);",
    "d = (x[i] - x[k]) * (x[i] - x[k]) + 2.0f; s += 1.0f / powf(d, x[i]);":
        "d = (x[i] - x[k]) * (x[i] - x[k]) + 2.0f; s += 1.0f / __powf(d, x[i]);",
    "const float r = sqrtf(x[k]) * 3.0f; s += powf(r, x[i]);":
        "const float r = sqrtf(x[k]) * 3.0f; s += __powf(r, x[i]);",
}  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_it_is_one_variant_among_others(line: str) -> None:
    assert lines(LOOP.replace("LINE", line), "approximations") == [TAKEN[line]]


LEFT = [
    "s += powf(x[k], x[i]);",  # may be negative
    "s += powf(x[k] * x[i], x[i]);",
    "d = x[k] * x[k]; d -= 1.0f; s += powf(d, x[i]);",
    "if (x[k] > 1.0f) d = x[k] * x[k]; s += powf(d - 1.0f, x[i]);",
    "s += sinf(x[k]) + logf(x[k]);",  # their errors are not relative
]


@pytest.mark.parametrize("line", LEFT)
def test_what_could_go_wrong_by_more_than_rounding_stays(line: str) -> None:
    request = ask(kernel(LOOP.replace("LINE", line)))
    assert NAME not in [idea.name for idea in source.propose(request).ideas]


def test_outside_loops_they_stay() -> None:
    request = ask(kernel("y[i] = expf(x[i]);"))
    assert NAME not in [idea.name for idea in source.propose(request).ideas]
