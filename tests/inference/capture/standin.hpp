// What the stand-in for the driver offers to the programs of these tests beside CUDA's own calls.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <vector>

// A kernel of the stand-in: its symbol, the bytes of each parameter, and what it does to the memory it is given.
struct Function {
    const char* symbol;
    std::vector<std::size_t> sizes;
    std::function<void(void**)> body;
};

extern "C" {
CUdeviceptr standin_allocate(std::size_t bytes, unsigned int kind, unsigned int managed);
void standin_forbid(CUdeviceptr base);  // copies from this allocation fail
void standin_symbol(const char* name, void* data, std::size_t bytes);
}
