"""Functions, templates and lambdas on the way to a launch, and launches that only some turns or runs reach."""

from pathlib import Path

import pytest

from agent.source.document import parse, read
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.settings import Settings
from agent.workload.static import infer
from agent.workload.workload import Workload

KERNEL = "__global__ void k(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }\n"
LAUNCH = "float* p; cudaMalloc(&p, n * sizeof(float)); k<<<1, 64>>>(p, n);"


def elements(found: Workload) -> int:
    values: dict[str, int | float] = {size.name: size.value for size in found.sizes}
    return int(found.buffers[0].extent.evaluate(values))


def inferred(text: str, kernel: str = "k") -> Workload:
    document = parse(text.encode())
    return infer(document, document.kernel(kernel))


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        ("template <int N> int count() { return 2 * N; }\n", "int n = count<21>();", 42),
        ("template <int N = 30> int count() { return 2 * N; }\n", "int n = count();", 60),
        ("template <class T> int bytes(T* q) { return sizeof(T); }\n", "double* q; int n = bytes(q);", None),
        ("template <class T> int bytes() { return sizeof(T) * 5; }\n", "int n = bytes<double>();", 40),
        ("template <class T> T twice(T v) { return T(2) * v; }\n", "int n = twice<int>(20);", 40),
        ("", "auto up = [](int a, int b) { return (a + b - 1) / b * b; }; int n = up(100, 64);", 128),
        ("", "int m = 7; auto add = [&](int a) { return a + m; }; int n = add(3);", 10),
        ("", "int n = [] { return 50; }();", 50),
        ("int f(int a) { return a; }\nint f(int a, int b) { return a * b; }\n", "int n = f(6, 7);", 42),
        ("enum Kind { SMALL = 10, LARGE = 90 };\n", "Kind kind = LARGE; int n = 3 * kind;", 270),
    ],
)
def test_calls_give_numbers(before: str, body: str, expected: int | None) -> None:
    text = f"{KERNEL}{before}int main() {{ {body} {LAUNCH} }}\n"
    if expected is None:  # the pointer has no value that tells its type
        with pytest.raises(NoWorkload):
            inferred(text)
    else:
        assert elements(inferred(text)) == expected


@pytest.mark.parametrize(
    "body",
    [
        "auto g = [](int a) { return a; }; g = other; int n = g(5);",
        "int n = 5; auto set = [&](int& a) { a = read(); }; set(n);",
        "int n = 5; auto grow = [&] { n = read(); }; grow();",
        "std::function<int(int)> g; int n = g(5);",
    ],
)
def test_what_a_lambda_may_have_changed_is_asked(body: str) -> None:
    with pytest.raises(NoWorkload):
        inferred(f"{KERNEL}int main() {{ {body} {LAUNCH} }}\n")


def test_functions_of_equal_signature_are_not_told_apart() -> None:
    both = "int f(int a) { return a; }\nint f(float a) { return 2 * a; }\n"
    with pytest.raises(NoWorkload, match="which `f` is called is not certain"):
        inferred(f"{KERNEL}{both}int main() {{ int n = f(5); {LAUNCH} }}\n")


def test_an_enumeration_is_passed_as_a_number() -> None:
    head = "typedef enum { ADD, SCALE = 5 } mode_t;\nenum class Way : unsigned char { UP, DOWN };\n"
    kernel = "__global__ void m(float* p, mode_t mode, Way way) { p[0] = (int)mode + (int)way; }\n"
    found = inferred(
        f"{head}{kernel}int main() {{ float* p; cudaMalloc(&p, 4); m<<<1, 1>>>(p, SCALE, Way::DOWN); }}\n", "m"
    )
    assert [str(one) for one in found.plan.launches()[0].arguments[1:]] == ["5", "1"]


def test_a_launch_that_the_first_turns_leave_out_is_found() -> None:
    body = "int n = 40; " + LAUNCH.replace("k<<<", "for (int i = 0; i < 9; i++) if (i >= 2) k<<<")
    assert elements(inferred(f"{KERNEL}int main() {{ {body} }}\n")) == 40


def test_a_launch_of_a_later_turn_that_depends_on_it_is_asked() -> None:
    body = "int n = 40; " + LAUNCH.replace(
        "k<<<1, 64>>>(p, n)", "for (int i = 0; i < 9; i++) if (i >= 2) k<<<1, 64>>>(p, i)"
    )
    with pytest.raises(NoWorkload):
        inferred(f"{KERNEL}int main() {{ {body} }}\n")


MODES = (
    KERNEL
    + KERNEL.replace("void k", "void other")
    + "int main(int argc, char** argv) { int n = atoi(argv[1]); float* p; cudaMalloc(&p, n * sizeof(float)); "
    "if (atoi(argv[2]) == 1) other<<<1, 64>>>(p, n); else k<<<1, 64>>>(p, n); }\n"
)


def test_a_kernel_is_run_by_the_first_run_that_launches_it(tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text(MODES)
    (tmp_path / "Makefile").write_text("run:\n\t./main 100 0\n\t./main 200 1\n\t./main 300 1\n")
    document = read(tmp_path / "main.cu")
    found = {name: elements(find_workload(document, document.kernel(name), Settings())) for name in ("k", "other")}
    assert found == {"k": 100, "other": 200}


def test_a_kernel_that_no_run_launches_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text(MODES)
    (tmp_path / "Makefile").write_text("run:\n\t./main 100 0\n")
    document = read(tmp_path / "main.cu")
    with pytest.raises(NoWorkload, match="not reached"):
        find_workload(document, document.kernel("other"), Settings())
