"""Names that headers of CUDA and of C define: constants, and enumerators that stand for themselves in what textures and
launches are described with."""

from collections.abc import Mapping

from agent.workload.expression import number
from agent.workload.static.values import ONE, ZERO, Scalar, Value

MODES = {"Wrap": "wrap", "Clamp": "clamp", "Mirror": "mirror", "Border": "border"}
"""Endings of ``cudaAddressMode...``, and the words of a workload."""

KINDS = {"cudaChannelFormatKindSigned": "i", "cudaChannelFormatKindUnsigned": "u", "cudaChannelFormatKindFloat": "f"}

ATTRIBUTES = (
    "ClusterDimension", "Cooperative", "Priority", "ProgrammaticStreamSerialization", "ProgrammaticEvent",
    "ClusterSchedulingPolicyPreference", "PreferredClusterDimension", "AccessPolicyWindow", "SynchronizationPolicy",
    "MemSyncDomain", "MemSyncDomainMap", "LaunchCompletionEvent", "PreferredSharedMemoryCarveout", "Ignore",
)  # fmt: skip
"""Endings of ``cudaLaunchAttribute...``."""

ENUMERATORS = frozenset(
    (
        *KINDS, *(f"cudaAddressMode{mode}" for mode in MODES), "cudaFilterModePoint", "cudaFilterModeLinear",
        "cudaReadModeElementType", "cudaReadModeNormalizedFloat", "cudaResourceTypeArray", "cudaResourceTypeLinear",
        "cudaResourceTypePitch2D", "cudaResourceTypeMipmappedArray",
        *(f"cudaLaunchAttribute{what}" for what in ATTRIBUTES), "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
        "CU_LAUNCH_ATTRIBUTE_COOPERATIVE", "CU_LAUNCH_ATTRIBUTE_PRIORITY",
        "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
    )
)  # fmt: skip

# What the standard headers define. RAND_MAX is glibc's.
BUILTIN: Mapping[str, Value] = {
    "NULL": ZERO,
    "nullptr": ZERO,
    "true": ONE,
    "false": ZERO,
    "cudaSuccess": ZERO,
    "INT_MAX": Scalar(number(2**31 - 1), "i32"),
    "RAND_MAX": Scalar(number(2**31 - 1), "i32"),
    "FLT_MAX": Scalar(number(3.4028234663852886e38, True)),
    "FLT_MIN": Scalar(number(1.1754943508222875e-38, True)),
    "M_PI": Scalar(number(3.141592653589793)),
    "INFINITY": Scalar(number(float("inf"), True)),
    "warpSize": Scalar(number(32)),
}
