"""What decides addresses and branches: loads and special registers, through registers, memory, branches and loops."""

import pytest

from agent.execution.emulator.influence import Influence, influence
from agent.execution.emulator.memory_use import writes_to
from agent.execution.emulator.program import load
from tests.execution.emulator.building import build

HEAD = 'extern "C" __global__ void k({}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {} }}'


def found(parameters: str, body: str, *options: str) -> tuple[Influence, dict[int, int]]:
    """The influence, and the source line of each site."""
    kernel = load(build(HEAD.format(parameters, body), *options)).kernel("k")
    return influence(kernel), {site.index: site.line for site in kernel.sites}


def loads(sources: "frozenset[int | str]") -> set[int]:
    return {one for one in sources if isinstance(one, int)}


def by_data(told: Influence) -> tuple[int, int, int]:
    """How many addresses, walks and branches hang on loaded values."""
    return tuple(  # type: ignore[return-value]
        sum(bool(loads(sources)) for sources in part.values()) for part in (told.addresses, told.through, told.branches)
    )


def test_a_plain_kernel_has_no_address_that_hangs_on_data() -> None:
    told, _ = found("const float* x, float* y, int n", "if (i < n) y[i] = x[i];")
    assert by_data(told) == (0, 0, 0)
    assert any("ctaid.x" in sources for sources in told.branches.values())


def test_an_index_that_is_loaded() -> None:
    told, _ = found("const int* c, const float* x, float* y", "y[i] = x[c[i]];")
    addresses, through, branches = by_data(told)
    assert (addresses, through, branches) == (1, 0, 0)


def test_a_store_and_an_atomic_at_a_loaded_index() -> None:
    told, _ = found("const int* c, int* h", "atomicAdd(h + c[i], 1);")
    assert by_data(told)[0] == 1


@pytest.mark.parametrize("options", [(), ("-G",)], ids=["optimised", "unoptimised"])
def test_an_index_that_went_through_shared_memory(options: tuple[str, ...]) -> None:
    body = "__shared__ int s[32]; s[threadIdx.x] = c[i]; __syncthreads(); y[i] = x[s[31 - threadIdx.x]];"
    told, _ = found("const int* c, const float* x, float* y", body, *options)
    assert by_data(told)[0] >= 1


def test_data_in_shared_memory_decides_no_address() -> None:
    body = "__shared__ float s[32]; s[threadIdx.x] = x[i]; __syncthreads(); y[i] = s[31 - threadIdx.x];"
    assert by_data(found("const float* x, float* y", body)[0]) == (0, 0, 0)


def test_an_index_that_went_through_local_memory_and_a_shuffle() -> None:
    body = "int t[8]; for (int k = 0; k < 8; k++) t[k] = c[i * 8 + k]; y[i] = x[t[n & 7]];"
    assert by_data(found("const int* c, const float* x, float* y, int n", body)[0])[0] >= 1
    told, _ = found("const int* c, const float* x, float* y", "y[i] = x[__shfl_xor_sync(~0u, c[i], 1)];")
    assert by_data(told)[0] == 1


def test_a_loaded_value_that_only_decides_whether() -> None:
    told, _ = found("const float* x, float* y, int n", "if (i < n && x[i] > 0) y[i] = 1;")
    addresses, through, branches = by_data(told)
    assert (addresses, through) == (0, 0) and branches == 1


def test_a_loop_whose_turns_are_loaded_walks_as_far_as_they_say() -> None:
    body = "float s = 0; for (int k = 0; k < len[i]; k++) s += x[k * n + i]; y[i] = s;"
    told, _ = found("const int* len, const float* x, float* y, int n", body)
    addresses, through, branches = by_data(told)
    assert addresses == 0 and through >= 1 and branches >= 1
    kernel = load(build(HEAD.format("const int* len, const float* x, float* y, int n", body))).kernel("k")
    stores = [site.index for site in kernel.sites if writes_to(site.instruction) is not None]
    assert not any(loads(told.through[index]) for index in stores)  # ``y[i]`` is where it is however long the walk


def test_a_binary_search_goes_where_the_data_says() -> None:
    body = """int low = 0, high = n; while (low < high) { int m = (low + high) / 2;
        if (a[m] < i) low = m + 1; else high = m; } y[i] = low;"""
    addresses, through, _ = by_data(found("const int* a, int* y, int n", body)[0])
    assert addresses + through >= 1


def test_a_loop_over_a_number_that_is_passed_hangs_on_no_data() -> None:
    body = "float s = 0; for (int k = 0; k < n; k++) s += x[k * n + i]; if (s > 0) y[i] = s;"
    addresses, through, branches = by_data(found("const float* x, float* y, int n", body)[0])
    assert (addresses, through, branches) == (0, 0, 1)
