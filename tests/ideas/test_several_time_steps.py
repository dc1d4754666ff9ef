"""Several steps a launch leave in both buffers what single steps do; NumPy takes the steps one by one."""

from collections.abc import Callable

import numpy as np
import pytest

from agent.ideas.idea import Candidate, Scope
from agent.ideas.source import Request, retune
from tests.ideas.running import Array, ask, candidates, diff, refusal, rewritten, run

NAME = "several-time-steps"


def kernel(
    body: str,
    loop: str = "repeat   steps {\n//     launch step<<<GRID, dim3(8, 4)>>>(a, b, h, w, k)\n//     swap   a b\n//   }",
    parameters: str = "const float* a, float* b, int h, int w, const float* k",
    places: str = "int x = blockIdx.x * blockDim.x + threadIdx.x;\n    int y = blockIdx.y * blockDim.y + threadIdx.y;",
) -> str:
    grid = "dim3((w + 7) / 8, (h + 3) / 4)"
    return f"""\
// cuda-lsp: workload
//   size     h = 300, w = 300, steps = 20
//   buffer   a: f32[h * w] inout
//   buffer   b: f32[h * w] inout
//   buffer   k: f32[h * w] in
//   {loop.replace("GRID", grid)}
__global__ void step({parameters}) {{
    {places}
{body}
}}
"""


COPIED = """\
    if (x >= w || y >= h) return;
    int i = y * w + x;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        b[i] = a[i];  // the edge stays
    } else {
        float around = a[i - 1] + a[i + 1] + a[i - w] + a[i + w];
        b[i] = a[i] + 0.2f * k[i] * (around - 4.0f * a[i]);
    }"""
LEFT = """\
    int i = y * w + x;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        float around = a[i - 1] + a[i + 1] + a[i - w] + a[i + w];
        b[i] = a[i] + 0.2f * k[i] * (around - 4.0f * a[i]);
    }"""
EARLY = """\
    if (y > h - 1 || x > w - 1) return;
    if (x < 1 || y < 1 || x > w - 2 || y > h - 2) {
        b[y * w + x] = a[y * w + x];
        return;
    }
    const int i = y * w + x;
    float around = a[i - 1] + a[i + 1] + a[i - w] + a[(y + 1) * w + x];
    b[i] = a[i] + 0.2f * k[i] * (around - 4.0f * a[i]);"""
FAR = """\
    if (x < 2 || y < 1 || x >= w - 2 || y >= h - 1) return;
    b[y * w + x] = 0.5f * a[y * w + x] + 0.1f * (a[y * w + x - 2] + a[y * w + x + 2] + a[(y - 1) * w + x - 1])
        + k[0] * a[(y + 1) * w + x + 2];"""
LONE = """\
    if (x < w && y < h) {
        b[y * w + x] = 0.5f * a[y * w + x] + k[y * w + x];
    }"""
ROWS_ONLY = """\
    if (x >= w || y < 1 || y >= h - 1) return;
    b[y * w + x] = a[(y - 1) * w + x] - 0.5f * a[(y + 1) * w + x];"""


