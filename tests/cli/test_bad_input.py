"""Each bad input gets a message that says what is wrong and what to do, and an exit code of its own."""

from pathlib import Path

import pytest

from tests.cli.running import ROW_SUMS, run, run_json

NO_LAUNCH = "__global__ void k(float* x, int n) { x[threadIdx.x] = n; }\n"
CASES = {
    "text": ("hello\n", 3, "no kernel"),
    "binary": (b"\x7fELF\x00\x01\x02", 3, "binary"),
    "utf16": ("__global__ void k() {}".encode("utf-16"), 3, "UTF-16"),
    "damaged": ("__global__ void k(float* x) { x[0] = ; }\n", 3, "cannot be rewritten"),
    "no workload": (NO_LAUNCH, 3, "no workload"),
    "does not compile": (ROW_SUMS.replace("float sum = 0.0f;", "flaot sum = 0.0f;"), 3, "line 7"),
    "bad directive": ("// cuda-lsp: workload\n//   size n = \n" + NO_LAUNCH, 3, "line 2"),
    "deep": (NO_LAUNCH.replace("= n;", f"= {' + '.join(['1.0f'] * 4000)};"), 3, "nested too deeply to be read"),
    "unknown instruction": (
        ROW_SUMS.replace("s[t] = sum;", 's[t] = sum; asm volatile("wgmma.fence.sync.aligned;");'),
        3,
        "wgmma",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_refused_in_words(name: str, tmp_path: Path) -> None:
    content, code, words = CASES[name]
    file = tmp_path / "bad.cu"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = file.read_bytes()
    done = run("optimize", str(file))
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr + done.stdout
    assert file.read_bytes() == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert run("optimize", str(tmp_path / "none.cu")).returncode == 3
    assert run("optimize", str(tmp_path)).returncode == 3


def test_an_unknown_kernel_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(ROW_SUMS)
    done = run("optimize", str(file), "--kernel", "row_sum")
    assert done.returncode == 3
    assert "row_sums" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("optimize",), ("optimise", "x.cu"), ("optimize", "x.cu", "--rounds", "0"), ("verify", "a.cu")],
    ids=str,
)
def test_a_wrong_command_line(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).returncode == 2


def test_an_unknown_target_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(ROW_SUMS)
    done = run("optimize", str(file), "--target", "H2000")
    assert done.returncode == 2
    assert "H200" in done.stderr


def test_an_error_is_json_too(tmp_path: Path) -> None:
    code, answer = run_json("optimize", str(tmp_path / "none.cu"))
    assert (code, "none.cu" in answer["error"]) == (3, True)


def test_settings_that_are_wrong_are_named(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(ROW_SUMS)
    (tmp_path / ".cuda-lsp.toml").write_text('targte = "H200"\n')
    done = run("kernels", str(tmp_path / "k.cu"))
    assert done.returncode == 3
    assert "target" in done.stderr


def test_without_a_compiler_the_command_that_mends_it_is_named(tmp_path: Path) -> None:
    """A CuPy that cannot be imported stands in front of the real one."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise ImportError('no CuPy here')\n")
    (tmp_path / "k.cu").write_text(ROW_SUMS)
    done = run("optimize", str(tmp_path / "k.cu"), env={"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 4, done.stderr
    assert "pip install" in done.stderr


@pytest.mark.parametrize("option", ["--idea", "--without"])
def test_a_misspelt_idea_is_no_search_without_ideas(option: str, tmp_path: Path) -> None:
    file = tmp_path / "sums.cu"
    file.write_text(ROW_SUMS)
    done = run("optimize", str(file), option, "fused-row-pases")
    assert done.returncode == 2
    assert "did you mean fused-row-passes?" in done.stderr


def test_nothing_to_show_is_nothing_to_apply(tmp_path: Path) -> None:
    file = tmp_path / "sums.cu"
    file.write_text(ROW_SUMS)
    done = run("optimize", str(file), "--proposals", "0", "--apply")
    assert done.returncode == 2
    assert "--apply writes the first proposal" in done.stderr
