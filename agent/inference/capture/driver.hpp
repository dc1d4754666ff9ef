// The driver's own entry points, found in the library that the program has loaded: nothing is linked.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>

namespace capture {

struct Driver {
    CUresult (*event_create)(CUevent*, unsigned int);
    CUresult (*event_record)(CUevent, CUstream);
    CUresult (*event_synchronize)(CUevent);
    CUresult (*event_destroy)(CUevent);
    CUresult (*stream_create)(CUstream*, unsigned int);
    CUresult (*stream_synchronize)(CUstream);
    CUresult (*stream_destroy)(CUstream);
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
    CUresult (*pointer_attributes)(unsigned int, CUpointer_attribute*, void**, CUdeviceptr);
    CUresult (*current_device)(CUdevice*);
    CUresult (*exchange_mode)(CUstreamCaptureMode*);
    CUresult (*version)(int*);
    // From driver 12.4 on, or null. A kernel handle of a library may stand where a function is expected.
    CUresult (*function_parameter)(void*, std::size_t, std::size_t*, std::size_t*);
    CUresult (*kernel_parameter)(void*, std::size_t, std::size_t*, std::size_t*);
    CUresult (*kernel_function)(CUfunction*, void*);
    CUresult (*function_name)(const char**, CUfunction);
    CUresult (*function_module)(CUmodule*, CUfunction);
    CUresult (*module_global)(CUdeviceptr*, std::size_t*, CUmodule, const char*);
};

template <typename F>
bool find(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(::dlsym(library, name));
    return out != nullptr;
}

inline bool find_driver(void* library, Driver& d) {
    find(library, "cuFuncGetParamInfo", d.function_parameter);
    find(library, "cuKernelGetParamInfo", d.kernel_parameter);
    find(library, "cuKernelGetFunction", d.kernel_function);
    find(library, "cuFuncGetName", d.function_name);
    find(library, "cuFuncGetModule", d.function_module);
    find(library, "cuModuleGetGlobal_v2", d.module_global);
    return find(library, "cuEventCreate", d.event_create) && find(library, "cuEventRecord", d.event_record) &&
           find(library, "cuEventSynchronize", d.event_synchronize) &&
           find(library, "cuEventDestroy_v2", d.event_destroy) && find(library, "cuStreamCreate", d.stream_create) &&
           find(library, "cuStreamSynchronize", d.stream_synchronize) &&
           find(library, "cuStreamDestroy_v2", d.stream_destroy) && find(library, "cuMemcpyAsync", d.copy) &&
           find(library, "cuPointerGetAttributes", d.pointer_attributes) &&
           find(library, "cuCtxGetDevice", d.current_device) &&
           find(library, "cuThreadExchangeStreamCaptureMode", d.exchange_mode) &&
           find(library, "cuDriverGetVersion", d.version);
}

}  // namespace capture
