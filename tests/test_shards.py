"""Shards resume: what passed is not run again, what failed is, and other code starts anew."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
@pytest.mark.parametrize("number", range(3))
def test_it(number):
    assert number != {fails}
"""


@pytest.fixture
def shard(pytester: pytest.Pytester) -> Path:
    conftest = Path(__file__).with_name("conftest.py").read_text()
    pytester.makeconftest(conftest.replace("Path(__file__).resolve().parents[1]", "Path(__file__).resolve().parent"))
    return pytester.path / "shard.json"


def outcomes(pytester: pytest.Pytester, fails: int, shard: Path, *more: str) -> dict[str, int]:
    pytester.makepyfile(test_sample=TESTS.format(fails=fails))
    return pytester.runpytest("--shard", str(shard), *more, "-p", "no:cacheprovider").parseoutcomes()


def test_what_passed_is_left_out(pytester: pytest.Pytester, shard: Path) -> None:
    assert outcomes(pytester, 1, shard) == {"passed": 2, "failed": 1}
    assert outcomes(pytester, 1, shard) == {"failed": 1, "deselected": 2}
    assert outcomes(pytester, 9, shard) == {"passed": 1, "deselected": 2}


def test_other_code_starts_anew(pytester: pytest.Pytester, shard: Path) -> None:
    assert outcomes(pytester, 9, shard) == {"passed": 3}
    (pytester.path / "agent").mkdir()
    (pytester.path / "agent" / "new.py").write_text("changed = True\n")
    assert outcomes(pytester, 9, shard) == {"passed": 3}


def test_when_the_time_is_up_the_rest_waits(pytester: pytest.Pytester, shard: Path) -> None:
    assert outcomes(pytester, 9, shard, "--shard-seconds", "-1") == {"skipped": 3}
    assert outcomes(pytester, 9, shard) == {"passed": 3}


def test_groups_of_one_process_are_left_out_too(pytester: pytest.Pytester, shard: Path) -> None:
    pytester.makeini("[pytest]\nmarkers = xdist_group(name)")
    pytester.makepyfile(
        test_sample='import pytest\npytestmark = pytest.mark.xdist_group("one")\n' + TESTS.format(fails=1)
    )
    arguments = ("--shard", str(shard), "-n", "1", "--dist", "loadgroup", "-p", "no:cacheprovider")
    found = [pytester.runpytest_subprocess(*arguments).parseoutcomes() for _ in range(2)]
    assert found[0] == {"passed": 2, "failed": 1} and found[1]["failed"] == 1 and "passed" not in found[1]
