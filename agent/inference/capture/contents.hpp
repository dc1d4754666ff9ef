// Which allocation an address is in, and what that holds.
#pragma once

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "state.hpp"

namespace capture {

constexpr std::size_t kChunk = 8u << 20;
constexpr std::uint64_t kLeave = 256u << 20;  // bytes of the disk that are left to others

// What the driver knows of an address; nothing of one that it does not know.
inline Pointer pointer_of(std::uint64_t address) {
    Pointer found;
    if (address == 0) return found;
    std::array<std::uint64_t, 5> told{};
    std::array<CUpointer_attribute, 5> asked{
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    std::array<void*, 5> slots{&told[0], &told[1], &told[2], &told[3], &told[4]};
    if (state->driver.pointer_attributes(5, asked.data(), slots.data(), address) != CUDA_SUCCESS || told[0] == 0)
        return found;
    found.memory = static_cast<std::uint32_t>(told[0]);
    found.managed = static_cast<std::uint32_t>(told[3] & 0xff);
    found.device = static_cast<std::int32_t>(told[4]);
    found.held = kNoExtent;
    if (told[1] == 0 || told[2] == 0 || address < told[1] || address - told[1] >= told[2]) return found;
    found.base = told[1];
    found.extent = told[2];
    found.offset = address - told[1];
    found.held = kKept;
    return found;
}

// Waits for exactly what the launch itself would wait for: an event in its stream comes after the same work.
inline CUresult await(CUstream stream) {
    CUevent event = nullptr;
    CUresult code = state->driver.event_create(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) return code;
    code = state->driver.event_record(event, stream);
    if (code == CUDA_SUCCESS) code = state->driver.event_synchronize(event);
    state->driver.event_destroy(event);
    return code;
}

inline bool room_for(std::uint64_t bytes) {
    struct statvfs disk {};
    return ::statvfs(state->folder.c_str(), &disk) == 0 && disk.f_bavail * disk.f_frsize >= bytes + kLeave;
}

// Copies one allocation to a file of its own. A file that could not be written whole is removed.
inline void keep_bytes(Pointer& p, CUstream stream, std::vector<char>& chunk, std::uint64_t number) {
    std::string path = state->folder + "/" + state->stem + "-" + std::to_string(number) + ".raw";
    p.held = kDisk;
    p.code = ENOSPC;
    if (!room_for(p.extent)) return;
    int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    p.code = static_cast<std::uint32_t>(errno);
    if (file < 0) return;
    p.held = kKept;
    for (std::uint64_t at = 0; at < p.extent && p.held == kKept; at += chunk.size()) {
        std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), p.extent - at));
        CUresult code = state->driver.copy(reinterpret_cast<CUdeviceptr>(chunk.data()), p.base + at, count, stream);
        if (code == CUDA_SUCCESS) code = state->driver.stream_synchronize(stream);
        if (code != CUDA_SUCCESS) {
            p.held = kCopyFailed;
            p.code = code;
        } else if (!write_all(file, chunk.data(), count)) {
            p.held = kDisk;
            p.code = static_cast<std::uint32_t>(errno);
        }
    }
    if (::close(file) != 0 && p.held == kKept) {
        p.held = kDisk;
        p.code = static_cast<std::uint32_t>(errno);
    }
    if (p.held != kKept) {
        ::unlink(path.c_str());
        return;
    }
    p.code = 0;
    p.file = number;
}

// Room in the budget, or why not; a number for the file.
inline std::uint64_t admit(Pointer& p) {
    std::lock_guard<std::mutex> held(state->lock);
    if (p.extent > state->config.buffer) p.held = kTooLarge;
    else if (p.extent > state->config.total - std::min(state->used, state->config.total)) p.held = kBudget;
    if (p.held != kKept) return 0;
    state->used += p.extent;
    return ++state->file;
}

// The contents of all allocations that are pointed to, each once, after everything before in `stream`.
inline void keep_all(const std::vector<Pointer*>& pointers, CUstream stream) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    state->driver.exchange_mode(&mode);
    CUstream copies = nullptr;
    CUresult code = await(stream);
    if (code == CUDA_SUCCESS) code = state->driver.stream_create(&copies, CU_STREAM_NON_BLOCKING);
    std::vector<char> chunk(code == CUDA_SUCCESS ? kChunk : 0);
    std::map<std::uint64_t, Pointer> seen;
    for (Pointer* one : pointers) {
        if (one->held != kKept) continue;
        auto before = seen.find(one->base);
        if (before != seen.end()) {
            one->held = before->second.held;
            one->code = before->second.code;
            one->file = before->second.file;
            continue;
        }
        if (code != CUDA_SUCCESS) {
            one->held = kCopyFailed;
            one->code = code;
        } else if (std::uint64_t number = admit(*one)) {
            keep_bytes(*one, copies, chunk, number);
        }
        seen[one->base] = *one;
    }
    if (copies != nullptr) state->driver.stream_destroy(copies);
    state->driver.exchange_mode(&mode);
}

}  // namespace capture
