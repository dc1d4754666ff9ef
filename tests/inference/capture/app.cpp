// A program that uses the stand-in as if it were CUDA. The first argument says what it does.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "standin.hpp"

static float* at(CUdeviceptr address) { return reinterpret_cast<float*>(address); }

// saxpy(int n, float a, const float* x, float* y) as a host would do it, in double precision and rounded once
static Function saxpy{"_Z5saxpyifPKfPf", {4, 4, 8, 8}, [](void** p) {
    int n = *static_cast<int*>(p[0]);
    float a = *static_cast<float*>(p[1]);
    const float* x = *static_cast<float**>(p[2]);
    float* y = *static_cast<float**>(p[3]);
    for (int i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(a) * x[i] + y[i]);
}};
static Function nothing{"plain", {}, [](void**) {}};
static Function wide{"_Z4wide4PairPf", {16, 8}, [](void**) {}};

static CUfunction handle(Function& f) { return reinterpret_cast<CUfunction>(&f); }

static CUresult run(int n, float a, CUdeviceptr x, CUdeviceptr y, unsigned int blocks = 4) {
    void* parameters[] = {&n, &a, &x, &y};
    return cuLaunchKernel(handle(saxpy), blocks, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr);
}

static void fill(CUdeviceptr x, int n, float first) {
    for (int i = 0; i < n; ++i) at(x)[i] = first + static_cast<float>(i) * 0.5f;
}

int main(int argc, char** argv) {
    std::string mode = argc > 1 ? argv[1] : "saxpy";
    const int n = 1000;
    std::printf("out of %s\n", mode.c_str());
    std::fflush(stdout);
    if (mode == "no-cuda") return 0;
    cuInit(0);
    if (mode == "exec") {
        CUdeviceptr x = standin_allocate(4 * n, 2, 0), y = standin_allocate(4 * n, 2, 0);
        run(n, 1.0f, x, y);
        execl(argv[0], argv[0], "saxpy", nullptr);
    }
    if (mode == "idle") return 0;
    CUdeviceptr x = standin_allocate(4 * n, 2, 0), y = standin_allocate(4 * n, 2, 0);
    fill(x, n, 1.0f);
    fill(y, n, -20.0f);
    if (mode == "saxpy" || mode == "exit") {
        run(n, 2.0f, x, y);  // changes y, late
        run(n, 3.0f, x, y, 5);
        cuCtxSynchronize();
        return mode == "exit" ? 7 : 0;
    }
    if (mode == "many") {
        for (int i = 0; i < 200000; ++i) run(0, 1.0f, x, y, 1 + static_cast<unsigned int>(i % 7));
    } else if (mode == "crash") {
        run(n, 2.0f, x, y);
        std::raise(SIGSEGV);
    } else if (mode == "wait") {
        run(n, 2.0f, x, y);
        std::printf("waiting\n");
        std::fflush(stdout);
        for (;;) pause();
    } else if (mode == "count") {
        static volatile std::sig_atomic_t came = 0;
        std::signal(SIGINT, [](int) { came = came + 1; });
        std::printf("waiting\n");
        std::fflush(stdout);
        while (came == 0) usleep(10000);
        usleep(500000);  // a second one would come now
        return 100 + came;
    } else if (mode == "fork") {
        pid_t child = fork();
        if (child == 0) {
            run(n, 5.0f, x, y);
            std::exit(3);
        }
        run(n, 2.0f, x, y);
        waitpid(child, nullptr, 0);
    } else if (mode == "graph") {
        cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL);
        run(n, 2.0f, x, y);
        cuStreamEndCapture(nullptr, nullptr);
        cuGraphLaunch(nullptr, nullptr);
        cuGraphLaunch(nullptr, nullptr);
    } else if (mode == "threads") {
        std::thread other([&] { for (int i = 0; i < 100; ++i) run(0, 1.0f, x, y, 10 + static_cast<unsigned int>(i)); });
        for (int i = 0; i < 100; ++i) run(0, 1.0f, x, y, 200 + static_cast<unsigned int>(i));
        other.join();
    } else if (mode == "places") {
        CUdeviceptr pinned = standin_allocate(4 * n, 1, 0), managed = standin_allocate(4 * n, 2, 1);
        fill(pinned, n, 0.0f);
        run(n / 4, 2.0f, x + 400, x + 2400, 1);                            // the middle of an allocation, twice
        run(n, 2.0f, pinned, managed, 2);
        run(0, 2.0f, 0, reinterpret_cast<CUdeviceptr>(malloc(64)), 3);      // null, and memory that nobody knows
        standin_forbid(x);
        run(0, 2.0f, x, y, 4);
    } else if (mode == "packed") {
        struct { int n; float a; CUdeviceptr x, y; } packed{n, 2.5f, x, y};
        std::size_t size = sizeof packed;
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
        cuLaunchKernel(handle(saxpy), 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra);
    } else if (mode == "kinds") {
        int count = n;
        float a = 4.0f;
        void* parameters[] = {&count, &a, &x, &y};
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = 2;
        attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
        CUlaunchConfig config{};
        config.gridDimX = 8;
        config.gridDimY = 2;
        config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.blockDimX = 64;
        config.sharedMemBytes = 4096;
        config.attrs = &attribute;
        config.numAttrs = 1;
        cuLaunchKernelEx(&config, handle(saxpy), parameters, nullptr);
        cuLaunchCooperativeKernel(handle(saxpy), 2, 3, 4, 32, 2, 1, 16, nullptr, parameters);
        cuLaunchKernel(handle(nothing), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
        struct { float* p; int n; } pair{at(x), 3};
        void* byval[] = {&pair, &y};
        cuLaunchKernel(handle(wide), 1, 1, 1, 1, 1, 1, 0, nullptr, byval, nullptr);
    } else if (mode == "symbol") {
        static float table[4] = {1, 2, 3, 4};
        standin_symbol("table", table, sizeof table);
        run(n, 2.0f, x, y);
    }
    cuCtxSynchronize();
    return 0;
}
