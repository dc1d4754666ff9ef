"""Launches behind functions with parameter packs: arguments go through them as C++ passes them."""

import pytest

from agent.workload.errors import NoWorkload
from tests.workload.test_static_launch_calls import inferred, launched

POINTER = """\
template <typename... Args> static void launch(void (*kernel)(Args...), dim3 grid, dim3 block, Args... args) {
    kernel<<<grid, block, 512>>>(args...);
}
"""
FORWARDED = """\
struct Params { dim3 grid, block; size_t shared; cudaStream_t stream; };
template <typename Kernel, typename... Args>
static void launch(Kernel kernel, const Params& p, Args&&... args) {
    kernel<<<p.grid, p.block, p.shared, p.stream>>>(std::forward<Args>(args)...);
}
"""
PACKED = """\
template <class F, class... Ts> cudaError_t launch(F f, dim3 g, dim3 b, Ts... ts) {
    void* packed[] = {(void*)&ts...};
    return cudaLaunchKernel((const void*)f, g, b, packed, 512, 0);
}
"""
CONFIGURED = """\
template <class F, class... Ts> void launch(F f, dim3 g, dim3 b, Ts... ts) {
    cudaLaunchConfig_t config = {}; config.gridDim = g; config.blockDim = b; config.dynamicSmemBytes = 512;
    CHECK(cudaLaunchKernelEx(&config, f, ts...));
}
"""
TWICE = POINTER.replace(" launch(", " inner(") + (
    "template <typename K, typename... Args> void launch(K kernel, dim3 grid, dim3 block, Args... args) {"
    " inner(kernel, grid, block, args...); }\n"
)
HEAD_AND_REST = """\
template <typename K, typename First, typename... Rest>
void launch(K kernel, dim3 grid, dim3 block, First* first, Rest... rest) {
    kernel<<<grid, block, 512>>>(first, rest...);
}
"""
CALL = "launch(k, dim3((n + 127) / 128), dim3(128), x, (const float*)y, n);"
OVERLOADED = POINTER + "static void launch(void (*kernel)(int), dim3 grid) { kernel<<<grid, 1>>>(7); }\n"


@pytest.mark.parametrize(
    ("before", "call"),
    [
        (POINTER, CALL),
        (FORWARDED, "Params p{dim3((n + 127) / 128), dim3(128), 512, 0}; launch(k, p, x, y, n);"),
        (PACKED, CALL),
        (CONFIGURED, CALL),
        (TWICE, CALL),
        (HEAD_AND_REST, CALL),
        (OVERLOADED, CALL),
        (POINTER, "launch(&k, dim3(n / 128), dim3(128), x, y, 4096);"),
    ],
)
def test_what_is_passed_through_a_pack_arrives(before: str, call: str) -> None:
    found = inferred(call, before=before)
    assert launched(found) == ("k", [32, 1, 1], [128, 1, 1], 512, ["x", "y", "n"]) or "4096" in call
    assert launched(found)[:4] == ("k", [32, 1, 1], [128, 1, 1], 512)
    assert {buffer.name for buffer in found.buffers} == {"x", "y"}


def test_two_kernels_through_one_function() -> None:
    other = "__global__ void clear(float* x) { x[threadIdx.x] = 0.0f; }\n"
    body = CALL + "launch(clear, dim3(1), dim3(32), x);"
    assert launched(inferred(body, before=other + POINTER))[4] == ["x", "y", "n"]
    assert launched(inferred(body, "clear", before=other + POINTER))[:3] == ("clear", [1, 1, 1], [32, 1, 1])


def test_what_a_reference_is_set_to_is_seen_and_a_copy_is_the_functions_own() -> None:
    sets = "template <class... Ts> void reset({pack} ts) {{ set(ts...); }}\nvoid set(int& a) {{ a = 128; }}\n"
    body = "int m = 256; reset(m); k<<<n / m, m, 512>>>(x, y, n);"
    assert launched(inferred(body, before=sets.format(pack="Ts&...")))[2] == [128, 1, 1]
    assert launched(inferred(body, before=sets.format(pack="Ts...")))[2] == [256, 1, 1]


def test_an_empty_pack_and_one_of_which_nothing_is_known() -> None:
    none = (
        "template <class... Ts> void launch(float* x, float* y, int n, Ts... ts) { k<<<32, 128>>>(x, y, n, ts...); }\n"
    )
    assert launched(inferred("launch(x, y, n);", before=none))[:3] == ("k", [32, 1, 1], [128, 1, 1])
    with pytest.raises(NoWorkload):
        inferred("", before=POINTER)


def test_packs_that_double_at_every_turn_end_soon() -> None:
    doubling = "template <class... Ts> void grow(Ts... ts) { grow(ts..., ts..., ts..., ts...); }\n"
    assert launched(inferred("grow(n, n, n, n); " + CALL, before=doubling + POINTER))[0] == "k"
