// Contents of buffers from a key and the element's index alone: agent/workload/{random,floats,integers}.py, bit for bit.
// Compiled without contraction; `made` is one scalar, `make` fills a range of scalars.

typedef unsigned long long u64;
typedef unsigned int u32;

struct Form {
    u64 key, count;
    int formula, dtype, free, bounded;
    double real[4];
    u64 whole[4];
    double low, high, inner_low, inner_high;
};

enum Formula {
    ZEROS, ONES, CONSTANT, NORMAL, UNIFORM, LARGE_MEAN, SPIKES, TIES, SORTED, CONSTANT_ROWS, SIGNED_ZEROS, DENORMALS,
    SMALL_INTEGERS, ALL_NEGATIVE, LARGE_MAGNITUDE, LARGE_NEGATIVE, NAN_INF, IMAGE, SINGLE_UNIFORM, SINGLE_NORMAL,
    WHOLE_CONSTANT, WHOLE_BELOW, WHOLE_RISING, WHOLE_ROWS, WHOLE_SPIKES, WHOLE_OFFSETS, WHOLE_PERMUTED, WHOLE_IMAGE,
    WHOLE_IOTA, BYTES
};

enum Dtype { F16, BF16, F32, F64, W8, W16, W32, W64 };

struct Tables {
    const double* normal;        // 4097 quantiles
    const float* single;         // 4096 quantiles
    const float* slopes;         // 4096 slopes
};

static __device__ u64 mixed(u64 value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    return value ^ (value >> 31);
}

static __device__ u64 golden() { return 0x9E3779B97F4A7C15ull; }
static __device__ u64 salted(u64 key, u64 part) { return mixed(key + golden() * (part + 1)); }
static __device__ u64 word(u64 key, u64 i) { return mixed(i * golden() + key + golden()); }
static __device__ u32 half_word(u64 key, u64 i) { return (u32)(word(key, i >> 1) >> (32 * (i & 1))); }
static __device__ double unit(u64 key, u64 i) { return (double)(word(key, i) >> 11) * 0x1p-53; }

static __device__ u64 below(u64 key, u64 i, u64 limit) {
    u64 drawn = word(key, i);
    if (limit == 0) return drawn;
    return limit <= 0x100000000ull ? (drawn >> 32) * limit >> 32 : drawn % limit;
}

static __device__ double normal(u64 key, u64 i, const Tables& tables) {
    u64 drawn = word(key, i);
    u32 step = (u32)(drawn >> 52);
    double fraction = (double)(drawn & 0xFFFFFFFFFFFFFull) * 0x1p-52;
    double from = tables.normal[step];
    return from + fraction * (tables.normal[step + 1] - from);
}

static __device__ u64 permuted(u64 key, u64 value, u64 count, u64 half) {
    u64 mask = (1ull << half) - 1;
    do {
        u64 left = value >> half, right = value & mask;
        for (u64 turn = 0; turn < 4; turn++) {
            u64 next = left ^ (word(salted(key, turn), right) & mask);
            left = right;
            right = next;
        }
        value = left << half | right;
    } while (value >= count);
    return value;
}

// NumPy's clip, for signed zeros too.
static __device__ double clipped(double x, double low, double high) {
    x = (x != x || x > low) ? x : low;
    return (x != x || x < high) ? x : high;
}

