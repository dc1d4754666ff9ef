"""What one answer settles, and under which name it is asked for."""

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.settings import Settings
from tests.workload.test_static import KERNEL, filled, found

SEVERAL = """
int main() {
    int n, m = 3; float a; scanf("%d %f", &n, &a);
    int rows = read_number(), cols = read_number();
    float *x, *y; cudaMalloc(&x, 2 * n * sizeof(float)); cudaMalloc(&y, (n + m) * rows * cols * sizeof(float));
    k<<<(n + 255) / 256, 256>>>(x, y, n * rows);
}
"""


def test_one_answer_settles_all_that_is_computed_from_a_number() -> None:
    with pytest.raises(NoWorkload) as raised:
        found(SEVERAL)
    assert raised.value.questions == ("value of `n`?", "value of `rows`?", "value of `cols`?")
    answered = found(SEVERAL, answers={"n": 100, "rows": 3, "cols": 5})
    values = {size.name: size.value for size in answered.sizes}
    assert [buffer.extent.integer(values) for buffer in answered.buffers] == [200, 103 * 15]


def test_numbers_that_come_from_one_place_one_after_the_other_are_asked_for_apart() -> None:
    host = """
    int next() { int v; scanf("%d", &v); return v; }
    int main() { int* d = new int[2]; d[0] = next(); d[1] = next();
      float *x, *y; cudaMalloc(&x, d[0] * 4); cudaMalloc(&y, d[1] * 4); k<<<1, 32>>>(x, y, 1); }
    """
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert len(raised.value.questions) == 2


def test_a_number_that_was_read_anew_is_another_one() -> None:
    host = """
    int main() { int n; scanf("%d", &n); float* x; cudaMalloc(&x, n * 4); scanf("%d", &n);
      float* y; cudaMalloc(&y, n * 4); k<<<1, 32>>>(x, y, n); }
    """
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert len(raised.value.questions) == 2


@pytest.mark.parametrize(
    "body",
    [
        "int n = 8; if (time(0) > 5) n = 9;",
        "int n = 8; for (int i = 0; i < g(); i++) n += i;",
        'int n; scanf("%d", &n);',
    ],
)
def test_the_name_that_is_asked_for_takes_the_answer(body: str) -> None:
    host = f"int main() {{ {body} @M k<<<1, 32>>>(x, y, 2 * n); }}"
    with pytest.raises(NoWorkload) as raised:
        found(host)
    assert raised.value.questions == ("value of `n`?",) and "size     n = ?" in raised.value.draft
    answered = found(host, answers={"n": 40})
    names: dict[str, int | float] = {size.name: size.value for size in answered.sizes}
    names |= {part.name: part.value.evaluate({}) for part in answered.constants}
    assert answered.plan.launches()[0].arguments[2].evaluate(names) == 80


def test_a_fraction_is_answered_as_a_constant() -> None:
    kernel = KERNEL.replace("int n)", "int n, float a)")
    host = "int main() { int n = 64; float a = read(); @M k<<<1, 32>>>(x, y, n, a); }"
    with pytest.raises(NoWorkload) as raised:
        found(host, kernel)
    assert "const    a = ?" in raised.value.draft
    answered = kernel.replace("__global__", "// cuda-lsp: workload\n//   const a = 0.5\n__global__")
    document = parse(filled(answered + host).encode())
    told = find_workload(document, document.kernel("k"), Settings())
    assert [(part.name, part.value.evaluate({})) for part in told.constants] == [("a", 0.5)]
