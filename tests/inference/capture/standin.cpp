// A STAND-IN for the CUDA driver and for CUPTI, for tests on machines without a card. It is none of NVIDIA's code and
// computes nothing on a card: "device" memory is the host's, "kernels" are functions of the test. What it has in common
// with the real ones is their interface: it loads the recorder where CUDA_INJECTION64_PATH says so, reports launches
// through the callback that was subscribed, and runs what was launched late, when somebody waits for it.

#include "standin.hpp"

#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Allocation {
    std::size_t bytes;
    unsigned int kind, managed;
    bool forbidden;
};

std::map<CUdeviceptr, Allocation> memory;
std::map<std::string, std::pair<void*, std::size_t>> globals;
std::vector<std::function<void()>> queue;
std::vector<bool> enabled(4096);
CUpti_CallbackFunc subscriber = nullptr;
bool capturing = false;
thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
std::mutex lock;  // over the queue, and what runs from it

void run_queue() {
    std::lock_guard<std::mutex> held(lock);
    auto now = std::move(queue);
    queue.clear();
    for (auto& one : now) one();
}

template <typename Body>
CUresult call(CUpti_CallbackId id, const void* parameters, const char* symbol, Body body) {
    CUpti_CallbackData data{};
    uint64_t correlation = 0xdead0001beef;  // nobody promises that it is empty
    CUresult result = CUDA_SUCCESS;
    data.functionParams = parameters;
    data.symbolName = std::getenv("STANDIN_NAMELESS") != nullptr ? nullptr : symbol;
    data.functionReturnValue = &result;
    data.correlationData = &correlation;
    data.contextUid = 1;
    bool told = subscriber != nullptr && enabled[id];
    data.callbackSite = CUPTI_API_ENTER;
    if (told) subscriber(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    result = body();
    data.callbackSite = CUPTI_API_EXIT;
    if (told) subscriber(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
    return result;
}

// Arguments are read when a launch is made, and the work is done later, as on a card.
CUresult launch(CUfunction f, void** parameters) {
    if (capturing) return CUDA_SUCCESS;
    auto* function = reinterpret_cast<Function*>(f);
    std::vector<std::vector<char>> copies;
    for (std::size_t i = 0; i < function->sizes.size(); ++i) {
        auto* from = static_cast<const char*>(parameters[i]);
        copies.emplace_back(from, from + function->sizes[i]);
    }
    std::lock_guard<std::mutex> held(lock);
    queue.push_back([function, copies]() mutable {
        std::vector<void*> pointers;
        for (auto& one : copies) pointers.push_back(one.data());
        function->body(pointers.data());
    });
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUdeviceptr standin_allocate(std::size_t bytes, unsigned int kind, unsigned int managed) {
    auto base = reinterpret_cast<CUdeviceptr>(std::calloc(bytes, 1));
    memory[base] = {bytes, kind, managed, false};
    return base;
}
void standin_forbid(CUdeviceptr base) { memory[base].forbidden = true; }
void standin_symbol(const char* name, void* data, std::size_t bytes) { globals[name] = {data, bytes}; }

CUresult cuInit(unsigned int) {
    const char* path = std::getenv("CUDA_INJECTION64_PATH");
    if (path == nullptr) return CUDA_SUCCESS;
    void* library = dlopen(path, RTLD_NOW);
    if (library == nullptr) std::fprintf(stderr, "stand-in: %s\n", dlerror());
    auto* begin = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
    if (begin != nullptr) begin();
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent* event, unsigned int) { return *event = reinterpret_cast<CUevent>(8), CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return run_queue(), CUDA_SUCCESS; }
CUresult cuEventDestroy(CUevent) { return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream* stream, unsigned int) { return *stream = reinterpret_cast<CUstream>(16), CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamDestroy(CUstream) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return run_queue(), CUDA_SUCCESS; }
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    int before = capture_mode;
    capture_mode = *mode;
    *mode = static_cast<CUstreamCaptureMode>(before);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    if (capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    auto at = memory.upper_bound(from);
    if (at != memory.begin() && (--at)->second.forbidden) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* asked, void** out, CUdeviceptr address) {
    auto at = memory.upper_bound(address);
    bool known = at != memory.begin() && address - (--at)->first < at->second.bytes;
    for (unsigned int i = 0; i < count && known; ++i) {
        auto put = [&](auto value) { std::memcpy(out[i], &value, sizeof value); };
        if (asked[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) put(at->second.kind);
        if (asked[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) put(at->first);
        if (asked[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE) put(at->second.bytes);
        if (asked[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED) put(at->second.managed);
        if (asked[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put(0);
    }
    return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction f, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (std::getenv("STANDIN_OLD") != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    auto& sizes = reinterpret_cast<Function*>(f)->sizes;
    if (index >= sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    for (std::size_t i = 0; i <= index; ++i) {
        std::size_t align = sizes[i] % 8 == 0 ? 8 : sizes[i];
        *offset = (*offset + align - 1) / align * align + (i < index ? sizes[i] : 0);
    }
    *size = sizes[index];
    return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction f) {
    return *name = reinterpret_cast<Function*>(f)->symbol, CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction f) { return *module = reinterpret_cast<CUmodule>(f), CUDA_SUCCESS; }
#undef cuModuleGetGlobal
CUresult cuModuleGetGlobal_v2(CUdeviceptr* base, std::size_t* bytes, CUmodule, const char* name) {
    auto at = globals.find(name);
    if (at == globals.end()) return CUDA_ERROR_NOT_FOUND;
    *base = reinterpret_cast<CUdeviceptr>(at->second.first);
    *bytes = at->second.second;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters,
                        void** extra) {
    struct {
        CUfunction f;
        unsigned int sizes[7];
        CUstream stream;
        void **parameters, **extra;
    } told{f, {gx, gy, gz, bx, by, bz, shared}, stream, parameters, extra};
    return call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &told, reinterpret_cast<Function*>(f)->symbol,
                [&] { return parameters == nullptr ? CUDA_SUCCESS : launch(f, parameters); });
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
    struct {
        const CUlaunchConfig* config;
        CUfunction f;
        void **parameters, **extra;
    } told{config, f, parameters, extra};
    return call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &told, reinterpret_cast<Function*>(f)->symbol,
                [&] { return launch(f, parameters); });
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                   void** parameters) {
    struct {
        CUfunction f;
        unsigned int sizes[7];
        CUstream stream;
        void** parameters;
    } told{f, {gx, gy, gz, bx, by, bz, shared}, stream, parameters};
    return call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, &told, reinterpret_cast<Function*>(f)->symbol,
                [&] { return launch(f, parameters); });
}
CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode) {
    return call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, nullptr, nullptr,
                [] { return capturing = true, CUDA_SUCCESS; });
}
CUresult cuStreamEndCapture(CUstream, CUgraph*) {
    return call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, nullptr, nullptr,
                [] { return capturing = false, CUDA_SUCCESS; });
}
CUresult cuGraphLaunch(CUgraphExec, CUstream) {
    return call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, nullptr, nullptr, [] { return CUDA_SUCCESS; });
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void*) {
    if (std::getenv("STANDIN_BUSY") != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber = callback;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId id) {
    if (id >= enabled.size()) return CUPTI_ERROR_INVALID_PARAMETER;
    enabled[id] = enable != 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
    *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
    return CUPTI_SUCCESS;
}
}
