// Records kernel launches of the program that this library is loaded into.
//
// The driver loads it in cuInit where CUDA_INJECTION64_PATH names it, and calls InitializeInjection. From then on CUPTI
// calls `on_driver_call` around each launch; a launch that is wanted is held up until what it depends on is done, its
// arguments and the contents of the buffers that they point to are written to files, and it goes on.
//
// It must never harm the program: no exception leaves it, nothing is printed, no file stays open (a program may close
// or reuse descriptors), every failure is a number in the log. What is read by agent/inference/capture/log.py is told
// there, field by field. The environment variable CUDA_LSP_CAPTURE names a folder with a file `config`.

#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "contents.hpp"
#include "launch.hpp"
#include "state.hpp"

namespace {

using namespace capture;

// cuStreamBeginCaptureToGraph and its variant: headers before CUDA 12.3 lack the names
constexpr CUpti_CallbackId kBeginToGraph = 720, kBeginToGraphOwn = 721;
thread_local bool inside = false;

// What the callback at the end of a launch needs of that at its start.
struct Pending {
    std::uint64_t serial;
    CUstream stream;
    std::vector<Pointer> pointers;
};

// --- what a launch says

// Whether a mangled (or plain) name is that of the function `bare`: _ZN2ns4scanIfEEvPf holds "4scan".
bool is_called(const std::string& name, const std::string& bare) {
    if (name == bare) return true;
    std::string part = std::to_string(bare.size()) + bare;
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at + 1))
        if (at > 0 && (name[at - 1] < '0' || name[at - 1] > '9')) return true;
    return false;
}

bool wanted(const std::string& name) {
    const auto& asked = state->config.kernels;
    return asked.empty() || std::any_of(asked.begin(), asked.end(), [&](auto& one) { return is_called(name, one); });
}

std::string readable(const std::string& name) {
    if (name.compare(0, 2, "_Z") != 0) return name;  // the name `f` would be read as the type float
    int status = 0;
    char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string out = status == 0 && plain != nullptr ? plain : name;
    std::free(plain);
    return out;
}

using Sizes = std::vector<std::array<std::size_t, 2>>;  // offset and bytes of each parameter

// What the driver said of the parameters of a handle: all of them, that there are none (which is also what some drivers
// say of a handle of another kind), or nothing of use. `ask` is null with a driver that cannot.
enum class Told { kAll, kNone, kNothing };

Told ask_driver(CUresult (*ask)(void*, std::size_t, std::size_t*, std::size_t*), void* handle, Sizes& out) {
    if (ask == nullptr) return Told::kNothing;
    CUresult code = CUDA_SUCCESS;
    while (out.size() < 4096) {
        std::array<std::size_t, 2> one{};
        code = ask(handle, out.size(), &one[0], &one[1]);
        if (code != CUDA_SUCCESS) break;
        out.push_back(one);
    }
    return !out.empty() ? Told::kAll : code == CUDA_ERROR_INVALID_VALUE ? Told::kNone : Told::kNothing;
}

// Whether its symbol says that a kernel takes nothing: "f()" and "void f<int>()", but not the bare name of an extern "C".
bool takes_nothing(const std::string& name) {
    std::string told = readable(name);
    return told.size() > 1 && told.compare(told.size() - 2, 2, "()") == 0;
}

// The symbol's word where a kernel takes nothing, the driver's, or else what the user's file says of a kernel of this
// name. The handle of a function may really be that of a library's kernel, which another call answers for, and which is
// then replaced by its function.
Layout layout_of(CUfunction& function, const std::string& name, Sizes& out) {
    const Driver& driver = state->driver;
    Told plain = ask_driver(driver.function_parameter, function, out);
    if (plain == Told::kAll || (plain == Told::kNone && takes_nothing(name))) return kFromDriver;
    Told kernel = ask_driver(driver.kernel_parameter, function, out);
    if (kernel == Told::kAll || (kernel == Told::kNone && plain == Told::kNothing)) {
        if (driver.kernel_function != nullptr) driver.kernel_function(&function, function);
        return kFromDriver;
    }
    if (takes_nothing(name)) return kFromDriver;
    for (auto& [bare, sizes] : state->config.sizes) {
        if (!is_called(name, bare)) continue;
        std::size_t offset = 0;
        for (std::size_t size : sizes) {
            std::size_t align = std::min<std::size_t>(size, 8);
            offset = (offset + align - 1) / align * align;
            out.push_back({offset, size});
            offset += size;
        }
        return kFromFile;
    }
    return plain == Told::kNone ? kFromDriver : kUnknown;
}

