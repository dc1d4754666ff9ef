// What is known of the process so far, and its log.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driver.hpp"
#include "log.hpp"
#include "settings.hpp"

namespace capture {

struct Kernel {
    bool wanted = false;
    std::uint64_t launches = 0, recorded = 0;
    std::map<std::string, std::uint64_t> shapes;
};

struct State {
    Driver driver{};
    Config config;
    std::string folder, stem;  // of this process's files: its id, and a number where it replaced itself
    pid_t pid = 0;
    std::mutex lock;
    std::unordered_map<std::string, Kernel> kernels;
    std::uint64_t serial = 0, file = 0, used = 0;
    std::uint64_t graphs = 0, in_capture = 0, old_calls = 0, beyond = 0;
    std::atomic<int> capturing{0};
    bool broken = false;
};

inline State* state = nullptr;  // never freed: launches may come while the program's own statics are torn down

// A log of this process's own; false where there can be none.
inline bool begin_log() {
    for (int i = 0; i < 1000; ++i) {
        state->stem = std::to_string(state->pid) + (i > 0 ? "." + std::to_string(i) : "");
        std::string path = state->folder + "/" + state->stem + ".log";
        int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0 && errno == EEXIST) continue;
        if (file < 0) return false;
        std::uint32_t process = static_cast<std::uint32_t>(state->pid);
        std::string head("CLSPCAP1");
        head.append(reinterpret_cast<const char*>(&process), sizeof process);
        bool whole = write_all(file, head.data(), head.size());
        return ::close(file) == 0 && whole;
    }
    return false;
}

// Callers hold the lock.
inline void append(const std::string& bytes) {
    if (state->broken) return;
    std::string path = state->folder + "/" + state->stem + ".log";
    int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return;
    off_t end = ::lseek(file, 0, SEEK_END);
    // a record that was torn by a full disk would make all after it unreadable
    if (!write_all(file, bytes.data(), bytes.size()) && ::ftruncate(file, end) != 0) state->broken = true;
    ::close(file);
}

inline void trouble(const std::string& what) {
    std::lock_guard<std::mutex> held(state->lock);
    append(Record(kTrouble).text(what).whole());
}

}  // namespace capture
