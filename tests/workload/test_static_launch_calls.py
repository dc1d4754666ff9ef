"""Launches that are not written ``k<<<...>>>``: by calls of the runtime and of the driver, and through pointers."""

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.static import infer
from agent.workload.workload import Workload

KERNEL = "__global__ void k(float* x, const float* y, int n) { int i = threadIdx.x; if (i < n) x[i] = y[i]; }\n"
TEMPLATE = (
    "template <typename T, int V> __global__ void t(T* x, const T* y, int n)"
    " { int i = threadIdx.x * V; if (i < n) x[i] = y[i]; }\n"
)
BUFFERS = (
    "int n = 4096; float *x, *y; cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&y, n * sizeof(float));"
    " float* h = (float*)malloc(n * 4); for (int i = 0; i < n; ++i) h[i] = rand() / (float)RAND_MAX;"
    " cudaMemcpy(y, h, n * 4, cudaMemcpyHostToDevice);\n"
)
CONFIGURATION = "cudaLaunchConfig_t config = {0}; config.gridDim = (n + 127) / 128; config.blockDim = 128;"
CLUSTERS = (
    "cudaLaunchAttribute attribute[2]; attribute[0].id = cudaLaunchAttributeClusterDimension;"
    " attribute[0].val.clusterDim.x = 2; attribute[0].val.clusterDim.y = 1; attribute[0].val.clusterDim.z = 1;"
    " config.attrs = attribute; config.numAttrs = 1;"
)


def inferred(body: str, kernel: str = "k", head: str = KERNEL, before: str = "") -> Workload:
    document = parse(f"{head}{before}int main() {{ {BUFFERS}{body} }}\n".encode())
    return infer(document, document.kernel(kernel))


def launched(found: Workload) -> tuple[str, list[int], list[int], int, list[str]]:
    """The one launch of a plan, at the sizes of the workload."""
    (launch,) = found.plan.launches()
    values: dict[str, int | float] = {size.name: size.value for size in found.sizes}
    values |= {one.name: one.value.evaluate(values) for one in found.constants}
    grid, block = ([part.integer(values) for part in three] for three in (launch.grid, launch.block))
    return launch.kernel, grid, block, launch.shared.integer(values), [str(one) for one in launch.arguments]


@pytest.mark.parametrize(
    "body",
    [
        "void* args[] = {&x, &y, &n}; cudaLaunchKernel((void*)k, dim3((n + 127) / 128), dim3(128), args, 512, 0);",
        "void* args[3] = {(void*)&x, (void*)&y, (void*)&n};"
        " cudaLaunchCooperativeKernel((const void*)&k, (n + 127) / 128, 128, args, 512);",
        "void* args[3]; args[0] = &x; args[1] = &y; args[2] = &n;"
        " CHECK(cudaLaunchKernel(reinterpret_cast<void*>(&k), (n + 127) / 128, 128, args, 512, nullptr));",
        "void (*f)(float*, const float*, int) = k; void* args[] = {&x, &y, &n};"
        " cudaLaunchKernel((void*)f, (n + 127) / 128, 128, args, 512, 0);",
        CONFIGURATION + "config.dynamicSmemBytes = 512; cudaLaunchKernelEx(&config, k, x, y, n);",
        "cudaLaunchConfig_t config{}; config.gridDim.x = (n + 127) / 128; config.blockDim.x = 128;"
        " config.dynamicSmemBytes = 512; cudaLaunchKernelEx(&config, &k, x, y, n);",
        "cudaLaunchConfig_t config; memset(&config, 0, sizeof(config)); config.gridDim = dim3((n + 127) / 128, 1, 1);"
        " config.blockDim = {128, 1, 1}; config.dynamicSmemBytes = 512; auto f = k;"
        " cudaLaunchKernelEx(&config, f, x, y, n);",
        "cudaLaunchConfig_t config = {(n + 127) / 128, 128, 512, 0}; cudaLaunchKernelEx(&config, k, x, y, n);",
        "cudaLaunchConfig_t config = {.gridDim = {(n + 127) / 128, 1, 1}, .blockDim = dim3(128),"
        " .dynamicSmemBytes = 512}; void* args[] = {&x, &y, &n}; cudaLaunchKernelExC(&config, (void*)k, args);",
        "void* args[] = {&x, &y, &n}; CUmodule module; CUfunction f; cuModuleGetFunction(&f, module, \"k\");"
        " cuLaunchKernel(f, (n + 127) / 128, 1, 1, 128, 1, 1, 512, 0, args, NULL);",
        "CUmodule module; CUfunction f; cuModuleGetFunction(&f, module, \"k\"); void* args[] = {&x, &y, &n};"
        " CUlaunchConfig config = {}; config.gridDimX = (n + 127) / 128; config.gridDimY = config.gridDimZ = 1;"
        " config.blockDimX = 128; config.blockDimY = 1; config.blockDimZ = 1; config.sharedMemBytes = 512;"
        " cuLaunchKernelEx(&config, f, args, 0);",
        "auto f = k; f<<<(n + 127) / 128, 128, 512>>>(x, y, n);",
        "void (*f)(float*, const float*, int); f = &k; (*f)<<<(n + 127) / 128, 128, 512>>>(x, y, n);",
        "typedef void (*F)(float*, const float*, int); F fs[] = {other, k};"
        " fs[1]<<<(n + 127) / 128, 128, 512>>>(x, y, n);",
        "auto f = sizeof(float) == 8 ? other : k; f<<<(n + 127) / 128, 128, 512>>>(x, y, n);",
    ],
)  # fmt: skip
def test_every_way_to_launch_is_read(body: str) -> None:
    other = "__global__ void other(float* x, const float* y, int n) { x[0] = n; }\n"
    found = inferred(body, before=other)
    assert launched(found) == ("k", [32, 1, 1], [128, 1, 1], 512, ["x", "y", "n"])
    assert [(buffer.name, buffer.access.value) for buffer in found.buffers] == [("x", "out"), ("y", "in")]