static __device__ double real_value(const Form& f, u64 i, const Tables& tables) {
    double low = f.real[0], width = f.real[1], extra = f.real[2];
    u64 one = salted(f.key, 1);
    double share;
    switch (f.formula) {
        case ONES: return 1.0;
        case CONSTANT: return extra;
        case NORMAL:
            share = normal(f.key, i, tables);
            if (f.free) return share;
            share = clipped(0.5 + share / 6.0, 0.0, 1.0);
            break;
        case UNIFORM: share = unit(salted(f.key, 0), i); break;
        case LARGE_MEAN:
            if (f.free) return 1000.0 + normal(f.key, i, tables);
            return extra - 1e-3 * unit(salted(f.key, 0), i) * width;
        case SPIKES: {
            bool chosen = below(one, i, 97) == 0;
            if (f.free) return (chosen ? 100.0 : 0.01) * normal(f.key, i, tables);
            share = unit(salted(f.key, 0), i);
            share = chosen ? 1.0 - 0.1 * share : 0.01 * share;
            break;
        }
        case TIES: share = (double)below(f.key, i, 4) / 3.0; break;
        case SORTED: share = ((double)i + unit(salted(f.key, 0), i)) / (double)(f.count ? f.count : 1); break;
        case CONSTANT_ROWS: share = unit(f.key, i / f.whole[0]); break;
        case SIGNED_ZEROS: {
            u64 which = below(one, i, 3);
            if (which < 2) return which == 0 ? 0.0 : extra;
            share = unit(salted(f.key, 0), i);
            break;
        }
        case DENORMALS: {
            if (below(one, i, 2) == 0) {
                double tiny = unit(salted(f.key, 2), i);
                tiny = (f.whole[0] ? tiny * 2.0 - 1.0 : tiny) * extra;
                return f.whole[1] ? -fabs(tiny) : tiny;
            }
            share = unit(salted(f.key, 0), i);
            break;
        }
        case SMALL_INTEGERS: return extra + (double)below(f.key, i, f.whole[0]);
        case ALL_NEGATIVE: return extra + unit(salted(f.key, 0), i) * f.real[3];
        case LARGE_MAGNITUDE:
            if (f.free) return normal(f.key, i, tables) * extra;
            share = (unit(one, i) < 0.5 ? 0.0 : 1.0) * (1.0 - 0.01 * unit(salted(f.key, 0), i));
            break;
        case LARGE_NEGATIVE: return -extra * (0.5 + 0.5 * unit(salted(f.key, 0), i));
        case NAN_INF: {
            u64 which = below(one, i, 64);
            if (which < 3) return __longlong_as_double(which == 0 ? 0x7FF8000000000000ll
                                                       : which == 1 ? 0x7FF0000000000000ll : 0xFFF0000000000000ll);
            share = unit(salted(f.key, 0), i);
            break;
        }
        case IMAGE:
            share = 0.9 * fabs((double)(i % 512) / 256.0 - 1.0) + 0.1 * unit(salted(f.key, 0), i);
            if (f.free) return share;
            break;
        default: return 0.0;
    }
    return low + share * width;
}

static __device__ float single_value(const Form& f, u64 i, const Tables& tables) {
    u32 drawn = half_word(f.key, i);
    if (f.formula == SINGLE_UNIFORM) return (float)(drawn >> 8) * (float)f.real[2] + (float)f.real[3];
    return (float)(drawn & 0xFFFFF) * tables.slopes[drawn >> 20] + tables.single[drawn >> 20];
}

static __device__ u64 whole_value(const Form& f, u64 i) {
    u64 span = f.whole[0], found = 0;
    switch (f.formula) {
        case WHOLE_CONSTANT: found = span; break;
        case WHOLE_BELOW: found = below(f.key, i, span); break;
        case WHOLE_RISING: {
            double share = (double)i / (double)(f.count ? f.count : 1);
            found = (u64)(share * (double)span);
            found = found < span - 1 ? found : span - 1;
            break;
        }
        case WHOLE_ROWS: found = below(f.key, i / f.whole[1], span); break;
        case WHOLE_SPIKES: found = below(salted(f.key, 1), i, 97) == 0 ? below(f.key, i, span) : 0; break;
        case WHOLE_OFFSETS: {
            u64 rows = span, least = f.whole[1], rest = f.whole[2];
            if (f.real[2] != 0.0 && i != rows) i = i / 16 * 16;
            found = i * least + i * rest / rows;
            if (f.real[3] != 0.0 && i > 0 && i < rows) found += below(f.key, i, least + 1);
            break;
        }
        case WHOLE_PERMUTED: found = permuted(f.key, i, f.count, span); break;
        case WHOLE_IMAGE: {
            double wave = fabs((double)(i % 512) / 256.0 - 1.0);
            found = (u64)((0.9 * wave + 0.1 * unit(f.key, i)) * (double)span);
            found = found < span - 1 ? found : span - 1;
            break;
        }
        case WHOLE_IOTA: found = i; break;
    }
    return found + f.whole[3];
}

static __device__ unsigned short half_bits(double x) {
    unsigned short bits;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
    return bits;
}

