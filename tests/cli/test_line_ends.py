"""A file whose lines end with carriage returns alone, as the command reads and writes it."""

from pathlib import Path

from agent.source.document import read
from agent.source.edits import splice
from cuda_lsp.terminal.writing import apply_document
from tests.cli.running import TRANSPOSED, run_json


def test_it_has_kernels_and_keeps_its_ends_when_a_rewrite_is_written(tmp_path: Path) -> None:
    file = tmp_path / "scale.cu"
    file.write_bytes(TRANSPOSED.replace("\n", "\r").encode())
    code, told = run_json("kernels", str(file))
    assert code == 0 and [one["line"] for one in told["kernels"]] == [1]
    old = read(file)
    kernel = old.kernel("scale")
    apply_document(old, splice(old, kernel, old.slice_text(kernel.span).replace("2.0f *", "3.0f *\n")))
    assert file.read_bytes().decode() == TRANSPOSED.replace("2.0f *", "3.0f *\n").replace("\n", "\r")
