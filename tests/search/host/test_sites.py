"""Launch sites follow a changed plan, or the user is told what to change by hand."""

import pytest
from attrs import evolve

from agent.search.host.edits import host_edits
from agent.source.document import parse
from agent.workload.expression import Expression
from agent.workload.find import find_workload
from agent.workload.plan import Launch
from agent.workload.program import Program

KERNEL = "__global__ void k(float* x, int n, int m) { x[threadIdx.x] = n + m; }\n"
MAIN = """\
int main() {{
    const int n = 600, m = 90;
    float* x;
    cudaMalloc(&x, n * m * sizeof(float));
{launch}
}}
"""


def relaunched(launch: str, change: object, extra: str = "") -> tuple[str, str]:
    """The edited launch lines and what is left to do by hand, after ``change`` was made to the plan's launch."""
    document = parse((KERNEL + MAIN.format(launch=launch) + extra).encode(), "k.cu")
    workload = find_workload(document, document.kernel("k"))
    step = workload.plan.steps[0]
    assert isinstance(step, Launch)
    plan = evolve(workload.plan, steps=(change(step), *workload.plan.steps[1:]))  # type: ignore[operator]
    edits = host_edits(Program(document, workload.plan, "o"), Program(document, plan, "c"), workload)
    text = edits.document.text.decode()
    return text.split("sizeof(float));\n")[1].split("}\n")[0].strip(), edits.by_hand


def swapped(launch: Launch) -> Launch:
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    return evolve(launch, grid=(gy, gx, gz), block=(by, bx, bz))


def numbers(*grid: str) -> object:
    return lambda launch: evolve(launch, grid=tuple(Expression.parse(text) for text in grid))


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("    k<<<dim3(n, m), dim3(8, 4)>>>(x, n, m);", "k<<<dim3(m, n), dim3(4, 8)>>>(x, n, m);"),
        (
            "    k<<<dim3(n / 8, (m + 3) / 4, 2), 64>>>(x, n, m);",
            "k<<<dim3((m + 3) / 4, n / 8, 2), dim3(1, 64)>>>(x, n, m);",
        ),
        (
            "    dim3 g(n, m); dim3 b{8, 4};\n    k<<<g, b, 0, 0>>>(x, n, m);",
            "dim3 g(m, n); dim3 b{4, 8};\n    k<<<g, b, 0, 0>>>(x, n, m);",
        ),
        ("    k<<<n, 8>>>(x, n, m);", "k<<<dim3(1, n), dim3(1, 8)>>>(x, n, m);"),
    ],
)  # fmt: skip
def test_exchanged_axes_keep_the_site_s_own_words(launch: str, expected: str) -> None:
    assert relaunched(launch, swapped) == (expected, "")


def test_other_numbers_are_spelled_out() -> None:
    launch = "    k<<<n, 8>>>(x, n, m);"
    assert relaunched(launch, numbers("(n + 3) / 4", "1", "1")) == ("k<<<(n + 3) / 4, 8>>>(x, n, m);", "")
    assert relaunched(launch, numbers("n", "m", "1")) == ("k<<<dim3(n, m), 8>>>(x, n, m);", "")


def test_a_name_out_of_sight_is_left_to_the_user() -> None:
    line, by_hand = relaunched("    k<<<n, 8>>>(x, n, m);", numbers("tiles", "1", "1"))
    assert line == "k<<<n, 8>>>(x, n, m);"
    assert "does not know tiles" in by_hand


def test_several_launch_sites_are_exchanged_all_or_left_to_the_user() -> None:
    two = "    k<<<dim3(n, m), 8>>>(x, n, m);\n    k<<<dim3(n, 7), 8>>>(x, n, m);"
    line, by_hand = relaunched(two, swapped)
    assert (line.count("dim3(m, n)"), line.count("dim3(7, n)"), by_hand) == (1, 1, "")
    line, by_hand = relaunched(two, numbers("n", "n", "1"))
    assert "several places" in by_hand
    assert line == two.strip()


def test_an_unchanged_plan_changes_nothing() -> None:
    assert relaunched("    k<<<n, 8>>>(x, n, m);", lambda launch: launch) == ("k<<<n, 8>>>(x, n, m);", "")


def shared(text: str) -> object:
    return lambda launch: evolve(launch, shared=Expression.parse(text))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_much_shared_memory_is_asked_for_under_a_name(end: str) -> None:
    launch = f"    k<<<n, 8>>>(x, n, m);{end}"
    line, by_hand = relaunched(launch, shared("n * 400"))
    assert (line.replace("\r", ""), by_hand) == (
        "const int shared_bytes = n * 400;\n"
        "    cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);\n"
        "    k<<<n, 8, shared_bytes>>>(x, n, m);",
        "",
    )
    assert relaunched(launch, shared("n"))[0] == "k<<<n, 8, n>>>(x, n, m);"
    plain, _ = relaunched(f"    int shared_bytes = 3;{end}    k<<<n, 8>>>(x, n, m);", shared("60000"))
    assert "MaxDynamicSharedMemorySize, 60000);" in plain and "k<<<n, 8, 60000>>>" in plain
    taken, _ = relaunched(f"    int shared_bytes = 3;{end}    k<<<n, 8>>>(x, n, m);", shared("n * 401"))
    assert "const int shared_bytes_2 = n * 401;" in taken


