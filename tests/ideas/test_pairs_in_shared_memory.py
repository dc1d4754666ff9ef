"""The list of other elements in shared memory, under the same launch."""

import numpy as np
import pytest

from agent.ideas.idea import Scope
from tests.ideas.running import ask, candidates, refusal, rewritten, run
from tests.ideas.test_pairs_over_lanes import MEMBERS, numbers, pairs

NAME = "pairs-in-shared-memory"


@pytest.mark.parametrize("n", [1, 63, 64, 150, 200])
def test_sums_over_all_others(n: int) -> None:
    request = ask(pairs(), Scope.DROP_IN)
    (candidate,) = candidates(request, NAME)
    assert candidate.plan == request.plan and "x_tile[64];" in candidate.code
    x, y = numbers(n)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=n)["y"]
    np.testing.assert_array_equal(answer, ((x[None, :] - x[:, None]) * x[None, :]).sum(axis=1))


def test_a_body_under_the_bound_and_an_offset_list() -> None:
    text = pairs(
        guard="if (n > i)",
        before="{\n    float sum = x[i], most = -1e30f;",
        head="for (int j = 1; j <= n - 1; j++)",
        body="sum -= x[j];  // all but the first\n        most = fmaxf(most, x[j - 1] * x[i]);",
        after="y[i] += sum + most;\n    }",
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert "// all but the first" in candidate.code
    for n in (65, 130):
        x, y = numbers(n)
        answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=n)["y"]
        np.testing.assert_array_equal(answer, y + x - x[1:].sum() + (x[None, :-1] * x[:, None]).max(axis=1))


def test_whole_blocks_need_no_bound() -> None:
    text = pairs(guard="", launch="<<<n / 64, 64>>>").replace(
        "size     n = 2000", "size     n = 1920 min 64 multiple 64"
    )
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    assert "works" not in candidate.code
    x, y = numbers(128)
    answer = run(rewritten(request, candidate), request.workload, {"x": x, "y": y}, n=128)["y"]
    np.testing.assert_array_equal(answer, ((x[None, :] - x[:, None]) * x[None, :]).sum(axis=1))


def test_members_of_a_vector() -> None:
    request = ask(MEMBERS)
    (candidate,) = candidates(request, NAME)
    at = np.random.default_rng(5).integers(-5, 6, (150, 4)).astype(np.float32)
    answer = run(rewritten(request, candidate), request.workload, {"at": at}, n=150)["pull"]
    expected = (at[None, :, 3:] * (at[None, :, :2] - at[:, None, :2])).sum(axis=1)
    np.testing.assert_array_equal(answer.view(np.float32).reshape(150, 2), expected)


REFUSED = {
    "a short list": ("do not fill one tile", {"n": "50"}),
    "every other": ("neighbouring elements", {"head": "for (int j = 0; j < n / 2; ++j)", "body": "sum += x[2 * j];"}),
    "written": ("written by the kernel", {"body": "sum += y[j];"}),
    "two bounds": ("more than one bound", {"guard": "if (i >= n) return;\n    if (x[i] < 0) return;"}),
    "another bound": ("more than one bound", {"guard": "if (i >= n || n < 7) return;"}),
}


@pytest.mark.parametrize("near", REFUSED)
def test_near_misses(near: str) -> None:
    words, changes = REFUSED[near]
    assert words in refusal(ask(pairs(**changes)), NAME)


def test_line_ends_and_tabs_are_kept() -> None:
    request = ask(pairs().replace("    ", "\t").replace("\n", "\r\n"))
    (candidate,) = candidates(request, NAME)
    text = rewritten(request, candidate).document.text
    assert not text.replace(b"\r\n", b"").count(b"\n") and b"\r\n\t\t\tif (j == i) continue;" in text
