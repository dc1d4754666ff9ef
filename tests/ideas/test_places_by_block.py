"""Places of a list by one atomic a block: as many as before, each once, and every other effect as it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ideas.running import after, ask, candidates, diff, refusal, rewritten, run

NAME = "places-by-block"


def kernel(body: str, block: str = "128", counter: str = "int") -> str:
    dtype = {"int": "i32", "unsigned": "u32", "unsigned long long": "u64"}.get(counter, "i32")
    return f"""\
// cuda-lsp: workload
//   size     n = 1000
//   buffer   x: f32[n] in normal
//   buffer   kept: f32[n] out
//   buffer   where: i32[n] out
//   buffer   count: {dtype}[2] inout zeros
//   compare  kept multiset
//   compare  where multiset
//   launch   keep<<<(n + 127) / 128, {block}>>>(x, kept, where, count, n)
__global__ void keep(const float* x, float* kept, int* where, {counter}* count, int n) {{
    {body}
}}
"""


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n    "
FORMS = {
    "guards that leave": INDEX + """if (i >= n) return;
    float v = x[i];  // the element
    if (v > 0.5f || v < -2.0f) {
        int place = atomicAdd(count, 1);
        kept[place] = v;
        where[place] = i;
    }""",
    "nested": INDEX + """if (i < n) {
        const float v = x[i];
        if (v > 0.5f || v < -2.0f) {
            // its place
            const int at = i;
            const int place = atomicAdd(&count[0], 1);
            kept[place] = v;
            where[place] = at;
        }
    }""",
    "in a subscript": INDEX + """if (i >= n) return;
    if (!(x[i] > 0.5f || x[i] < -2.0f)) return;
    where[atomicAdd(count, 1)] = i;""",
    "values used later": INDEX + """if (i < n) {
        float v = x[i], w = v * 2.0f;
        if (w > 1.0f || w < -4.0f) {
            float u = w;
            if (u != 0.0f) {
                int place = atomicAdd(count, 1);
                if (place >= n) return;
                kept[place] = u / 2.0f;
                where[place] = i;
            }
        }
    }""",
}  # fmt: skip


@pytest.mark.parametrize("counter", ["int", "unsigned", "unsigned long long"])
@pytest.mark.parametrize("form", FORMS)
def test_each_gets_one_place(form: str, counter: str) -> None:
    request = ask(kernel(FORMS[form], counter=counter))
    (candidate,) = candidates(request, NAME)
    assert candidate.code.count("atomicAdd(counter, upto)") == 1
    x = np.random.default_rng(7).normal(size=1000).astype(np.float32)
    chosen = np.flatnonzero((x > 0.5) | (x < -2.0))
    start = np.zeros(2, np.uint64 if "long" in counter else np.int32)
    found = run(rewritten(request, candidate), request.workload, {"x": x, "count": start}, n=1000)
    assert list(found["count"]) == [len(chosen), 0]
    places = found["where"][: len(chosen)]
    assert sorted(places) == list(chosen)
    if "subscript" not in form:
        np.testing.assert_array_equal(found["kept"][: len(chosen)], x[places])
    assert refusal(after(request, candidate), NAME)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=300), st.sampled_from([32, 96, 256]))
def test_any_pattern_of_takers(takers: list[bool], block: int) -> None:
    text = kernel(FORMS["guards that leave"], str(block)).replace("(n + 127) / 128", f"(n + {block - 1}) / {block}")
    request = ask(text)
    (candidate,) = candidates(request, NAME)
    x = np.where(takers, 1.0, 0.0).astype(np.float32)
    inputs = {"x": x, "count": np.zeros(2, np.int32)}
    found = run(rewritten(request, candidate), request.workload, inputs, n=len(x))
    assert found["count"][0] == sum(takers)
    assert sorted(found["where"][: sum(takers)]) == list(np.flatnonzero(takers))


def test_what_is_written() -> None:
    request = ask(kernel(FORMS["guards that leave"]))
    (candidate,) = candidates(request, NAME)
    added = [line[1:] for line in diff(request, candidate).split("\n") if line.startswith("+")]
    assert added[added.index("    float v;") :] == [
        "    float v;",
        "    bool takes_place = i < n;",
        "    if (takes_place) {",
        "        v = x[i];  // the element",
        "        takes_place = v > 0.5f || v < -2.0f;",
        "    }",
        "    int place = next_place(count, takes_place);",
        "    if (takes_place) {",
    ]


STAYS = {
    "atomicAdd(count, 1);": "nobody uses",
    "int p = atomicAdd(count, 2); where[p] = i;": "more than one place",
    "int p = atomicAdd(&count[i % 2], 1); where[p] = i;": "differs from thread to thread",
    "where[i] = atomicAdd(count, 1) + atomicAdd(count + 1, 1);": "no single atomicAdd",
    "for (int k = 0; k < 2; ++k) where[atomicAdd(count, 1)] = i;": "in a loop or branch of its own",
    "where[i] = x[i] > 0 ? atomicAdd(count, 1) : 0;": "in a loop or branch of its own",
    "where[atomicAdd(count, 1)] = count[1];": "may touch what count counts",
    "int p = atomicAdd(count, 1); where[p] = __shfl_sync(~0u, p, 0);": "work together already",
    "if (threadIdx.x == 0) where[atomicAdd(count, 1)] = i;": "one thread of a block alone",
    "auto v = x[i]; if (v > 0) where[atomicAdd(count, 1)] = i;": "cannot be parted from its declaration",
    "if (x[i] > 0) where[atomicAdd(count, 1)] = i; else where[i] = 0;": "in a loop or branch of its own",
}


@pytest.mark.parametrize("body", STAYS)
def test_what_stays(body: str) -> None:
    assert STAYS[body] in refusal(ask(kernel(INDEX + "if (i >= n) return;\n    " + body)), NAME)


def test_blocks_must_be_whole_warps() -> None:
    assert "whole number of warps" in refusal(ask(kernel(FORMS["nested"], "100")), NAME)
    assert "whole number of warps" in refusal(ask(kernel(FORMS["nested"], "dim3(32, 4)")), NAME)
    unguarded = INDEX + "where[atomicAdd(count, 1)] = i;"
    assert "its own index would do" in refusal(ask(kernel(unguarded)), NAME)