std::vector<Argument> arguments_of(const Launch& launch, const Sizes& layout) {
    const char* packed = nullptr;
    std::size_t length = 0;
    for (void** at = launch.parameters == nullptr ? launch.extra : nullptr; at != nullptr && *at != nullptr; at += 2) {
        if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = static_cast<const char*>(at[1]);
        if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) length = *static_cast<const std::size_t*>(at[1]);
    }
    std::vector<Argument> found;
    for (std::size_t i = 0; i < layout.size(); ++i) {
        auto [offset, size] = layout[i];
        const char* from = launch.parameters != nullptr ? static_cast<const char*>(launch.parameters[i])
                           : packed != nullptr && offset + size <= length ? packed + offset
                                                                           : nullptr;
        Argument one;
        one.offset = offset;
        if (from != nullptr) one.bytes.assign(from, size);
        if (one.bytes.size() == 8) {
            std::uint64_t address = 0;
            std::memcpy(&address, one.bytes.data(), 8);
            one.pointer = pointer_of(address);
        }
        found.push_back(std::move(one));
    }
    return found;
}

std::vector<Symbol> symbols_of(CUfunction function) {
    std::vector<Symbol> found;
    CUmodule module = nullptr;
    if (state->config.symbols.empty() || state->driver.function_module == nullptr ||
        state->driver.module_global == nullptr || state->driver.function_module(&module, function) != CUDA_SUCCESS)
        return found;
    for (auto& name : state->config.symbols) {
        CUdeviceptr base = 0;
        std::size_t extent = 0;
        if (state->driver.module_global(&base, &extent, module, name.c_str()) != CUDA_SUCCESS) continue;
        Symbol one;
        one.name = name;
        one.pointer.base = base;
        one.pointer.extent = extent;
        one.pointer.held = kKept;
        found.push_back(one);
    }
    return found;
}

// --- one launch

