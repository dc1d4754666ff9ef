"""Textures and surfaces read off host code: descriptors filled member by member, arrays, copies into them."""

import pytest

from agent.source.document import parse
from agent.workload.errors import NoWorkload
from agent.workload.find import find_workload
from agent.workload.texture_words import texture_text
from agent.workload.workload import Workload

HOST = r"""
#include <cuda_runtime.h>
#include <vector>
#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { exit(1); } } while (0)
__global__ void rotate(float* out, int width, int height, float theta, cudaTextureObject_t tex) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float u = (float)x - (float)width / 2, v = (float)y - (float)height / 2;
    float tu = (u * cosf(theta) - v * sinf(theta)) / width, tv = (v * cosf(theta) + u * sinf(theta)) / height;
    out[y * width + x] = tex2D<float>(tex, tu + 0.5f, tv + 0.5f);
}
__global__ void gather(float4* out, const int* id, int n, cudaTextureObject_t tex) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float4>(tex, id[i]);
}
__global__ void fill(cudaSurfaceObject_t surf, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) surf2Dwrite(make_uchar4(x, y, 0, 255), surf, x * 4, y);
}
int main(int argc, char** argv) {
    int width = 512, height = argc > 1 ? atoi(argv[1]) : 256;
    std::vector<float> image(width * height);
    for (int i = 0; i < width * height; i++) image[i] = rand() / (float)RAND_MAX;
    float* out;
    CHECK(cudaMalloc(&out, width * height * sizeof(float)));
    cudaChannelFormatDesc channelDesc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t cuArray;
    CHECK(cudaMallocArray(&cuArray, &channelDesc, width, height));
    size_t row = width * sizeof(float);
    CHECK(cudaMemcpy2DToArray(cuArray, 0, 0, image.data(), row, row, height, cudaMemcpyHostToDevice));
    struct cudaResourceDesc resDesc;
    memset(&resDesc, 0, sizeof(resDesc));
    resDesc.resType = cudaResourceTypeArray;
    resDesc.res.array.array = cuArray;
    struct cudaTextureDesc texDesc;
    memset(&texDesc, 0, sizeof(texDesc));
    texDesc.addressMode[0] = cudaAddressModeWrap;
    texDesc.addressMode[1] = cudaAddressModeMirror;
    texDesc.filterMode = cudaFilterModeLinear;
    texDesc.readMode = cudaReadModeElementType;
    texDesc.normalizedCoords = 1;
    cudaTextureObject_t texObj = 0;
    CHECK(cudaCreateTextureObject(&texObj, &resDesc, &texDesc, NULL));
    dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
    rotate<<<grid, block>>>(out, width, height, 0.5f, texObj);

    int n = 4096, m = 1000;
    float4 *points, *found; int* id;
    cudaMalloc(&points, m * sizeof(float4)); cudaMalloc(&found, n * sizeof(float4)); cudaMalloc(&id, n * sizeof(int));
    std::vector<int> h(n); for (int i = 0; i < n; i++) h[i] = rand() % m;
    cudaMemcpy(id, h.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = points;
    r.res.linear.desc = cudaCreateChannelDesc<float4>();
    r.res.linear.sizeInBytes = m * sizeof(float4);
    cudaTextureDesc t = {};
    t.readMode = cudaReadModeElementType;
    cudaTextureObject_t tex;
    cudaCreateTextureObject(&tex, &r, &t, nullptr);
    gather<<<(n + 127) / 128, 128>>>(found, id, n, tex);

    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
    cudaArray_t drawn;
    cudaMallocArray(&drawn, &bytes, width, height, cudaArraySurfaceLoadStore);
    memset(&resDesc, 0, sizeof(resDesc));
    resDesc.resType = cudaResourceTypeArray;
    resDesc.res.array.array = drawn;
    cudaSurfaceObject_t surf = 0;
    cudaCreateSurfaceObject(&surf, &resDesc);
    fill<<<grid, block>>>(surf, width, height);
    cudaDeviceSynchronize();
}
"""


def found(kernel: str, text: str = HOST) -> Workload:
    document = parse(text.encode())
    return find_workload(document, document.kernel(kernel))


def told(workload: Workload) -> list[str]:
    return [" ".join(texture_text(one).split()) for one in workload.textures]


def test_an_array_with_its_filter_and_modes() -> None:
    workload = found("rotate")
    assert told(workload) == [
        "texture tex: cuArray(512, height, filter=linear, address=wrap:mirror, normalized)"
    ]  # fmt: skip
    buffer = workload.buffer("cuArray")
    assert (buffer.dtype, buffer.access.value, buffer.domain.kind, str(buffer.extent)) == (
        "f32", "in", "uniform", "512 * height",
    )  # fmt: skip
    (launch,) = workload.plan.launches()
    assert [str(argument) for argument in launch.arguments] == ["out", "512", "height", "0.5f", "tex"]


def test_linear_memory_with_channels_made_by_a_template() -> None:
    workload = found("gather")
    assert told(workload) == ["texture tex: points(m, linear)"]
    assert workload.buffer("points").dtype == "f32x4" and workload.buffer("points").access.value == "in"
    assert workload.buffer("id").domain.kind == "integers"


def test_a_surface_that_is_only_written_is_an_output() -> None:
    workload = found("fill")
    assert told(workload) == ["surface surf: drawn(512, height)"]
    assert (workload.buffer("drawn").dtype, workload.buffer("drawn").access.value) == ("u8x4", "out")


def test_pitched_memory_keeps_its_pitch() -> None:
    workload = found("shift", PITCHED)
    assert told(workload) == ["texture tex: image(width, 64, pitch=(width * 2 + 511) / 512 * 512)"]
    assert workload.buffer("image").dtype == "u16"