def test_a_launch_by_a_call_goes_along_with_the_sizes() -> None:
    found = inferred(CONFIGURATION + "cudaLaunchKernelEx(&config, k, x, y, n);")
    assert [(size.name, size.value) for size in found.sizes] == [("n", 4096)]
    (launch,) = found.plan.launches()
    assert launch.grid[0].integer({"n": 1000}) == 8


@pytest.mark.parametrize(
    "body",
    [
        "auto f = t<float, 4>; f<<<n / 128, 32>>>(x, y, n);",
        "cudaLaunchConfig_t c = {n / 128, 32}; cudaLaunchKernelEx(&c, t<float, 4>, x, y, n);",
        "void* args[] = {&x, &y, &n}; cudaLaunchKernel((void*)t<float, 4>, n / 128, 32, args, 0, 0);",
        "run(t<float, 4>, n / 128, 32, x, y, n);",
    ],
)
def test_a_pointer_to_an_instance_keeps_its_arguments(body: str) -> None:
    run = "template <class F> void run(F f, int g, int b, float* x, float* y, int n) { f<<<g, b>>>(x, y, n); }\n"
    assert launched(inferred(body, "t", TEMPLATE, run))[:3] == ("t<float, 4>", [32, 1, 1], [32, 1, 1])


def test_a_kernel_that_a_condition_chooses_ties_the_sizes() -> None:
    body = "auto f = t<float, 1>; if (n % 4 == 0) f = t<float, 4>; f<<<n / 128, 32>>>(x, y, n);"
    found = inferred(body, "t", TEMPLATE)
    assert launched(found)[0] == "t<float, 4>" and not found.sizes


def test_which_kernel_a_pointer_holds_may_be_open() -> None:
    with pytest.raises(NoWorkload):
        inferred("auto f = k; if (ask()) f = other(); f<<<1, 32>>>(x, y, n);")


def test_a_cooperative_launch_says_that_the_plan_is_plain() -> None:
    args = "void* args[] = {&x, &y, &n};"
    found = inferred(args + "cudaLaunchCooperativeKernel((void*)k, n / 128, 128, args, 0, 0);")
    assert "`k` is launched cooperatively, and by the plan plainly" in found.notes
    attribute = (
        "cudaLaunchAttribute a; a.id = cudaLaunchAttributeCooperative; a.val.cooperative = 1;"
        " config.attrs = &a; config.numAttrs = 1;"
    )
    again = inferred(CONFIGURATION + attribute + "cudaLaunchKernelEx(&config, k, x, y, n);")
    assert "`k` is launched cooperatively, and by the plan plainly" in again.notes
    plain = inferred(args + "cudaLaunchKernel((void*)k, n / 128, 128, args, 0, 0);")
    assert not any("cooperatively" in note for note in plain.notes)


def test_clusters_by_an_attribute_are_read_and_what_to_write_is_told() -> None:
    with pytest.raises(NoWorkload) as told:
        inferred(CONFIGURATION + CLUSTERS + "cudaLaunchKernelEx(&config, k, x, y, n);")
    assert "asks for clusters of (2, 1, 1) blocks" in told.value.message
    assert "write `__cluster_dims__(2, 1, 1)` before the name of `k`" in told.value.message


