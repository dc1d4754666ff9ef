// What is written down, and its form: whole records, each with its length and a check sum.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace capture {

enum Kind : std::uint32_t { kLaunch = 1, kAfter = 2, kTrouble = 3, kKernel = 4, kGoodbye = 5 };
enum Held : std::uint32_t { kNoPointer, kKept, kTooLarge, kBudget, kCopyFailed, kDisk, kNoExtent };
enum Layout : std::uint32_t { kFromDriver, kFromFile, kUnknown };

struct Pointer {
    std::uint64_t base = 0, extent = 0, offset = 0;
    std::uint32_t memory = 0, managed = 0, held = kNoPointer, code = 0;
    std::int32_t device = -1;
    std::uint64_t file = 0;
};

struct Argument {
    std::uint64_t offset = 0;
    std::string bytes;
    Pointer pointer;
};

struct Symbol {
    std::string name;
    Pointer pointer;
};

class Record {
  public:
    explicit Record(Kind kind) : kind_(kind) {}
    template <typename T>
    Record& number(T value) {
        body_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    Record& text(const std::string& value) {
        number(static_cast<std::uint32_t>(value.size()));
        body_ += value;
        return *this;
    }
    Record& pointer(const Pointer& p) {
        number(p.base).number(p.extent).number(p.offset).number(p.memory).number(p.managed).number(p.device);
        return number(p.held).number(p.code).number(p.file);
    }
    std::string whole() const {
        std::string out;
        for (std::uint32_t head : {static_cast<std::uint32_t>(kind_), static_cast<std::uint32_t>(body_.size())})
            out.append(reinterpret_cast<const char*>(&head), sizeof head);
        out += body_;
        std::uint32_t sum = ~0u;  // CRC-32, as in zip files
        for (unsigned char one : out) {
            sum ^= one;
            for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xEDB88320u : 0);
        }
        sum = ~sum;
        return out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    }

  private:
    Kind kind_;
    std::string body_;
};

inline bool write_all(int file, const char* data, std::size_t count) {
    while (count > 0) {
        ssize_t done = ::write(file, data, count);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        count -= static_cast<std::size_t>(done);
    }
    return true;
}

}  // namespace capture
