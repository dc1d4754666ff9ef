"""What a Makefile runs a program with answers what the program takes from its command line."""

from pathlib import Path

import pytest

from agent.source.document import read
from agent.workload.describe import origin
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.static.run_line import run_line
from agent.workload.workload import Workload

SOURCE = """\
{directive}__global__ void scale(const float* x, float* y, int n, float a) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}}

int main(int argc, char** argv) {{
    if (argc != 4) {{
        printf("usage: n a repeat\\n");
        return 1;
    }}
    const int n = atoi(argv[1]);
    const float a = atof(argv[2]);
    const int repeat = atoi(argv[3]);
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    for (int i = 0; i < repeat; i++) scale<<<(n + 255) / 256, 256>>>(x, y, n, a);
    cudaFree(x);
    cudaFree(y);
}}
"""


def workload(folder: Path, makefile: str | None, directive: str = "") -> Workload:
    file = folder / "main.cu"
    file.write_text(SOURCE.format(directive=directive))
    if makefile is not None:
        (folder / "Makefile").write_text(makefile)
    document = read(str(file))
    return find_workload(document, document.kernel("scale"))


def sizes(found: Workload) -> dict[str, int]:
    return {size.name: size.value for size in found.sizes}


def test_the_run_line_answers_and_is_named(tmp_path: Path) -> None:
    found = workload(tmp_path, "program = main\n\nrun: $(program)\n\t$(LAUNCHER) ./$(program) 8192 0.5 100\n")
    assert sizes(found) == {"n": 8192}
    assert str(found.plan.launches()[0].arguments[3]).startswith("0.5")
    assert "n as Makefile line 4 runs it" in origin(found)


def test_a_directive_has_the_last_word(tmp_path: Path) -> None:
    directive = "// cuda-lsp: workload\n//   size n = 100\n"
    assert sizes(workload(tmp_path, "run:\n\t./main 8192 0.5 100\n", directive)) == {"n": 100}


@pytest.mark.parametrize(
    "makefile",
    [
        None,
        "",
        "run:\n\t./other 8192 0.5 100\n",
        "run:\n\t./main $(SIZE) 0.5 100\n",
        "run:\n\t./main `nproc` 0.5 100\n",
        "install:\n\t./main 8192 0.5 100\n",
        "run:\n\t./main many 0.5 100\n",
        "run:\n\t./main\n",
        'run:\n\t./main "8192 0.5 100\n',
    ],
)
def test_what_is_not_written_out_is_asked_for(tmp_path: Path, makefile: str | None) -> None:
    with pytest.raises(NoWorkload, match="command line"):
        workload(tmp_path, makefile)


def test_words_behind_the_arguments_are_the_shell_s(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("# run: no\nrun-small: all\n\t@./main 1 2 > out.txt # quick\nrun:\n\t./main 9\n")
    found = run_line(str(tmp_path / "main.cu"))
    assert found is not None
    assert found.arguments == ("1", "2")
    assert found.where == "Makefile line 3"


def test_a_makefile_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "Makefile").mkdir()
    assert run_line(str(tmp_path / "main.cu")) is None
    assert run_line("") is None