def cross(a: Array, b: Array, k: Array, edge: bool) -> None:
    around = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    if edge:
        b[:] = a
    b[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.2 * k[1:-1, 1:-1] * (around - 4 * a[1:-1, 1:-1])


def far(a: Array, b: Array, k: Array) -> None:
    b[1:-1, 2:-2] = 0.5 * a[1:-1, 2:-2] + 0.1 * (a[1:-1, :-4] + a[1:-1, 4:] + a[:-2, 1:-3]) + k[0, 0] * a[2:, 4:]


def rows_only(a: Array, b: Array, k: Array) -> None:
    b[1:-1] = a[:-2] - 0.5 * a[2:]


def lone(a: Array, b: Array, k: Array) -> None:
    b[:] = 0.5 * a + k


CASES: dict[str, tuple[str, Callable[[Array, Array, Array], None]]] = {
    "edge copied": (COPIED, lambda a, b, k: cross(a, b, k, True)),
    "edge left": (LEFT, lambda a, b, k: cross(a, b, k, False)),
    "leaves early": (EARLY, lambda a, b, k: cross(a, b, k, True)),
    "farther": (FAR, far),
    "no neighbours": (LONE, lone),
    "rows only": (ROWS_ONLY, rows_only),
}


def tuned(request: Request, steps: int) -> Candidate:
    found = retune(candidates(request, NAME)[0], request, {"steps": steps})
    assert found is not None
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("together", [2, 3, 4])
def test_both_planes_after_every_number_of_steps(case: str, together: int) -> None:
    body, take = CASES[case]
    request = ask(kernel(body))
    if together not in candidates(request, NAME)[0].tunables[0].values:
        assert case in ("edge left", "farther", "rows only") and together != 3
        return
    program = rewritten(request, tuned(request, together))
    for steps, h, w in ((1, 3, 5), (4, 5, 7), (5, 35, 9), (8, 9, 66), (9, 33, 40)):
        if (case in ("no neighbours", "rows only") or together == 4) and steps < 8:
            continue
        generator = np.random.default_rng(steps)
        a, b, k = (generator.uniform(0.2, 1, (h, w)).astype(np.float32) for _ in range(3))
        found = run(program, request.workload, {"a": a, "b": b, "k": k}, h=h, w=w, steps=steps)
        planes = [a.astype(np.float64), b.astype(np.float64)]
        for turn in range(steps):
            take(planes[turn % 2], planes[1 - turn % 2], k.astype(np.float64))
        for name, plane in zip("ab", planes, strict=True):
            np.testing.assert_allclose(
                found[name].reshape(h, w), plane, atol=2e-5, rtol=2e-5, err_msg=f"{name} {steps}"
            )


def test_index_order_does_not_matter() -> None:
    swapped = "int y = blockIdx.x * blockDim.x + threadIdx.x;\n    int x = blockIdx.y * blockDim.y + threadIdx.y;"
    text = kernel(COPIED, places=swapped).replace("dim3((w + 7) / 8, (h + 3) / 4)", "dim3((h + 7) / 8, (w + 3) / 4)")
    request = ask(text)
    a, b, k = (np.random.default_rng(n).uniform(0.2, 1, (20, 30)).astype(np.float32) for n in range(3))
    found = run(rewritten(request, tuned(request, 3)), request.workload, {"a": a, "b": b, "k": k}, h=20, w=30, steps=4)
    planes = [a.astype(np.float64), b.astype(np.float64)]
    for turn in range(4):
        cross(planes[turn % 2], planes[1 - turn % 2], k.astype(np.float64), True)
    np.testing.assert_allclose(found["a"].reshape(20, 30), planes[0], atol=2e-5)


def test_rows_with_a_margin() -> None:
    """A plane of h + 2 by w + 2 points, of which the inner ones are written."""
    body = """\
    if (x > 0 && x < (w + 1) && y > 0 && y < (h + 1)) {
        b[y * (w + 2) + x] = 0.25f * (a[(y - 1) * (w + 2) + x] + a[(y + 1) * (w + 2) + x] + a[y * (w + 2) + x - 1])
            + k[0] * a[y * (w + 2) + x + 1];
    }"""
    text = kernel(body).replace("f32[h * w]", "f32[(h + 2) * (w + 2)]")
    request = ask(text.replace("dim3((w + 7) / 8, (h + 3) / 4)", "dim3((w + 9) / 8, (h + 5) / 4)"))
    a, b, k = (np.random.default_rng(n).uniform(0.2, 1, (12, 22)).astype(np.float32) for n in range(3))
    found = run(rewritten(request, tuned(request, 3)), request.workload, {"a": a, "b": b, "k": k}, h=10, w=20, steps=4)
    planes = [a.astype(np.float64), b.astype(np.float64)]
    for turn in range(4):
        old, new = planes[turn % 2], planes[1 - turn % 2]
        new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2]) + k[0, 0] * old[1:-1, 2:]
    np.testing.assert_allclose(found["a"].reshape(12, 22), planes[0], atol=2e-5)
    np.testing.assert_allclose(found["b"].reshape(12, 22), planes[1], atol=2e-5)


def test_elements_are_counted_in_as_many_bits_as_before() -> None:
    request = ask(kernel(COPIED.replace("int i = y * w + x;", "size_t i = (size_t)y * w + x;")))
    assert "step_at(a + (size_t)y * w + x, w, b + (size_t)y * w + x," in diff(request, tuned(request, 2))
    a, b, k = (np.random.default_rng(n).uniform(0.2, 1, (9, 70)).astype(np.float32) for n in range(3))
    found = run(rewritten(request, tuned(request, 2)), request.workload, {"a": a, "b": b, "k": k}, h=9, w=70, steps=5)
    planes = [a.astype(np.float64), b.astype(np.float64)]
    for turn in range(5):
        cross(planes[turn % 2], planes[1 - turn % 2], k.astype(np.float64), True)
    np.testing.assert_allclose(found["b"].reshape(9, 70), planes[1], atol=2e-5)


