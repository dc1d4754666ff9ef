// A launch, whichever driver call makes it.
#pragma once

#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>  // once only: before CUDA 12.2 it has no guard of its own

#include <array>
#include <cstdint>

namespace capture {

struct Launch {
    CUfunction function = nullptr;
    std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
    std::uint32_t shared = 0, cooperative = 0;
    CUstream stream = nullptr;
    void** parameters = nullptr;
    void** extra = nullptr;
};

// The arguments of a driver call as CUPTI hands them over: its parameters, in order (generated_cuda_meta.h, which is not
// included as it fits one version of cuda.h alone).
struct LaunchKernel {
    CUfunction f;
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void** kernelParams;
    void** extra;  // not there in a cooperative launch
};

struct LaunchKernelEx {
    const CUlaunchConfig* config;
    CUfunction f;
    void** kernelParams;
    void** extra;
};

// Grid, block, shared bytes and stream, of whatever holds them.
template <typename P>
Launch shaped(const P* p) {
    Launch launch;
    launch.grid = {p->gridDimX, p->gridDimY, p->gridDimZ};
    launch.block = {p->blockDimX, p->blockDimY, p->blockDimZ};
    launch.shared = p->sharedMemBytes;
    launch.stream = p->hStream;
    return launch;
}

inline Launch classic(const LaunchKernel* p, bool cooperative) {
    Launch launch = shaped(p);
    launch.function = p->f;
    launch.parameters = p->kernelParams;
    launch.extra = cooperative ? nullptr : p->extra;
    launch.cooperative = cooperative;
    return launch;
}

inline Launch extended(const LaunchKernelEx* p) {
    Launch launch = shaped(p->config);
    launch.function = p->f;
    launch.parameters = p->kernelParams;
    launch.extra = p->extra;
    for (unsigned int i = 0; i < p->config->numAttrs; ++i) {
        const CUlaunchAttribute& one = p->config->attrs[i];
        if (one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            launch.cluster = {one.value.clusterDim.x, one.value.clusterDim.y, one.value.clusterDim.z};
        if (one.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) launch.cooperative = one.value.cooperative != 0;
    }
    return launch;
}

// The launch that a driver call makes. The variants `_ptsz` are those of programs whose default stream is each thread's
// own.
inline Launch launch_of(CUpti_CallbackId id, const void* parameters) {
    bool own = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz ||
               id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz ||
               id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;
    bool extends = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ||
                   id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz;
    bool cooperates = id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel ||
                      id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz;
    Launch launch = extends ? extended(static_cast<const LaunchKernelEx*>(parameters))
                            : classic(static_cast<const LaunchKernel*>(parameters), cooperates);
    if (launch.stream == nullptr) launch.stream = own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    return launch;
}

}  // namespace capture