std::string shape_of(const Launch& launch, const std::vector<Argument>& arguments) {
    std::string key;
    auto add = [&](std::uint64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    for (auto* one : {&launch.grid, &launch.block, &launch.cluster})
        for (std::uint32_t value : *one) add(value);
    add(launch.shared);
    for (auto& one : arguments) {
        add(one.bytes.size());
        add(one.pointer.extent);
        add(one.pointer.offset);
    }
    return key;
}

// Counts a launch; gives its number among those of its kernel, or 0 where it is of no interest.
std::uint64_t count_launch(const std::string& name) {
    std::lock_guard<std::mutex> held(state->lock);
    auto [at, fresh] = state->kernels.try_emplace(name);
    Kernel& kernel = at->second;
    if (fresh) {
        kernel.wanted = wanted(name);
        append(Record(kKernel).text(name).text(readable(name)).whole());
    }
    ++kernel.launches;
    if (!kernel.wanted) return 0;
    if (state->capturing.load() > 0) {
        ++state->in_capture;
        return 0;
    }
    const Config& config = state->config;
    bool chosen = config.launch != 0 ? kernel.launches == config.launch
                                     : kernel.recorded < config.shapes * config.per_shape;
    if (!chosen) ++state->beyond;
    return chosen ? kernel.launches : 0;
}

// Whether one more launch of this shape is recorded; gives its serial number, or 0.
std::uint64_t admit_shape(const std::string& name, const std::string& shape) {
    std::lock_guard<std::mutex> held(state->lock);
    Kernel& kernel = state->kernels[name];
    auto at = kernel.shapes.find(shape);
    bool fits = at == kernel.shapes.end() ? kernel.shapes.size() < state->config.shapes
                                          : at->second < state->config.per_shape;
    if (state->config.launch == 0 && !fits) {
        ++state->beyond;
        return 0;
    }
    ++kernel.shapes[shape];
    ++kernel.recorded;
    return ++state->serial;
}

void write_launch(std::uint64_t serial, std::uint64_t number, const std::string& name, std::uint32_t context,
                  const Launch& launch, Layout layout, const std::vector<Argument>& arguments,
                  const std::vector<Symbol>& symbols) {
    CUdevice device = -1;
    state->driver.current_device(&device);
    Record record(kLaunch);
    record.number(serial).number(number).text(name).number<std::int32_t>(device);
    record.number(context).number(launch.cooperative).number<std::uint32_t>(layout);
    for (auto* one : {&launch.grid, &launch.block, &launch.cluster})
        for (std::uint32_t value : *one) record.number(value);
    record.number(launch.shared).number(static_cast<std::uint32_t>(arguments.size()));
    for (auto& one : arguments) record.number(one.offset).text(one.bytes).pointer(one.pointer);
    record.number(static_cast<std::uint32_t>(symbols.size()));
    for (auto& one : symbols) record.text(one.name).pointer(one.pointer);
    std::lock_guard<std::mutex> held(state->lock);
    append(record.whole());
}

std::string name_of(CUfunction function, const char* told) {
    if (told == nullptr && state->driver.function_name != nullptr) state->driver.function_name(&told, function);
    return told != nullptr ? told : "?";
}

void before_launch(CUpti_CallbackId id, const CUpti_CallbackData* data) {
    *data->correlationData = 0;  // what is there before is nobody's
    Launch launch = launch_of(id, data->functionParams);
    std::string name = name_of(launch.function, data->symbolName);
    std::uint64_t number = count_launch(name);
    if (number == 0) return;
    Sizes sizes;
    Layout layout = layout_of(launch.function, name, sizes);
    std::vector<Argument> arguments = arguments_of(launch, sizes);
    std::uint64_t serial = admit_shape(name, shape_of(launch, arguments));
    if (serial == 0) return;
    std::vector<Symbol> symbols = symbols_of(launch.function);
    std::vector<Pointer*> pointers;
    for (auto& one : arguments) pointers.push_back(&one.pointer);
    for (auto& one : symbols) pointers.push_back(&one.pointer);
    keep_all(pointers, launch.stream);
    write_launch(serial, number, name, data->contextUid, launch, layout, arguments, symbols);
    if (!state->config.after) return;
    auto* pending = new Pending{serial, launch.stream, {}};
    for (Pointer* one : pointers) {
        Pointer& last = pending->pointers.emplace_back(*one);
        last.file = last.code = 0;
        if (one->held != kNoPointer && one->held != kNoExtent) last.held = kKept;
    }
    *data->correlationData = reinterpret_cast<std::uint64_t>(pending);
}

void after_launch(const CUpti_CallbackData* data) {
    auto* pending = reinterpret_cast<Pending*>(*data->correlationData);
    if (pending == nullptr) return;
    *data->correlationData = 0;
    std::vector<Pointer*> pointers;
    for (auto& one : pending->pointers) pointers.push_back(&one);
    keep_all(pointers, pending->stream);
    Record record(kAfter);
    record.number(pending->serial).number(static_cast<std::uint32_t>(pending->pointers.size()));
    for (auto& one : pending->pointers) record.pointer(one);
    delete pending;
    std::lock_guard<std::mutex> held(state->lock);
    append(record.whole());
}

// --- what CUPTI calls

void on_call(CUpti_CallbackId id, const CUpti_CallbackData* data) {
    bool begins = data->callbackSite == CUPTI_API_ENTER;
    bool worked = !begins && data->functionReturnValue != nullptr &&
                  *static_cast<const CUresult*>(data->functionReturnValue) == CUDA_SUCCESS;
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture:
        case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz:
        case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2:
        case CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz:
        case kBeginToGraph:
        case kBeginToGraphOwn:
            if (worked) ++state->capturing;
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture:
        case CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz:
            // an invalidated capture ends with an error, but it ends
            if (!begins && state->capturing.load() > 0) --state->capturing;
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
        case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
            if (begins) {
                std::lock_guard<std::mutex> held(state->lock);
                ++state->graphs;
            }
            break;
        case CUPTI_DRIVER_TRACE_CBID_cuLaunch:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice:
            if (begins) {
                std::lock_guard<std::mutex> held(state->lock);
                ++state->old_calls;
            }
            break;
        default:
            begins ? before_launch(id, data) : after_launch(data);
    }
}