PITCHED = r"""
__global__ void shift(float* out, cudaTextureObject_t tex, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < w * h) out[i] = tex2D<unsigned short>(tex, i % w + 1, i / w);
}
int main(int argc, char** argv) {
    int width = atoi(argv[1]), height = 64;
    float* out; unsigned short* image; size_t pitch;
    cudaMalloc(&out, width * height * sizeof(float));
    cudaMallocPitch((void**)&image, &pitch, width * sizeof(unsigned short), height);
    cudaMemcpy2D(image, pitch, given, width * 2, width * 2, height, cudaMemcpyHostToDevice);
    cudaResourceDesc res{};
    res.resType = cudaResourceTypePitch2D;
    res.res.pitch2D.devPtr = image;
    res.res.pitch2D.desc.f = cudaChannelFormatKindUnsigned;
    res.res.pitch2D.desc.x = 16;
    res.res.pitch2D.width = width;
    res.res.pitch2D.height = height;
    res.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how{};
    for (int axis = 0; axis < 2; axis++) how.addressMode[axis] = cudaAddressModeClamp;
    cudaTextureObject_t tex;
    cudaCreateTextureObject(&tex, &res, &how, NULL);
    shift<<<(width * height + 255) / 256, 256>>>(out, tex, width, height);
}
""".replace("atoi(argv[1])", "argc > 1 ? atoi(argv[1]) : 300")


LAYERS = r"""
__global__ void pick(float* out, cudaTextureObject_t tex) { out[threadIdx.x] = tex2DLayered<float>(tex, 1, 2, 0); }
int main() {
    float* out;
    cudaMalloc(&out, 32 * sizeof(float));
    cudaChannelFormatDesc kind = cudaCreateChannelDesc<float>();
    cudaArray* layers;
    cudaExtent extent = make_cudaExtent(64, 32, 5);
    cudaMalloc3DArray(&layers, &kind, extent, FLAGS);
    float* host = (float*)calloc(64 * 32 * 5, sizeof(float));
    cudaMemcpy3DParms copy = {0};
    copy.srcPtr = make_cudaPitchedPtr(host, 64 * sizeof(float), 64, 32);
    copy.dstArray = layers;
    copy.extent = extent;
    cudaMemcpy3D(&copy);
    cudaResourceDesc res;
    memset(&res, 0, sizeof(res));
    res.resType = cudaResourceTypeArray;
    res.res.array.array = layers;
    cudaTextureDesc how;
    memset(&how, 0, sizeof(how));
    how.filterMode = MODE;
    cudaTextureObject_t tex;
    cudaCreateTextureObject(&tex, &res, &how, NULL);
    pick<<<1, 32>>>(out, tex);
}
"""


def layered(flags: str, mode: str = "cudaFilterModeLinear") -> Workload:
    return found("pick", LAYERS.replace("FLAGS", flags).replace("MODE", mode))


def test_layers_and_a_copy_by_parameters() -> None:
    workload = layered("cudaArrayLayered")
    assert told(workload) == ["texture tex: layers(64, 32, 5, layered, filter=linear)"]
    assert workload.buffer("layers").access.value == "in"
    # three dimensions where no flag says layers
    assert told(layered("0")) == ["texture tex: layers(64, 32, 5, filter=linear)"]


@pytest.mark.parametrize(
    ("flags", "mode", "why"),
    [
        ("cudaArrayCubemap", "cudaFilterModePoint", "cube maps have no words"),
        ("0", "mode_of(out)", "how it is read is not known"),
    ],
)
def test_what_is_not_known_is_asked_with_its_reason(flags: str, mode: str, why: str) -> None:
    with pytest.raises(NoWorkload) as error:
        layered(flags, mode)
    assert why in str(error.value) and "`texture tex: buffer(width, height)`" in str(error.value)


def test_a_kernel_that_nothing_launches_gets_a_draft_with_its_texture() -> None:
    with pytest.raises(NoWorkload) as error:
        found(
            "alone", "__global__ void alone(float* out, cudaTextureObject_t t, cudaSurfaceObject_t s) { out[0] = 1; }"
        )
    draft = error.value.draft
    assert "texture  t: t_texels(?, ?)" in draft and "surface  s: s_texels(?, ?)" in draft
    assert "buffer   t_texels: f32[?] in" in draft


HELPED = r"""
__global__ void add(float* out, cudaTextureObject_t a, cudaTextureObject_t b) {
    out[threadIdx.x] = tex2D<float>(a, threadIdx.x, 0) + tex2D<float>(b, threadIdx.x, 1);
}
cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode mode) {
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    cudaTextureDesc how = {};
    how.filterMode = mode;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t made = 0;
    cudaCreateTextureObject(&made, &res, &how, nullptr);
    return made;
}
int main() {
    float* out;
    cudaMalloc(&out, 32 * sizeof(float));
    cudaChannelFormatDesc kind = cudaCreateChannelDesc<float>();
    cudaArray_t arrays[2];
    cudaTextureObject_t views[2];
    cudaMallocArray(&arrays[0], &kind, 64, 16);
    cudaMallocArray(&arrays[1], &kind, 64, 16);
    views[0] = texture_of(arrays[0], cudaFilterModePoint);
    views[1] = texture_of(arrays[1], cudaFilterModeLinear);
    add<<<1, 32>>>(out, views[0], views[1]);
}
"""


def test_objects_made_by_a_function_and_kept_in_arrays() -> None:
    workload = found("add", HELPED)
    assert [one.split("(")[1] for one in told(workload)] == ["64, 16)", "64, 16, filter=linear)"]
    assert len({one.buffer for one in workload.textures}) == 2 and len(workload.buffers) == 3
