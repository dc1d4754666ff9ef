// What is asked for: lines of `key value` in the file `config` of the capture's folder.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace capture {

struct Config {
    std::string cupti;
    std::vector<std::string> kernels, symbols;
    std::map<std::string, std::vector<std::size_t>> sizes;
    std::uint64_t launch = 0, per_shape = 1, shapes = 3, buffer = 1ull << 30, total = 4ull << 30;
    bool after = false;
};

// Throws where a number is none.
inline bool read_config(const std::string& folder, Config& config) {
    std::ifstream file(folder + "/config");
    std::string line, key, value;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        words >> key;
        std::getline(words >> std::ws, value);
        if (key == "cupti") config.cupti = value;
        else if (key == "kernel") config.kernels.push_back(value);
        else if (key == "symbol") config.symbols.push_back(value);
        else if (key == "launch") config.launch = std::stoull(value);
        else if (key == "per-shape") config.per_shape = std::stoull(value);
        else if (key == "shapes") config.shapes = std::stoull(value);
        else if (key == "buffer") config.buffer = std::stoull(value);
        else if (key == "total") config.total = std::stoull(value);
        else if (key == "after") config.after = value == "1";
        else if (key == "sizes") {
            std::istringstream parts(value);
            std::string name;
            parts >> name;
            std::size_t size = 0;
            while (parts >> size)
                if (size > 0) config.sizes[name].push_back(size);
        }
    }
    return !config.cupti.empty();
}

}  // namespace capture