void CUPTIAPI on_driver_call(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
    // a child that only forked cannot use CUDA, and must not write into its parent's log
    if (inside || ::getpid() != state->pid) return;
    inside = true;
    int kept = errno;
    try {
        on_call(id, static_cast<const CUpti_CallbackData*>(data));
    } catch (const std::exception&) {
        // memory ran out: the launch goes on, unrecorded
    }
    errno = kept;
    inside = false;
}

void goodbye() {
    if (::getpid() != state->pid) return;
    try {
        std::lock_guard<std::mutex> held(state->lock);
        Record record(kGoodbye);
        for (std::uint64_t value : {state->graphs, state->in_capture, state->old_calls, state->beyond})
            record.number(value);
        record.number(static_cast<std::uint32_t>(state->kernels.size()));
        for (auto& [name, kernel] : state->kernels) record.text(name).number(kernel.launches).number(kernel.recorded);
        append(record.whole());
    } catch (const std::exception&) {
    }
}

// --- the start

void subscribe() {
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr || !find_driver(driver, state->driver)) return trouble("the driver lacks what is needed");
    void* cupti = ::dlopen(state->config.cupti.c_str(), RTLD_NOW);
    if (cupti == nullptr) return trouble(std::string("CUPTI cannot be loaded: ") + ::dlerror());
    decltype(&cuptiSubscribe) begin = nullptr;
    decltype(&cuptiEnableCallback) enable = nullptr;
    decltype(&cuptiGetResultString) word = nullptr;
    if (!find(cupti, "cuptiSubscribe", begin) || !find(cupti, "cuptiEnableCallback", enable) ||
        !find(cupti, "cuptiGetResultString", word))
        return trouble("CUPTI lacks what is needed");
    CUpti_SubscriberHandle handle{};
    CUptiResult code = begin(&handle, on_driver_call, nullptr);
    std::initializer_list<CUpti_CallbackId> required = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz};
    std::initializer_list<CUpti_CallbackId> optional = {
        kBeginToGraph, kBeginToGraphOwn,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice, CUPTI_DRIVER_TRACE_CBID_cuLaunch,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid, CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync,
        CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz};
    for (auto id : required)
        if (code == CUPTI_SUCCESS) code = enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (code != CUPTI_SUCCESS) {
        const char* text = nullptr;
        word(code, &text);
        return trouble(std::string("CUPTI refused: ") + (text != nullptr ? text : "") + " (" + std::to_string(code) +
                       ")");
    }
    for (auto id : optional) enable(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
    const char* folder = std::getenv("CUDA_LSP_CAPTURE");
    if (folder == nullptr || state != nullptr) return 1;
    try {
        state = new State;
        state->folder = folder;
        state->pid = ::getpid();
        if (!begin_log()) return 1;
        if (!read_config(state->folder, state->config)) trouble("the recorder's settings cannot be read");
        else subscribe();
        std::atexit(goodbye);
    } catch (const std::exception&) {
        // the program runs on, unrecorded
    }
    return 1;
}
