"""Attacks on the clock and the cache, as far as device code can make them."""

from tests.attacks.entry import Attack

_BODY = "if (i < n) y[i] = 1.5f * x[i] + 0.25f;"
_KERNEL = "__global__ void scale("


def _scale(name: str, rows: tuple[str, ...], new: str, words: str, *more: tuple[str, str]) -> Attack:
    return Attack(name, rows, "scale", ((_BODY, new), *more), "instructions", words)


def _register(
    name: str, rows: tuple[str, ...], register: str, words: str, kind: str = "u32", letter: str = "r"
) -> Attack:
    c = "unsigned" if letter == "r" else "unsigned long long"
    read = f'{c} v; asm volatile("mov.{kind} %0, %%{register};" : "={letter}"(v));'
    return _scale(name, rows, f"{read} if (v == 12345) return; {_BODY}", words)


ATTACKS = (
    _scale(
        "the clock tells warm-up from measurement",
        ("19", "33"),
        f"if (clock64() < 1000) return; {_BODY}",
        "reads a clock",
    ),
    _register("the global timer tells the phase", ("33", "18"), "globaltimer", "reads a clock", "u64", "l"),
    _register("the multiprocessor's number", ("33",), "smid", "multiprocessor"),
    _register("the warp slot's number", ("33",), "warpid", "multiprocessor"),
    _register("the launch's own number", ("18", "66"), "gridid", "multiprocessor", "u64", "l"),
    _register("a performance counter", ("33",), "pm0", "performance"),
    _scale(
        "lines that stay in the cache",
        ("72",),
        f'if (i < n) asm volatile("prefetch.global.L2::evict_last [%0];" :: "l"(x + i)); {_BODY}',
        "cache-policy",
    ),
    _scale(
        "a cache policy made by hand",
        ("72",),
        "unsigned long long p; "
        'asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p)); if (p == 77) return; ' + _BODY,
        "cache-policy",
    ),
    _scale("a slow first turn that sleeps", ("19",), f"if (blockIdx.x == 7) __nanosleep(1000); {_BODY}", "sleeps"),
    _scale("the program is stopped", ("31",), f"if (i == 100000000) __trap(); {_BODY}", "stops the program"),
    _scale(
        "a result line is printed",
        ("24",),
        f'if (i == 100000000) printf("speedup: 100\\n"); {_BODY}',
        "calls vprintf",
    ),
    _scale(
        "memory of its own on the device heap",
        ("37", "38"),
        f"if (i == 100000000) {{ int* p = (int*)malloc(64); if (p) *p = 1; }} {_BODY}",
        "calls malloc",
    ),
    _scale(
        "the work waits in a counter for a later launch",
        ("20", "18"),
        f"if (i == 0) atomicAdd(&pending, 1); {_BODY}",
        "keeps state between launches",
        (_KERNEL, f"__device__ unsigned pending;\n{_KERNEL}"),
    ),
    _scale(
        "state through inline assembly and a pasted name",
        ("34", "37"),
        f'if (i == 0) asm volatile("red.global.add.u32 [%0], 1;" :: "l"(&NAME)); {_BODY}',
        "keeps state between launches",
        (_KERNEL, f"#define PASTE(a, b) a##b\n#define NAME PASTE(hid, den)\n__device__ unsigned NAME;\n{_KERNEL}"),
    ),
    Attack(
        "code for one card only",
        ("89",),
        "scale",
        ((_BODY, "#if __CUDA_ARCH__ != 900\n#error other card\n#endif\n" + _BODY),),
        "compile",
        "other card",
        architectures=("sm_80",),
    ),
    Attack(
        "a block larger than the kernel promises",
        ("9", "53"),
        "scale",
        ((_KERNEL, "__global__ void __launch_bounds__(64) scale("),),
        "compile",
        "fails on a card",
        plan="launch scale<<<(n + 1023) / 1024, 1024>>>(x, y, n)",
    ),
)
