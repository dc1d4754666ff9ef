"""What a Makefile runs a program with answers what the program takes from its command line."""

from pathlib import Path

import pytest

from agent.source.document import read
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch
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


COUNTED = """\
#include <cuda_runtime.h>
__global__ void inc(int *a, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += 1; }}
{before}int main(int argc, char **argv) {{
    {text}
    int *d;
    cudaMalloc(&d, size * sizeof(int));
    inc<<<(size + 255) / 256, 256>>>(d, size);
}}
"""


def counted(folder: Path, text: str, command: str | None, before: str = "", directive: str = "") -> Workload:
    file = folder / "main.cu"
    file.write_text(COUNTED.format(text=text, before=before).replace("__global__", directive + "__global__", 1))
    if command is not None:
        (folder / "Makefile").write_text(f"run:\n\t./main {command}\n")
    document = read(str(file))
    return find_workload(document, document.kernel("inc"))


@pytest.mark.parametrize(
    ("text", "command", "elements"),
    [
        ("int size = atoi(argv[1]) * 1000;", "20", 20_000),
        ("int size = 1000 * (argc > 1 ? atoi(argv[1]) : 1);", "20", 20_000),
        ("int size = 1 << atoi(argv[1]);", "20", 1_048_576),
        ("int k; if (argc < 2) return 1; k = atoi(argv[1]); const int size = k * 1000;", "20", 20_000),
        ("int k; k = atoi(argv[1]); int size = k * k;", "20", 400),
        ("int k; k = atoi(argv[1]); int size = k + 5;", "20", 25),
        ("int k; k = atoi(argv[1]); int size = pow(2, k);", "20", 1_048_576),
        ("int k; k = atoi(argv[1]); int w = k * 10; int h = k * 20; int size = w * h;", "20", 80_000),
        ("int k = 100; if (argc > 1) k = atoi(argv[1]); int size = k * 1000;", "20", 20_000),
        ("int k = 0, size = 0; k = (argc > 1) ? atoi(argv[1]) : 7; size = k * 1000;", "20", 20_000),
        ("int size = atoi(argv[1]); size *= 1000;", "20", 20_000),
        ("int size = atoi(argv[1]) * atoi(argv[2]) - strtol(argv[3], NULL, 10);", "20 30 7", 593),
        ("int size = (int)atof(argv[1]);", "1e3", 1000),
        ("int size = argc > 2 ? atoi(argv[2]) : 50 * atoi(argv[1]);", "20", 1000),
        ("struct { int n; } p; p.n = atoi(argv[1]); int size = p.n * 3;", "20", 60),
    ],
)
def test_arithmetic_on_an_argument_is_followed(tmp_path: Path, text: str, command: str, elements: int) -> None:
    found = counted(tmp_path, text, command)
    (launch,) = bind(found, found.plan, None, read(str(tmp_path / "main.cu"))).steps
    assert found.buffers[0].extent.integer({size.name: size.value for size in found.sizes}) == elements
    assert isinstance(launch, BoundLaunch)
    assert launch.grid[0] == -(-elements // 256)
    assert "as Makefile line 2 runs it" in origin(found)


def test_an_argument_goes_through_functions(tmp_path: Path) -> None:
    before = "int count(int argc, char **argv) { return atoi(argv[1]) * 1000; }\n"
    found = counted(tmp_path, "int size = count(argc, argv);", "20", before)
    assert sizes(found) == {"size": 20_000}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("argv++; argc--; int size = atoi(argv[1]) * 10;", "20 30"),
        ("int size = atoi(argv[1] + 1);", "20"),
        ("int size = atoi(&argv[1][1]);", "20"),
        ("int size = count(argc, argv + 1);", "20 30"),
        ("argv[1] = argv[2]; int size = atoi(argv[1]);", "20 30"),
        ("int size = strtol(argv[1], NULL, 16);", "20"),
        ("int size = strtol(argv[1], NULL, 0);", "020"),
        ("int size = atoi(argv[1]);", "1e3"),
        ("int size = atoi(argv[1]);", "1_000"),
        ("int size = atoi(argv[1]);", "inf"),
        ("int size = atoi(argv[1]);", "99999999999"),
        ("int size = atof(argv[1]);", "1_000"),
        ('int size = 100; int c; while ((c = getopt(argc, argv, "m:")) != -1) size = atoi(optarg);', "-n 20"),
        ('int size = 100; int c; while ((c = getopt(argc, argv, "n:")) != -1) size = atoi(optarg);', "file -n 20"),
        ('int c; while ((c = getopt(argc, argv, "n:")) != -1); int size = atoi(argv[1]);', "20 -n 30"),
        ('int size = 100; getCmdLineArgumentInt(argc, argv, "n", &size);', "-n=20"),
        ("int size = 100; for (int a = 1; a < argc; a++) size = atoi(argv[argc - a + k]);", "20"),
        ("char** w = argv; w[1] = w[2]; int size = atoi(argv[1]);", "20 30"),
        ("char** w = argv; w++; int size = atoi(w[1]);", "20 30"),
        ("char** w = argv + 0; int size = atoi(w[1]);", "20 30"),
    ],
)
def test_what_is_not_plainly_an_argument_s_decimal_number_is_asked_for(tmp_path: Path, text: str, command: str) -> None:
    before = "int count(int argc, char **argv) { return atoi(argv[1]); }\n"
    with pytest.raises(NoWorkload) as asked:
        counted(tmp_path, text, command, before)
    assert asked.value.questions


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("int rows; rows = atoi(argv[1]); int size = rows * 64;", "rows"),
        ("struct { int rows; } c; c.rows = atoi(argv[1]); int size = c.rows * 64;", "rows"),
        ("int k, size; k = atoi(argv[1]); size = pow(2, k);", "k"),
        ("int size = atoi(argv[1]) * 1000;", "size"),
    ],
)
def test_a_number_that_is_assigned_later_is_asked_for_by_its_name(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(NoWorkload) as asked:
        counted(tmp_path, text, None)
    assert asked.value.questions == (f"value of `{name}`?",)
    assert "argv:" not in str(asked.value)
    assert f"size     {name} = ?" in asked.value.draft
    found = counted(tmp_path, text, None, directive=f"// cuda-lsp: workload\n//   size {name} = 9\n")
    assert sizes(found) == {name: 9}


def test_a_number_without_a_name_is_asked_for_in_plain_words(tmp_path: Path) -> None:
    with pytest.raises(NoWorkload) as asked:
        counted(tmp_path, "int size = 100; inc<<<atoi(argv[1]), 256>>>((int *)0, size); size = atoi(argv[1]);", None)
    assert "argv:" not in str(asked.value)


def test_two_numbers_of_one_name_have_answers_of_their_own(tmp_path: Path) -> None:
    text = "int size = 1; { int n = atoi(argv[1]); size = n; } { int n = atoi(argv[2]); size *= n; }"
    directive = "// cuda-lsp: workload\n//   size n = 20, n_2 = 30\n"
    found = counted(tmp_path, text, None, directive=directive)
    assert found.buffers[0].extent.integer({size.name: size.value for size in found.sizes}) == 600


def test_a_directive_has_the_last_word_on_what_an_argument_decides(tmp_path: Path) -> None:
    directive = "// cuda-lsp: workload\n//   size size = 77\n"
    found = counted(tmp_path, "int k; k = atoi(argv[1]); int size = k * 10;", "20", directive=directive)
    assert sizes(found) == {"size": 77}


@pytest.mark.parametrize(
    ("makefile", "arguments"),
    [
        ("A = first\nB = second\nrun:\n\t./$(A) 5\n\t./$(B) 10\n", ("10",)),
        ("A = first # the quick one\nB := bin/second\nrun:\n\t./$(A) 5\n\t./$(B) 10\n", ("10",)),
        ("run:\n\t#./second 5\n\t@# ./second 6\n\t./second 10\n", ("10",)),
        ("A = first\nrun:\n\t./$(A) 5\n", None),
        ("A = `ls`\nrun:\n\t./$(A) 5\n", None),
        ("run:\n\t./$@ 5\n", None),
    ],
)
def test_the_arguments_are_those_of_this_program(
    tmp_path: Path, makefile: str, arguments: tuple[str, ...] | None
) -> None:
    (tmp_path / "Makefile").write_text(makefile)
    for name in ("first.cu", "second.cu"):
        (tmp_path / name).write_text("int main(int argc, char** argv) { }\n")
    found = run_line(str(tmp_path / "second.cu"))
    assert (found.arguments if found is not None else None) == arguments


def test_a_program_of_another_name_is_the_only_one(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("program = bench\nrun:\n\t./$(program) 5\n")
    (tmp_path / "kernel.cu").write_text("void launch() { }\n")
    (tmp_path / "main.cu").write_text("int main(int argc, char** argv) { }\n")
    found = run_line(str(tmp_path / "main.cu"))
    assert found is not None
    assert found.arguments == ("5",)


OPTIONS = """\
#include <cstring>
int size = 100, rows = 1;
void parse(int count, char** words) {
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--size") == 0 && i + 1 < count) size = atoi(words[++i]);
        else if (!strcmp(words[i], "-r")) { rows = atoi(words[i + 1]); i++; }
        else break;
    }
}
"""


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("int size = 100, c; while ((c = getopt(argc, argv, \"n:v\")) != -1) if (c == 'n') size = atoi(optarg);",
         "-n 20", 20),
        ("int size = 100, c; while ((c = getopt(argc, argv, \"vn:\")) != -1) "
         "switch (c) { case 'v': break; case 'n': size = atoi(optarg); break; default: size = 3; }",
         "-v -n20 in.txt", 20),
        ("int size = 100; for (int a = 1; a < argc; a++) size = atoi(argv[a]);", "20", 20),
        ("parse(argc, argv);", "-r 3 --size 40", 40),
        ("parse(argc, argv);", "x --size 40", 100),
        ('int size = 100; if (std::string(argv[1]) == "large") size = 5000; else size = 50;', "large", 5000),
        ('int size = 100; sscanf(argv[1], "%d", &size);', "40", 40),
        ("char* word = argv[1]; int size = atoi(word);", "40", 40),
        ("int size = strlen(argv[1]);", "abcde", 5),
        ("int size = 0; switch (argv[1][0]) { case 's': size = 10; case 'm': size += 20; break; case 'l': size = 90; }",
         "small", 30),
    ],
)  # fmt: skip
def test_options_are_read_as_the_program_reads_them(tmp_path: Path, text: str, command: str, expected: int) -> None:
    found = counted(tmp_path, text, command, OPTIONS)
    assert found.buffers[0].extent.integer({size.name: size.value for size in found.sizes}) == expected
