// What surrounds a timed call: reading the cache full, a blocker, digests of outputs. Uses mixed() of making.cu.

// What a launch alone costs.
extern "C" __global__ void idle() {}

// Read `count` 16-byte words and keep the compiler from leaving that out.
extern "C" __global__ void sweep(const uint4* data, u64 count, u32* sink) {
    u32 found = 0;
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride], d = data[i + 3 * stride];
        found ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    for (; i < count; i += stride) {
        uint4 a = data[i];
        found ^= a.x ^ a.y ^ a.z ^ a.w;
    }
    if (found == 0x5EEDF00Du) *sink = found;
}

// Write `count` 16-byte words.
extern "C" __global__ void stain(uint4* data, u64 count, u32 value) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        data[i] = make_uint4(value, value, value, value);
}

extern "C" __global__ void copy(uint4* to, const uint4* from, u64 count) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

// One thread waits until the host has counted to `turn`, so that what is queued behind it starts without gaps; after
// `limit` nanoseconds it gives up.
extern "C" __global__ void hold(volatile u32* flag, u32 turn, u64 limit) {
    u64 start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while ((int)(*flag - turn) < 0 && now - start < limit);
}

static __device__ double lane_value(const unsigned char* data, u64 i, int dtype) {
    if (dtype == F64) return ((const double*)data)[i];
    if (dtype == F32) return ((const float*)data)[i];
    unsigned short bits = ((const unsigned short*)data)[i];
    return dtype == F16 ? half_value(bits) : (double)__uint_as_float((u32)bits << 16);
}

struct Digest {
    u64 hash;
    double sum, magnitude;
};

// For each block one partial digest: `hash` adds up mixed elements (with their places unless `unordered`), so that any
// two differing contents differ in it with all but certainty; floats also give a sum with signs that hang on the place,
// and a sum of magnitudes, for outputs whose last bits are not the same twice.
extern "C" __global__ void digest(const unsigned char* data, u64 count, u32 width, int dtype, int unordered, u64 key,
                                  Digest* out) {
    u64 hash = 0, stride = (u64)gridDim.x * blockDim.x;
    double sum = 0.0, magnitude = 0.0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        u64 value = 0;
        if (width == 4) value = ((const u32*)data)[i];
        else if (width == 8) value = ((const u64*)data)[i];
        else if (width == 2) value = ((const unsigned short*)data)[i];
        else if (width == 1) value = data[i];
        else for (u32 byte = 0; byte < width; byte++) value = mixed(value + data[i * width + byte] + 1);
        u64 place = mixed(i + key);
        hash += mixed(value ^ (unordered ? key : place));
        if (dtype >= 0) {
            double x = lane_value(data, i, dtype);
            if (x - x == 0.0) {
                sum += place & 1 ? x : -x;
                magnitude += fabs(x);
            }
        }
    }
    __shared__ Digest part[256];
    u32 t = threadIdx.x;
    part[t].hash = hash;
    part[t].sum = sum;
    part[t].magnitude = magnitude;
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            part[t].hash += part[t + half].hash;
            part[t].sum += part[t + half].sum;
            part[t].magnitude += part[t + half].magnitude;
        }
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
