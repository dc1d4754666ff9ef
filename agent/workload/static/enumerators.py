"""Enumerators of the CUDA runtime that descriptors of textures are filled with; each stands for itself."""

MODES = {"Wrap": "wrap", "Clamp": "clamp", "Mirror": "mirror", "Border": "border"}
"""Endings of ``cudaAddressMode...``, and the words of a workload."""

KINDS = {"cudaChannelFormatKindSigned": "i", "cudaChannelFormatKindUnsigned": "u", "cudaChannelFormatKindFloat": "f"}

ENUMERATORS = frozenset(
    (
        *KINDS, *(f"cudaAddressMode{mode}" for mode in MODES), "cudaFilterModePoint", "cudaFilterModeLinear",
        "cudaReadModeElementType", "cudaReadModeNormalizedFloat", "cudaResourceTypeArray", "cudaResourceTypeLinear",
        "cudaResourceTypePitch2D", "cudaResourceTypeMipmappedArray",
    )
)  # fmt: skip
