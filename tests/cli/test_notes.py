"""What keeps a search from following the user's style is said, in a terminal and in the server's log."""

from pathlib import Path

from agent.search import events
from cuda_lsp.terminal.render import event_lines
from cuda_lsp.worker.advising import Heard
from tests.cli.running import run

NOTE = events.Note("not formatted as .clang-format says: it failed")


def test_a_note_is_a_line() -> None:
    (line,) = event_lines(NOTE)
    assert line.split(maxsplit=1) == ["note", NOTE.text]


def test_the_server_keeps_it_for_the_log() -> None:
    told: list[object] = []
    heard = Heard(told.append, None)
    heard(NOTE)
    assert told == [NOTE] and [line.split(maxsplit=1)[1] for line in heard.lines] == [NOTE.text]


def test_a_directive_that_no_kernel_has_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "// cuda-lsp: workload\n//   size n = 4\n__device__ float twice(float x) { return 2 * x; }\n"
        "// cuda-lsp: workload\n//   buffer x: f32[64] out\n//   launch k<<<1, 64>>>(x)\n"
        "__global__ void k(float* x) { x[threadIdx.x] = twice(1); }\n"
    )
    done = run("kernels", "k.cu", cwd=tmp_path)
    assert "k.cu:1: this directive is read for no kernel: `twice` is a device function" in done.stderr
    assert done.returncode == 0 and "workload" in done.stdout and done.stderr.count("directive") == 1
