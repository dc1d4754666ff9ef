// A program whose launches are captured by tests/gpu/test_capture.py. The first argument says what it does.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        cudaError_t code = (call);                                                           \
        if (code != cudaSuccess) {                                                           \
            std::printf("%s: %s\n", #call, cudaGetErrorString(code));                        \
            std::exit(9);                                                                    \
        }                                                                                    \
    } while (0)

__global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

namespace ns {
template <typename T, int N>
__global__ void scaled(const T* x, T* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * N;
}
}  // namespace ns

__constant__ float weights[4];
__global__ void weighted(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = weights[i % 4] * x[i];
}

// Takes a fifth of a second before it writes: who does not wait for it sees what was there before.
__global__ void late_fill(float* x, int n, float value) {
    long long end = clock64() + 300000000ll;
    while (clock64() < end) {
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = value + i;
}

struct Pair {
    float* p;
    int n;
};
__global__ void by_value(Pair pair) {
    if (threadIdx.x < pair.n) pair.p[threadIdx.x] = 1.0f;
}

extern "C" __global__ void plain(int* counter) { atomicAdd(counter, 1); }
__global__ void together(float* x) {
    cooperative_groups::this_grid().sync();
    x[blockIdx.x] = 1.0f;
}
__global__ void outside(float* x) { x[1ll << 40] = 1.0f; }
__global__ void nothing() {}

const int n = 1000;

float* filled(float first, cudaError_t (*allocate)(void**, size_t)) {
    float* x = nullptr;
    CHECK(allocate(reinterpret_cast<void**>(&x), n * sizeof(float)));
    float host[n];
    for (int i = 0; i < n; ++i) host[i] = first + 0.5f * i;
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyDefault));
    return x;
}
cudaError_t device(void** p, size_t bytes) { return cudaMalloc(p, bytes); }
cudaError_t managed(void** p, size_t bytes) { return cudaMallocManaged(p, bytes); }
cudaError_t pinned(void** p, size_t bytes) { return cudaMallocHost(p, bytes); }
cudaError_t pooled(void** p, size_t bytes) { return cudaMallocAsync(p, bytes, 0); }

int main(int argc, char** argv) {
    std::string mode = argc > 1 ? argv[1] : "plain";
    std::printf("mode %s\n", mode.c_str());
    std::fflush(stdout);
    float* x = filled(1.0f, device);
    float* y = filled(-20.0f, device);
    if (mode == "plain") {
        axpy<<<4, 256>>>(n, 2.0f, x, y);
        ns::scaled<float, 3><<<8, 128, 64>>>(x, y, n);
    } else if (mode == "order") {
        cudaStream_t free, blocking;
        CHECK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
        CHECK(cudaStreamCreate(&blocking));
        late_fill<<<1, 32, 0, free>>>(x, n, 7.0f);
        axpy<<<4, 256, 0, free>>>(n, 2.0f, x, y);
        CHECK(cudaStreamSynchronize(free));
        late_fill<<<1, 64, 0, blocking>>>(x, n, 9.0f);  // the default stream waits for it by itself
        ns::scaled<float, 3><<<8, 128>>>(x, y, n);
    } else if (mode == "memory") {
        ns::scaled<float, 1><<<1, 32>>>(x + 100, y + 200, 16);
        ns::scaled<float, 2><<<1, 32>>>(filled(2.0f, managed), filled(3.0f, pinned), n);
        ns::scaled<float, 4><<<1, 32>>>(filled(4.0f, pooled), y, n);
        axpy<<<1, 32>>>(0, 1.0f, nullptr, y);
    } else if (mode == "symbol") {
        float host[4] = {1, 2, 3, 4};
        CHECK(cudaMemcpyToSymbol(weights, host, sizeof host));
        weighted<<<4, 256>>>(x, y, n);
    } else if (mode == "kinds") {
        void* arguments[] = {&x};
        CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(together), dim3(2), dim3(32), arguments, 0, nullptr));
        by_value<<<1, 32>>>(Pair{x, 4});
        nothing<<<2, 32>>>();
        cudaLaunchConfig_t config{};
        config.gridDim = dim3(4, 2);
        config.blockDim = dim3(64);
        cudaLaunchAttribute attribute{};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = 2;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        config.attrs = &attribute;
        config.numAttrs = 1;
        int* counter = reinterpret_cast<int*>(y);
        CHECK(cudaLaunchKernelEx(&config, plain, counter));
    } else if (mode == "graph") {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t made;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        axpy<<<4, 256, 0, stream>>>(n, 2.0f, x, y);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&made, graph, 0));
        CHECK(cudaGraphLaunch(made, stream));
        CHECK(cudaGraphLaunch(made, stream));
        CHECK(cudaStreamSynchronize(stream));
        ns::scaled<float, 5><<<1, 32>>>(x, y, n);
    } else if (mode == "many") {
        for (int i = 0; i < 100000; ++i) plain<<<1, 1 + i % 5>>>(reinterpret_cast<int*>(y));
    } else if (mode == "threads") {
        auto work = [&](int first) {
            for (int i = 0; i < 200; ++i) plain<<<first + i, 32>>>(reinterpret_cast<int*>(y));
        };
        std::thread other(work, 1000);
        work(1);
        other.join();
    } else if (mode == "fault") {
        outside<<<1, 1>>>(x);
        if (cudaDeviceSynchronize() != cudaSuccess) return 5;
    }
    CHECK(cudaDeviceSynchronize());
    if (mode == "plain" || mode == "many") {
        float host[2];
        CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDefault));
        std::printf("y %g %g\n", host[0], host[1]);
    }
    return mode == "plain" ? 7 : 0;
}