def test_two_launches_of_much_shared_memory_name_nothing_twice() -> None:
    line, _ = relaunched("    k<<<n, 8>>>(x, n, m);\n    k<<<n, 8>>>(x, n, m);", shared("n * 400"))
    assert line.count("MaxDynamicSharedMemorySize, n * 400);") == line.count("k<<<n, 8, n * 400>>>") == 2


def second_axis(text: str) -> object:
    return lambda launch: evolve(launch, grid=(launch.grid[0], Expression.parse(text), launch.grid[2]))


def test_an_axis_that_stays_is_told_in_the_users_own_words() -> None:
    head = "    dim3 b(16, 4);\n    dim3 g((n + b.x - 1) / b.x, (m + b.y - 1) / b.y);\n"
    launch = f"{head}    k<<<g, b>>>(x, n, m);\n    for (int x = 0; x < 3; ++x) use(x);"
    found, by_hand = relaunched(launch, second_axis("(m + 15) / 16"))
    assert (found, by_hand) == (launch.replace("(m + b.y - 1) / b.y", "(m + 15) / 16").strip(), "")
    inline = "    dim3 b(16, 4);\n    k<<<dim3((n + b.x - 1) / b.x, m), b>>>(x, n, m);"
    found, _ = relaunched(inline, second_axis("(m + 3) / 4"))
    assert found == inline.replace("/ b.x, m)", "/ b.x, (m + 3) / 4)").strip()


def test_an_axis_that_is_told_over_a_block_that_changes_is_told_anew() -> None:
    head = "    dim3 b(16, 4);\n    dim3 g((n + b.x - 1) / b.x, (m + b.y - 1) / b.y);\n"

    def change(launch: Launch) -> Launch:
        grid, block = ("(n + 15) / 16", "m", "1"), ("64", "1", "1")
        return evolve(launch, grid=tuple(map(Expression.parse, grid)), block=tuple(map(Expression.parse, block)))

    found, by_hand = relaunched(f"{head}    k<<<g, b>>>(x, n, m);", change)
    assert (found, by_hand) == ("dim3 b(64);\n    dim3 g((n + 15) / 16, m);\n    k<<<g, b>>>(x, n, m);", "")


def test_a_bounded_grid_says_once_what_it_bounds() -> None:
    line, _ = relaunched("    k<<<n, 8>>>(x, n, m);", numbers("min((n + 7) / 8, 96)", "1", "1"))
    assert line == "const int blocks = (n + 7) / 8;\n    k<<<blocks < 96 ? blocks : 96, 8>>>(x, n, m);"
    assert (
        relaunched("    k<<<m, 8>>>(x, n, m);", numbers("min(n, 96)", "1", "1"))[0]
        == "k<<<n < 96 ? n : 96, 8>>>(x, n, m);"
    )
    named = "    int g = n;\n    k<<<g, 8>>>(x, n, m);"
    line, _ = relaunched(named, numbers("min((n + 7) / 8, 96)", "1", "1"))
    assert line == "int g = (n + 7) / 8 < 96 ? (n + 7) / 8 : 96;\n    k<<<g, 8>>>(x, n, m);"


@pytest.mark.parametrize(
    ("launch", "told"),
    [
        ("    auto f = k;\n    f<<<n, 8>>>(x, n, m);", "k is launched by a pointer at line 7, which is not edited"),
        (
            "    cudaLaunchConfig_t c = {n, 8};\n    cudaLaunchKernelEx(&c, k, x, n, m);",
            "k is launched by cudaLaunchKernelEx at line 7, which is not edited",
        ),
        (
            "    k<<<n, 8>>>(x, n, m);\n    void* a[] = {&x, &n, &m}; cudaLaunchKernel((void*)k, 1, 8, a, 0, 0);",
            "k is launched by cudaLaunchKernel at line 7, which is not edited",
        ),
    ],
)
def test_launches_by_calls_and_pointers_are_left_to_the_user(launch: str, told: str) -> None:
    text, by_hand = relaunched(launch, numbers("(n + 3) / 4", "1", "1"))
    assert text == launch.strip() and by_hand.startswith(told)
    assert "<<<((n + 3) / 4, 1, 1), (8, 1, 1), 0>>>" in by_hand
