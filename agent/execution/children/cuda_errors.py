"""CUDA's names for errors, and ours for what a kernel did."""

_FAULTS = {
    "cudaErrorIllegalAddress": "illegal address",
    "cudaErrorMisalignedAddress": "misaligned access",
    "cudaErrorInvalidAddressSpace": "illegal address",
    "cudaErrorInvalidPc": "illegal instruction",
    "cudaErrorIllegalInstruction": "illegal instruction",
    "cudaErrorHardwareStackError": "stack overflow",
    "cudaErrorAssert": "trap",
    "cudaErrorLaunchFailure": "launch failure",
    "cudaErrorLaunchTimeout": "timeout",
}


def fault_kind(error: Exception) -> str:
    """What the kernel did; ``refused`` where it is not the kernel's doing."""
    return next((kind for name, kind in _FAULTS.items() if name in str(error)), "refused")


def out_of_memory(error: Exception) -> bool:
    return "MemoryAllocation" in str(error) or "OUT_OF_MEMORY" in str(error)
