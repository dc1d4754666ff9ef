"""A probed extent that is too small, met by the editor's jobs: an input to be stated, no fault of the kernel."""

from pathlib import Path

import pytest

from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.worker.asked import Options, Task
from cuda_lsp.worker.tasks import run
from tests.cli.test_probing import HIDDEN


@pytest.mark.parametrize("job", ["verify", "optimize"])
def test_a_job_asks_for_the_extent(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "one.cu"
    file.write_text(HIDDEN)
    text = HIDDEN.replace("x[", "1.0f * x[") if job == "verify" else HIDDEN
    options = Options(device="emulator", against="saved", rounds=1, candidates=1)
    with pytest.raises(CommandError, match="the probed extent of `x` is too small at n=") as stopped:
        run(Task(job, str(file), text.encode(), "one", options), lambda message: None)
    assert stopped.value.code == Exit.INPUT