def test_the_step_is_written_once() -> None:
    request = ask(kernel(COPIED))
    change = diff(request, tuned(request, 2))
    assert change.count("+        float around =") == 1
    assert "// the edge stays" in change and "+    step_at(a + y * w + x, w, b + y * w + x, y, x, h, w, k);" in change
    assert "int i = y * w + x;" in change  # k is read at i


def test_layout_and_scope() -> None:
    text = kernel(COPIED).replace("    ", "\t").replace("\n", "\r\n").replace("size\t ", "size     ")
    request = ask(text.replace("//\t ", "//     "))
    document = rewritten(request, candidates(request, NAME)[0]).document
    assert document.text.count(b"\n") == document.text.count(b"\r\n")
    assert b"\r\n\t\tconst int y = top + r;" in document.text
    assert "needs plan" in refusal(ask(kernel(COPIED), Scope.RELAUNCH), NAME)


def test_planes_between_steps_fit_into_shared_memory() -> None:
    """Four steps with neighbours four rows away would take 57 KB of doubles."""
    far = COPIED.replace("x == 0 || y == 0 || x == w - 1 || y == h - 1", "x < 4 || y < 4 || x >= w - 4 || y >= h - 4")
    far = far.replace("a[i - w]", "a[i - 4 * w]").replace("a[i + w]", "a[i + 4 * w]")
    request = ask(kernel(far).replace("float", "double").replace("f32", "f64"))
    assert candidates(request, NAME)[0].tunables[0].values == (2, 3)


def looped(body: str) -> str:
    return "repeat   steps {\n" + "\n".join(f"//     {line}" for line in body.split("\n")) + "\n//   }"


LAUNCH = "launch step<<<GRID, dim3(8, 4)>>>(a, b, h, w, k)"
REFUSED = {
    "once": (kernel(COPIED, LAUNCH), "the plan has no loop"),
    "no swap": (kernel(COPIED, looped(LAUNCH)), "the plan has no loop"),
    "others in the loop": (kernel(COPIED, looped(f"{LAUNCH}\nfill a 0\nswap a b")), "the plan has no loop"),
    "other swap": (kernel(COPIED, looped(f"{LAUNCH}\nswap a k")), "not one alone is written"),
    "gap": (kernel(LEFT.replace("x > 0", "x != 5")), "leaves a gap"),
    "slanted": (kernel(LEFT.replace("x > 0", "x + y > 2")), "no bound of a row or a column"),
    "by value": (kernel(LEFT.replace("x > 0", "k[i] > 0")), "no bound of a row or a column"),
    "either": (kernel(LEFT.replace("x > 0 &&", "x > 0 ||")), "no bound of a row or a column"),
    "unbounded": (kernel(LEFT.replace(" && x < w - 1", "")), "not bounded by"),
    "sometimes": (kernel(COPIED.replace("b[i] = a[i];", "if (k[i] > 0) b[i] = a[i];")), "every point of a rectangle"),
    "adds": (kernel(COPIED.replace("b[i] = a[i] +", "b[i] += a[i] +")), "one element of one array"),
    "reads the old": (kernel(COPIED.replace("b[i] = a[i] +", "b[i] = b[i] +")), "which it writes"),
    "two planes": (
        kernel(COPIED.replace("b[i] = a[i];", "b[i] = a[i];\n        k[i] = 0;")).replace("const float* k", "float* k"),
        "one element of one array",
    ),
    "periodic": (kernel(COPIED.replace("a[i - 1]", "a[y * w + (x + w - 1) % w]")), "no neighbour at a fixed distance"),
    "shared": (kernel("    __shared__ float s[4];\n" + COPIED), "shared memory already"),
    "other index": (kernel(COPIED.replace("0.2f", "0.2f * threadIdx.x")), "beside the thread's place"),
    "one place": (kernel(COPIED, places="int x = threadIdx.x;\n    int y = blockIdx.y * blockDim.y + threadIdx.y;"),
                  "row and column"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    assert reason in refusal(ask(text), NAME)
