"""Sizes by hand: what a reader of the launch expressions would pick, and rules that hold for any base."""

from hypothesis import given
from hypothesis import strategies as st

from agent.evaluation.contracts.contract import Contract, find_contract
from agent.evaluation.declared import spots
from agent.evaluation.estimates.counting import interior
from agent.evaluation.oracles.truth import Bench
from agent.evaluation.sizes import (
    Draw,
    Rule,
    bases,
    ceilings,
    describe,
    hidden,
    least,
    loop_sizes,
    next_prime,
    variants,
)
from agent.execution.compiler import build
from agent.execution.compiler.result import Build, Options
from tests.evaluation.kernels import SOFTMAX, original, setting
from tests.evaluation.test_shapes import HEAT, MATMUL, SPMV, TRANSPOSE


def first(text: str) -> dict[str, int]:
    program, workload = original(text)
    return next(bases(workload, program))


def test_blocks_partial_tiles_and_loop_turns() -> None:
    # a block a row: three rows; 128 threads walk the columns: two and a half turns
    assert first(SOFTMAX) == {"rows": 3, "cols": 320}
    # tiles of 16: one and a half each way; k is only looped over
    assert first(MATMUL) == {"m": 24, "n": 24, "k": 512}
    # tiles of 32 x 8
    assert first(TRANSPOSE) == {"rows": 12, "cols": 48}


def test_a_count_of_time_steps_is_three() -> None:
    assert first(HEAT) == {"n": 384, "steps": 3}


def test_sizes_that_threads_loop_over() -> None:
    for text, names in ((SOFTMAX, {"cols"}), (MATMUL, {"k"}), (HEAT, set()), (SPMV, {"nnz"})):
        program, workload = original(text)
        assert loop_sizes(workload, program) == names


def test_the_least_sizes_launch_something() -> None:
    text = """
// cuda-lsp: workload
//   size     n = 4096, m = 40 min 7
//   buffer   y: f32[n * m] out
//   launch   k<<<n / 128, 128>>>(y, n, m)
__global__ void k(float* y, int n, int m) { y[blockIdx.x * m] = n; }
"""
    program, workload = original(text)
    assert least(workload, program, {"n": 512, "m": 20}) == {"n": 128, "m": 20}
    assert least(workload, program, {"n": 64, "m": 20}) == {"n": 64, "m": 20}
    program, workload = original(text.replace("n / 128", "(n + 127) / 128"))
    assert least(workload, program, {"n": 512, "m": 20}) == {"n": 1, "m": 7}


def test_next_prime() -> None:
    assert [next_prime(n) for n in (0, 2, 3, 4, 24, 90, 7920)] == [2, 2, 3, 5, 29, 97, 7927]


SIZES = st.dictionaries(st.sampled_from(["rows", "cols", "depth"]), st.integers(1, 5000), min_size=1)


@given(SIZES, st.sampled_from([1, 2, 4, 32]), st.integers(1, 40))
def test_variants_and_hidden_sizes_keep_the_rules(base: dict[str, int], multiple: int, minimum: int) -> None:
    rules = {name: Rule(name, multiple, minimum) for name in base}
    base = {name: rules[name].fit(value) for name, value in base.items()}
    tried = [*variants(base, rules).values(), hidden(base, rules, Draw())]
    for sizes in tried:
        assert sizes.keys() == base.keys()
        assert all(rules[name].allows(value) for name, value in sizes.items()), describe(sizes)
    distinct = [tuple(sorted(sizes.items())) for sizes in variants(base, rules).values()]
    assert len(set(distinct)) == len(distinct)


@given(st.integers(1, 100_000))
def test_counted_blocks_lie_inside_the_grid(total: int) -> None:
    chosen = interior(total)
    assert all(0 <= block < total for block in chosen)
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) >= min(total, 3)
    assert total < 20 or total - 1 not in chosen


def test_one_block_is_taken_from_the_middle() -> None:
    assert interior(1000, 1) == (500,)
    assert interior(1, 1) == (0,)
    assert interior(1000) == (166, 167, 168, 500, 501, 502, 833, 834, 835)


def test_without_rules_the_neighbours_are_one_off() -> None:
    found = variants({"n": 384}, {"n": Rule("n")})
    assert found["plus one"] == {"n": 385}
    assert found["minus one"] == {"n": 383}
    assert found["primes"] == {"n": 433}
    assert found["smallest"] == {"n": 1}


@given(st.integers(1, 100_000), st.integers(1, 30), st.integers(0, 3))
def test_sampled_blocks_are_blocks_of_the_grid(total: int, count: int, extra: int) -> None:
    chosen = spots(count, extra)(total)
    assert list(chosen) == sorted(set(chosen))
    assert chosen[0] == 0
    assert chosen[-1] == total - 1 or count < 3
    assert all(0 <= block < total for block in chosen)
    assert set(spots(count)(total)) <= set(spots(count, extra)(total))


NARROW = """
// cuda-lsp: workload
//   size     n = 200, m = 90
//   buffer   x: f32[n * m] in
//   buffer   y: f32[n * m] out
//   launch   k<<<n, 32>>>(x, y, n, m)
__global__ void k(const float* x, float* y, unsigned char n, short m) {
    for (int i = threadIdx.x; i < m; i += 32) y[blockIdx.x * m + i] = blockIdx.x < n ? x[blockIdx.x * m + i] : 0.0f;
}
"""


def test_no_size_grows_beyond_the_type_that_it_is_passed_in() -> None:
    program, workload = original(NARROW)
    assert ceilings(workload, program) == {"n": 255, "m": 32767}
    narrow, even = Rule("n", maximum=255), Rule("n", multiple=8, maximum=255)
    assert (narrow.fit(250), narrow.fit(256), narrow.allows(255), narrow.allows(256)) == (250, 255, True, False)
    assert (even.fit(241), even.fit(249)) == (248, 248)
    assert {sizes["n"] for sizes in variants({"n": 255}, {"n": narrow}).values()} == {255, 254, 1}


def test_a_contract_says_what_a_narrow_type_holds() -> None:
    program, workload = original(NARROW)
    built = build(program, Options())
    assert isinstance(built, Build)
    found = find_contract(Bench(program, workload, setting(), built), setting().device)
    assert isinstance(found, Contract)
    assert "n >= 1 and <= 255, which is all that its type holds" in found.summary
    assert all(sizes["n"] <= 255 for sizes in found.tried.values())
