"""Which macros are attributes in disguise: those a file defines as pure specifiers, and a list of well-known ones."""

import re

from agent.source.lexing import Macro, word_set

_SPECIFIERS = word_set(
    "__host__ __device__ __global__ __forceinline__ __noinline__ __inline__ __inline __forceinline inline static "
    "extern constexpr noexcept __restrict__ __restrict restrict __shared__ __constant__ void"
)
_OWN = word_set("__global__ __device__ __host__ __shared__ __constant__")
"""What CUDA says itself: a file that defines one as nothing does so for editors and other compilers."""
_SPECIFIER_TOKEN = re.compile(
    r"(?:__attribute__|__declspec|__launch_bounds__|__align__|alignas|__maxnreg__|__cluster_dims__)\s*"
    r"\((?:[^()]|\([^()]*\))*\)|\[\[[^\]]*\]\]|\"C\"|\w+"
)
_PRAGMA_BODY = re.compile(r"(?:_Pragma|__pragma|DO_PRAGMA)\s*\(.*\)\Z", re.DOTALL)
_CONTROL = re.compile(r"\b(?:for|while|if|switch|else|do|case)\b")

# Attribute macros of CUTLASS, CCCL, PyTorch, Eigen, Kokkos, RAJA and others, and names that are attributes anywhere.
KNOWN_SPECIFIER = re.compile(
    rb"(?:C(?:UTLASS|UTE|10|CCL|UB|UDA)_|_CCCL_|_LIBCUDACXX_|_CUDAX_|THRUST_|EIGEN_|KOKKOS_|RAJA_|FLASHINFER_|RAFT_|AT_|"
    rb"GPU_|FORCE_?|ALWAYS_|HOST_?|DEVICE_)"
    rb"(?:DEVICE|HOST_DEVICE|HOST|HOSTDEVICE|INLINE|FORCE_?INLINE|DEVICE_FUNC|STRONG_INLINE|INLINE_FUNCTION|FUNCTION|"
    rb"RUNTIME_FUNCTION|API|LAMBDA|KERNEL|GLOBAL|NOINLINE|DEVICE_INLINE|HIDE_FROM_ABI|VISIBILITY_HIDDEN)(?!\w)"
    rb"|(?:HDI?|DI|CUDART_CB|NO_OPTIMIZE|__hostdev__|[A-Z][A-Z0-9_]*_EXPORT)(?!\w)"
    rb"|_?[A-Z][A-Z0-9_]*_(?:RESTRICT|GRID_CONSTANT)(?!\w)"
)
KNOWN_PRAGMA = re.compile(rb"[A-Z_]*(?:PRAGMA_(?:NO_)?UNROLL|PRAGMA_UNROLL_\w*|UNROLL_LOOP)")


def specifier_macros(macros: tuple[Macro, ...]) -> dict[bytes, str]:
    """Macros whose every definition is a sequence of specifiers (or empty), with what they stand for."""
    bodies: dict[str, list[str]] = {}
    for macro in macros:
        if macro.name not in _OWN:
            bodies.setdefault(macro.name, []).append(macro.body)
    known: dict[str, str] = {}
    # a macro may stand for another: two rounds resolve what is met in practice
    for _ in range(2):
        for name, alternatives in bodies.items():
            expanded = [_expand(body, known) for body in alternatives]
            if name not in known and all(text is not None for text in expanded):
                known[name] = max((text or "" for text in expanded), key=len)
    return {name.encode(): body for name, body in known.items() if _usable(body)}


def _expand(body: str, known: dict[str, str]) -> str | None:
    if len(body) > 400:
        return None
    rest = _SPECIFIER_TOKEN.sub("", body).strip()
    words = [known.get(word, word) for word in _SPECIFIER_TOKEN.findall(body)]
    specifiers = all(_is_specifier(word, known) for word in _SPECIFIER_TOKEN.findall(body))
    return " ".join(words) if not rest and specifiers else None


def _is_specifier(word: str, known: dict[str, str]) -> bool:
    return word in _SPECIFIERS or word in known or (not word.isalnum() and word[-1] in ')]"')


def _usable(body: str) -> bool:
    words = body.split()
    return "void" not in words or "__global__" in words or "__device__" in words


def pragma_macros(macros: tuple[Macro, ...]) -> dict[bytes, str]:
    """Macros that stand for a pragma (``#define UNROLL _Pragma("unroll")``), with their bodies."""
    return {macro.name.encode(): macro.body for macro in macros if _PRAGMA_BODY.match(macro.body)}


def control_macros(macros: tuple[Macro, ...]) -> frozenset[bytes]:
    """Macros that open a statement (``#define EACH(i, n) for (...)``): these are no statements by themselves."""
    return frozenset(macro.name.encode() for macro in macros if _CONTROL.search(macro.body[:400]))
