"""A kernel's workload where the program is more than one file: headers, linked sources, branches of ``#if``, flags."""

import os
from pathlib import Path

import pytest

from agent.source.document import parse, read
from agent.workload.describe import origin
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.joined.files import sources
from agent.workload.settings import Settings
from agent.workload.static import compiled_twin
from agent.workload.workload import Workload

KERNEL = """\
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
BODY = """\
    float *x, *y;
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, N * sizeof(float));
    twice<<<(N + 255) / 256, 256>>>(x, y, N);
"""


def main(body: str = BODY) -> str:
    return f"int main() {{\n{body}}}\n"


def found(folder: Path, files: dict[str, str], at: str, name: str = "twice") -> Workload:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    document = read(folder / at)
    return find_workload(document, document.kernel(name), Settings())


def elements(workload: Workload) -> int:
    """The elements of the first buffer at the declared sizes."""
    values: dict[str, int | float] = {size.name: size.value for size in workload.sizes}
    return int(workload.buffers[0].extent.evaluate(values))


def test_a_kernel_in_a_header_is_launched_from_the_file_that_includes_it(tmp_path: Path) -> None:
    files = {"kernel.h": KERNEL, "main.cu": '#include "kernel.h"\n#define N 5000\n' + main()}
    workload = found(tmp_path, files, "kernel.h")
    assert elements(workload) == 5000
    assert origin(workload).startswith("launch at line 7 of main.cu")


def test_constants_and_types_come_from_headers(tmp_path: Path) -> None:
    header = "#pragma once\ntypedef double real;\nconstexpr int N = 3000;\n"
    kernel = KERNEL.replace("float*", "real*")
    source = '#include "types.h"\n' + kernel + main(BODY.replace("float", "real"))
    workload = found(tmp_path, {"types.h": header, "main.cu": source}, "main.cu")
    assert (workload.buffers[0].dtype, elements(workload)) == ("f64", 3000)


def test_callers_are_followed_into_a_linked_file(tmp_path: Path) -> None:
    files = {
        "kernels.cu": KERNEL + "void run(int N) {\n" + BODY + "}\n",
        "run.h": "void run(int N);\n",
        "main.cpp": '#include "run.h"\nint main() { int count = 700; run(count); }\n',
    }
    assert elements(found(tmp_path, files, "kernels.cu")) == 700


def test_the_text_of_the_editor_counts_not_that_of_the_disk(tmp_path: Path) -> None:
    found(tmp_path, {"kernel.h": KERNEL, "main.cu": '#include "kernel.h"\n#define N 64\n' + main()}, "kernel.h")
    document = parse(b"// a line more\n" + KERNEL.encode(), str(tmp_path / "kernel.h"))
    assert elements(find_workload(document, document.kernel("twice"), Settings())) == 64


def test_two_programs_that_launch_a_kernel_of_a_header_are_asked_about(tmp_path: Path) -> None:
    first = '#include "kernel.h"\n#define N 64\n' + main()
    with pytest.raises(NoWorkload, match="nothing in this file launches"):
        found(tmp_path, {"kernel.h": KERNEL, "a.cu": first, "b.cu": first.replace("64", "128")}, "kernel.h")


def test_of_two_programs_the_one_that_is_built_is_read(tmp_path: Path) -> None:
    first = '#include "kernel.h"\n#define N 64\n' + main()
    files = {"kernel.h": KERNEL, "a.cu": first, "b-a.cu": first.replace("64", "128")}
    assert elements(found(tmp_path, files | {"Makefile": "source = b-a.cu\n"}, "kernel.h")) == 128
    with pytest.raises(NoWorkload):
        found(tmp_path, files | {"Makefile": "source = a.cu b-a.cu\n"}, "kernel.h")


def test_each_file_calls_its_own_static_function(tmp_path: Path) -> None:
    count = "static int count() { return %d; }\n"
    files = {
        "kernels.cu": KERNEL + count % 40 + "void run() {\n" + "    const int N = count();\n" + BODY + "}\n",
        "main.cpp": count % 50 + "void run();\nint main() { count(); run(); }\n",
    }
    assert elements(found(tmp_path, files, "kernels.cu")) == 40


def test_a_function_that_two_other_files_define_is_not_followed(tmp_path: Path) -> None:
    files = {
        "kernels.cu": KERNEL + "int count();\nvoid run() {\n    const int N = count();\n" + BODY + "}\n",
        "a.cpp": "int count() { return 40; }\n",
        "b.cpp": "int count() { return 41; }\n",
        "main.cpp": "void run();\nint main() { run(); }\n",
    }
    with pytest.raises(NoWorkload, match="which `count` is called is not certain"):
        found(tmp_path, files, "kernels.cu")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("#ifdef LARGE\n#define N 900\n#else\n#define N 90\n#endif\n", 90),
        ("#define LARGE\n#ifdef LARGE\n#define N 900\n#else\n#define N 90\n#endif\n", 900),
        ("#define LEVEL 3\n#if LEVEL > 2 && !defined(SMALL)\n#define N 900\n#elif LEVEL\n#define N 90\n#endif\n", 900),
        ("#define N 7\n#undef N\n#define N 90\n", 90),
        ("#ifndef N\n#define N 90\n#endif\n", 90),
        ("#ifdef __HIPCC__\n#define N 900\n#elif defined(__CUDACC__)\n#define N 90\n#endif\n", 90),
    ],
)
def test_branches_of_the_preprocessor_are_taken_as_compiled(tmp_path: Path, head: str, expected: int) -> None:
    assert elements(found(tmp_path, {"main.cu": head + KERNEL + main()}, "main.cu")) == expected


def test_a_macro_means_the_same_behind_a_call_of_what_stands_above_it(tmp_path: Path) -> None:
    head = 'static void check(int code) { if (code) printf("%d", code); }\n#define N 90\n' + KERNEL
    body = "    check(cudaSetDevice(0));\n" + BODY.replace(
        "twice<<<(N + 255) / 256, 256>>>", "dim3 block(N);\n    twice<<<1, block>>>"
    )
    workload = found(tmp_path, {"main.cu": head + main(body)}, "main.cu")
    sizes: dict[str, int | float] = {size.name: size.value for size in workload.sizes}
    assert (elements(workload), workload.plan.launches()[0].block[0].evaluate(sizes)) == (90, 90)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("#ifdef _OPENMP\n    omp_set_num_threads(4);\n#endif\n    int n = 300;\n", 300),
        ("    int n = 300;\n#ifdef _OPENMP\n    int threads = 4;\n#else\n    int threads = 1;\n#endif\n", 300),
        ("    int n = 300;\n#ifdef _OPENMP\n    n = 500;\n#endif\n", None),
    ],
    ids=["one branch", "two branches", "they do not agree"],
)  # fmt: skip
def test_what_the_compiler_decides_inside_a_function(tmp_path: Path, inside: str, expected: int | None) -> None:
    files = {"main.cu": KERNEL + main(inside + BODY.replace("N", "n"))}
    if expected is None:
        with pytest.raises(NoWorkload, match="`n` depends on a condition"):
            found(tmp_path, files, "main.cu")
    else:
        assert elements(found(tmp_path, files, "main.cu")) == expected


def test_what_the_compiler_decides_is_asked(tmp_path: Path) -> None:
    head = "#if __GNUC__ > 4\n#define N 900\n#else\n#define N 90\n#endif\n"
    with pytest.raises(NoWorkload, match="`N` "):
        found(tmp_path, {"main.cu": head + KERNEL + main()}, "main.cu")


def test_what_the_makefile_defines_is_taken_and_compiled_with(tmp_path: Path) -> None:
    kernel = KERNEL.replace("2 *", "FACTOR *")
    makefile = "CFLAGS := -O3 -DN=300 -DFACTOR=4\n\nmain: main.cu\n\tnvcc $(CFLAGS) -o $@ $<\n"
    workload = found(tmp_path, {"Makefile": makefile, "main.cu": kernel + main()}, "main.cu")
    assert elements(workload) == 300
    assert "-DFACTOR=4" in workload.flags


def test_a_type_that_every_build_of_the_makefile_names_is_known(tmp_path: Path) -> None:
    kernel = KERNEL.replace("float*", "real*")
    source = "#define N 300\n" + kernel + main(BODY.replace("float", "real"))
    workload = found(tmp_path, {"Makefile": "CFLAGS := -O3 -Dreal=double\n", "main.cu": source}, "main.cu")
    assert (workload.buffers[0].dtype, elements(workload)) == ("f64", 300)
    assert "-Dreal=double" in workload.flags
    with pytest.raises(NoWorkload, match="element type"):
        found(tmp_path, {"Makefile": "main: main.cu\n\tnvcc -Dreal=double $<\n", "main.cu": source}, "main.cu")


def test_headers_are_found_in_folders_that_the_makefile_above_names_by_a_variable(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files = {
        "app/Makefile": "INC = include  # ours\nmain:\n\tnvcc -I $(INC) src/main.cu\n",
        "app/include/parts.h": "#define N 300\n",
        "other/parts.h": "#define N 400\n",
        "app/src/main.cu": "#include <parts.h>\n" + KERNEL + main(),
    }
    assert elements(found(tmp_path, files, "app/src/main.cu")) == 300


@pytest.mark.parametrize(
    "makefile",
    [
        "ifeq ($(LARGE),yes)\nCFLAGS += -DN=900\nendif\n",
        "main: main.cu\n\tnvcc -DN=900 -o $@ $<\n",
        "CFLAGS = -DN=$(SIZE)\n",
        "CFLAGS = -DN=900\nCFLAGS += -DN=90\n",
    ],
)
def test_what_only_some_builds_define_is_asked(tmp_path: Path, makefile: str) -> None:
    with pytest.raises(NoWorkload, match="`N` is not defined"):
        found(tmp_path, {"Makefile": makefile, "main.cu": KERNEL + main()}, "main.cu")


def test_a_kernel_that_is_not_compiled_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoWorkload, match="stands in a branch of `#if` that is not compiled"):
        found(tmp_path, {"main.cu": "#if 0\n" + KERNEL + "#endif\n#define N 8\n" + main("")}, "main.cu")


def test_headers_that_include_each_other_end(tmp_path: Path) -> None:
    files = {
        "a.h": '#include "b.h"\n#define N 64\n',
        "b.h": '#include "a.h"\n',
        "main.cu": '#include "a.h"\n' + KERNEL + main(),
    }
    assert elements(found(tmp_path, files, "main.cu")) == 64


@pytest.mark.parametrize(("defined", "line"), [("", 4), ("#define FAST 1", 2)])
def test_of_two_definitions_the_compiled_one_is_meant(tmp_path: Path, defined: str, line: int) -> None:
    text = f"""{defined}