static __device__ double half_value(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

// Round to nearest even; what rounding pushed out of the bounds is cut off toward zero or stepped back.
static __device__ unsigned short brain_bits(float x, const Form& f) {
    if (x != x) return 0x7FC0;
    u32 bits = __float_as_uint(x);
    unsigned short rounded = (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    if (!f.bounded) return rounded;
    for (int turn = 0; turn < 2; turn++) {
        float value = __uint_as_float((u32)rounded << 16);
        bool down = value > (float)f.high, up = value < (float)f.low;
        bool toward_zero = (down && value > 0) || (up && value < 0);
        if (toward_zero) rounded -= 1;
        else if (down || up) rounded += 1;
    }
    return rounded;
}

static __device__ void store(const Form& f, void* at, u64 i, double x, bool nan) {
    switch (f.dtype) {
        case F16: {
            unsigned short bits = nan ? 0x7E00 : half_bits(x);
            if (f.bounded && !nan) bits = half_bits(clipped(half_value(bits), f.inner_low, f.inner_high));
            ((unsigned short*)at)[i] = bits;
            return;
        }
        case BF16: ((unsigned short*)at)[i] = brain_bits((float)x, f); return;
        case F32: {
            float y = (float)x;
            if (f.bounded) y = (float)clipped(y, f.inner_low, f.inner_high);
            ((u32*)at)[i] = nan ? 0x7FC00000u : __float_as_uint(y);
            return;
        }
        default: {
            if (f.bounded) x = clipped(x, f.inner_low, f.inner_high);
            ((u64*)at)[i] = nan ? 0x7FF8000000000000ull : (u64)__double_as_longlong(x);
        }
    }
}

// Scalars first <= i < last of a buffer into `out`, which holds scalar `first` at its start.
static __device__ void fill(const Form& f, const Tables& tables, void* out, u64 first, u64 last) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = first + (u64)blockIdx.x * blockDim.x + threadIdx.x; i < last; i += stride) {
        u64 at = i - first;
        if (f.formula == BYTES) {
            int size = f.dtype == W8 ? 1 : f.dtype == F16 || f.dtype == BF16 || f.dtype == W16 ? 2
                       : f.dtype == F32 || f.dtype == W32 ? 4 : 8;
            for (int byte = 0; byte < size; byte++)
                ((unsigned char*)out)[at * size + byte] = (unsigned char)word(f.key, i * size + byte);
        } else if (f.formula >= WHOLE_CONSTANT) {
            u64 value = whole_value(f, i);
            if (f.dtype == W8) ((unsigned char*)out)[at] = (unsigned char)value;
            else if (f.dtype == W16) ((unsigned short*)out)[at] = (unsigned short)value;
            else if (f.dtype == W32) ((u32*)out)[at] = (u32)value;
            else ((u64*)out)[at] = value;
        } else if (f.formula >= SINGLE_UNIFORM) {
            float x = single_value(f, i, tables);
            if (f.bounded) x = (float)clipped(x, (float)f.low, (float)f.high);
            store(f, out, at, x, false);
        } else {
            double x = real_value(f, i, tables);
            bool nan = x != x;
            if (f.bounded && !nan) x = clipped(x, f.low, f.high);
            store(f, out, at, x, nan);
        }
    }
}

extern "C" __global__ void make(Form f, Tables tables, void* out, u64 first, u64 last) {
    fill(f, tables, out, first, last);
}

// Every float one unit in the last place up or down; zeros, what is not finite, and the largest finite value stay.
extern "C" __global__ void nudge(void* data, u64 count, int dtype, u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        bool up = (i + seed) * golden() >> 63;
        if (dtype == F64) {
            u64 bits = ((u64*)data)[i], magnitude = bits & 0x7FFFFFFFFFFFFFFFull;
            if (magnitude > 0 && magnitude < 0x7FEFFFFFFFFFFFFFull) ((u64*)data)[i] = up ? bits + 1 : bits - 1;
        } else if (dtype == F32) {
            u32 bits = ((u32*)data)[i], magnitude = bits & 0x7FFFFFFFu;
            if (magnitude > 0 && magnitude < 0x7F7FFFFFu) ((u32*)data)[i] = up ? bits + 1 : bits - 1;
        } else {
            unsigned short bits = ((unsigned short*)data)[i];
            u32 magnitude = bits & 0x7FFFu, infinite = dtype == F16 ? 0x7C00u : 0x7F80u;
            if (magnitude > 0 && magnitude < infinite - 1)
                ((unsigned short*)data)[i] = (unsigned short)(up ? bits + 1 : bits - 1);
        }
    }
}

extern "C" __global__ void widen(const float* from, double* to, u64 count) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}
