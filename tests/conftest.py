"""What all tests share.

Property tests have no limit on time: an example that a busy machine takes a second for is no failure. ``make test``
runs them with the profile ``steady``, always the same examples, so that its outcome hangs on the code alone; plain
``pytest`` draws new ones each time.

Shards that resume, for machines that can be had for minutes at a time: ``--shard FILE --shard-seconds N``. What passed
is written to FILE together with a hash of the code. A later run of the same code leaves it out, so that run after run
gets through all of it; when the time is up, the rest is skipped with that reason.
"""

import contextlib
import hashlib
import json
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from agent.execution.gpu import Gpu, open_gpu, why_no_gpu

ROOT = Path(__file__).resolve().parents[1]

# What a script starts in its background ignores these signals, and so would all that tests start.
for _name in ("SIGINT", "SIGHUP"):
    with contextlib.suppress(AttributeError, ValueError):
        if signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
            signal.signal(getattr(signal, _name), lambda *_: None)

settings.register_profile("drawn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("drawn"), derandomize=True)
settings.load_profile("drawn")


@pytest.fixture(scope="session")
def card() -> Iterator[Gpu]:
    """The card of this machine; tests that need one are skipped where there is none, with the reason."""
    gpu = open_gpu()
    if gpu is None:
        pytest.skip(f"needs an NVIDIA GPU: {why_no_gpu()}")
    yield gpu
    gpu.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", metavar="FILE", help="leave out what passed before, as FILE has it, and add to it")
    parser.addoption("--shard-seconds", type=float, default=float("inf"), help="start no test after this many seconds")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--shard"):
        config.pluginmanager.register(Shard(config), "shard")


class Shard:
    """One run of a shard. Only the process that reports writes; workers of pytest-xdist report to it."""

    def __init__(self, config: pytest.Config) -> None:
        self.file = Path(config.getoption("--shard"))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.ends = time.monotonic() + config.getoption("--shard-seconds")
        self.code = code_hash()
        self.reports = not hasattr(config, "workerinput")
        self.passed = _read(self.file, self.code)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        before = [item for item in items if _ungrouped(item.nodeid) in self.passed]
        items[:] = [item for item in items if _ungrouped(item.nodeid) not in self.passed]
        config.hook.pytest_deselected(items=before)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() > self.ends:
            pytest.skip("left for the next shard: this one's time is up")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.reports and report.when == "call" and report.passed:
            self.passed.add(_ungrouped(report.nodeid))
            self.file.write_text(json.dumps({"code": self.code, "passed": sorted(self.passed)}))


def _ungrouped(nodeid: str) -> str:
    """Without the group that xdist writes behind it."""
    test, bracket, behind = nodeid.rpartition("]")
    return test + bracket if behind.startswith("@") else nodeid


def code_hash(folders: Iterable[str] = ("agent", "cuda_lsp", "fixtures", "tests")) -> str:
    """A hash of all that an outcome rests on in these folders or files of the repository."""
    digest = hashlib.sha256()
    for path in sorted(set(_code(folders))):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def _code(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        for path in (ROOT / folder, *(ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".cu", ".cpp", ".hpp", ".json") and path.is_file():
                yield path


def _read(file: Path, code: str) -> set[str]:
    try:
        told = json.loads(file.read_text())
    except (OSError, ValueError):
        return set()
    return set(told["passed"]) if told.get("code") == code else set()