#ifdef FAST
__global__ void k(float* y) {{ y[threadIdx.x] = 1; }}
#else
__global__ void k(float* y) {{ y[threadIdx.x] = 2; }}
#endif
int main() {{ float* y; cudaMalloc(&y, 1024); k<<<1, 256>>>(y); }}
"""
    file = tmp_path / "k.cu"
    file.write_text(text)
    document = parse(text.encode(), str(file))
    for kernel in document.kernels:
        assert compiled_twin(document, kernel).line == line + 1


def test_arrays_of_arrays_as_parameters_are_one_buffer(tmp_path: Path) -> None:
    kernel = """\
#define X 40
#define Y 30
typedef double rows[Y];
__global__ void twice(double a[][Y], double (*b)[Y], double* c[4], int n) { a[threadIdx.x][blockIdx.x] = n; }
"""
    host = "    rows *a, *b; double** c;\n    cudaMalloc((void**)&a, X * Y * sizeof(double));\n"
    host += "    cudaMalloc((void**)&b, X * sizeof(double) * Y);\n    twice<<<Y, X>>>(a, b, c, 3);\n"
    with pytest.raises(NoWorkload, match="`c` as a pointer to pointers"):
        found(tmp_path, {"main.cu": kernel + main(host)}, "main.cu")
    source = (kernel + main(host)).replace("double* c[4], ", "").replace("(a, b, c, 3)", "(a, b, 3)")
    workload = found(tmp_path, {"main.cu": source}, "main.cu")
    assert [size.name for size in workload.sizes] == ["X"], "the kernel is compiled with the length of a row"
    assert [(one.dtype, one.extent.evaluate({"X": 2})) for one in workload.buffers] == [("f64", 60), ("f64", 60)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name")
def test_a_pipe_among_the_sources_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int main() {}\n")
    os.mkfifo(tmp_path / "b.cu")
    assert sources(tmp_path) == (str(tmp_path / "a.cu"),)