@pytest.mark.parametrize("dims", ["2, 1, 1", "2", "SIZE, 1"])
def test_clusters_that_the_kernel_itself_asks_for_are_launched(dims: str) -> None:
    head = "#define SIZE 2\n" + KERNEL.replace("void k", f"void __cluster_dims__({dims}) k")
    body = CONFIGURATION + CLUSTERS + "cudaLaunchKernelEx(&config, k, x, y, n);"
    assert launched(inferred(body, head=head))[1] == [32, 1, 1]
    assert launched(inferred("k<<<n / 128, 128>>>(x, y, n);", head=head))[1] == [32, 1, 1]


def test_clusters_of_one_block_are_none() -> None:
    body = CONFIGURATION + CLUSTERS.replace("x = 2", "x = 1") + "cudaLaunchKernelEx(&config, k, x, y, n);"
    assert launched(inferred(body))[1] == [32, 1, 1]


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ("config.numAttrs = ask();", "how many attributes the launch has is not known"),
        ("config.attrs = made(); config.numAttrs = 1;", "the attributes of the launch are not followed"),
        (CLUSTERS.replace("x = 2", "x = ask()"), "ask"),
    ],
)
def test_attributes_that_are_not_followed_are_asked_about(attributes: str, why: str) -> None:
    with pytest.raises(NoWorkload, match=why) as told:
        inferred(CONFIGURATION + attributes + "cudaLaunchKernelEx(&config, k, x, y, n);")
    assert "clusters of `k`?" in told.value.questions


def test_a_configuration_from_elsewhere_is_asked_about() -> None:
    with pytest.raises(NoWorkload) as told:
        inferred("cudaLaunchKernelEx(configured(), k, x, y, n);")
    assert {"grid of `k`?", "block of `k`?"} <= set(told.value.questions)


def test_arguments_that_are_not_followed_are_asked_about() -> None:
    with pytest.raises(NoWorkload) as told:
        inferred("cudaLaunchKernel((void*)k, n / 128, 128, made(), 0, 0);")
    assert {"size of `x` of `k`?", "size of `y` of `k`?", "value of `n` of `k`?"} <= set(told.value.questions)


def test_a_function_without_main_that_launches_by_a_call_is_read() -> None:
    text = KERNEL + "void run(float* a, float* b, int count) { cudaLaunchConfig_t c = {count, 64};" \
        " cudaLaunchKernelEx(&c, k, a, b, count); }\n"  # fmt: skip
    document = parse(text.encode())
    with pytest.raises(NoWorkload) as told:
        infer(document, document.kernel("k"), {"count": 64})
    assert set(told.value.questions) == {"size of `a`?", "size of `b`?"}


def test_launches_by_calls_go_on_with_what_was_written() -> None:
    second = "__global__ void second(const float* y, float* z, int n) { z[threadIdx.x] = y[n - 1 - threadIdx.x]; }\n"
    body = (
        "float* z; cudaMalloc(&z, n * 4); void* args[] = {&x, &y, &n};"
        " cudaLaunchKernel((void*)k, n / 128, 128, args, 0, 0); second<<<n / 128, 128>>>(x, z, n);"
    )
    found = inferred(body, before=second)
    assert [launch.kernel for launch in found.plan.launches()] == ["k", "second"]
    assert {buffer.name: buffer.access.value for buffer in found.buffers} == {"x": "out", "y": "in", "z": "out"}


def test_arrays_of_pointers_hold_them() -> None:
    found = inferred("float* both[2] = {x, y}; k<<<n / 128, 128>>>(both[0], both[1], n);")
    assert launched(found)[4] == ["x", "y", "n"]


def test_a_program_of_the_driver_interface() -> None:
    text = (
        KERNEL.replace("__global__", 'extern "C" __global__')
        + """\
int main() {
    int n = 4096; CUdeviceptr x, y; CUmodule module; CUfunction f;
    cuModuleLoad(&module, "k.cubin");
    cuModuleGetFunction(&f, module, "k");
    float* h = (float*)malloc(n * 4);
    for (int i = 0; i < n; ++i) h[i] = 0.5f;
    cuMemAlloc(&x, n * sizeof(float));
    cuMemAlloc_v2(&y, n * sizeof(float));
    cuMemsetD8(x, 0, n * sizeof(float));
    cuMemcpyHtoD(y, h, n * 4);
    void* args[] = {&x, &y, &n};
    cuLaunchKernel(f, (n + 127) / 128, 1, 1, 128, 1, 1, 512, 0, args, 0);
    cuCtxSynchronize();
    cuMemcpyDtoH(h, x, n * 4);
    cuMemFree(x);
}
"""
    )
    document = parse(text.encode())
    found = infer(document, document.kernel("k"))
    assert launched(found) == ("k", [32, 1, 1], [128, 1, 1], 512, ["x", "y", "n"])
    (y,) = [one for one in found.buffers if one.name == "y"]
    assert {one.dtype for one in found.buffers} == {"f32"} and y.access.value == "in"
