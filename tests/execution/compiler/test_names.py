"""Files whose names a compiler or an assembler would misread."""

from pathlib import Path

import pytest

from agent.execution.compiler import Build, CompileFailure, Options, compile_slice
from agent.source.document import read
from agent.source.slicing import device_slice

KERNEL = "__global__ void k(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = 2; }\n"


@pytest.mark.parametrize("name", ["-x.cu", 'a"q.cu', "b\\c.cu", '-"\n".cu', "größe 🚀.cu", "$(ls);.cu"])
@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_a_file_compiles_whatever_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(name) if relative else tmp_path / name
    file.write_text(KERNEL)
    found = compile_slice(device_slice(read(file), ["k"]), Options("sm_90"))
    assert isinstance(found, Build) and found.resources["k"].registers > 0
    file.write_text(KERNEL.replace("= 2", "= y"))
    wrong = compile_slice(device_slice(read(file), ["k"]), Options("sm_90"))
    assert isinstance(wrong, CompileFailure) and "line 1" in wrong.message
    assert wrong.diagnostics[0].file == str(file)
