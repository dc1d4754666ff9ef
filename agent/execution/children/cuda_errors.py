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


_DRIVER = (
    (
        ("InsufficientDriver", "INSUFFICIENT_DRIVER", "SystemDriverMismatch", "SYSTEM_DRIVER_MISMATCH",
         "CompatNotSupported", "COMPAT_NOT_SUPPORTED"),
        "driver and CUDA libraries do not fit together: update the driver, or restart the machine after an update",
    ),
    (
        ("ECCUncorrectable", "ECC_UNCORRECTABLE", "NvlinkUncorrectable", "NVLINK_UNCORRECTABLE"),
        "the card reports a fault of its hardware: see `nvidia-smi -q`, reset the card, and run this again",
    ),
    (
        ("NoDevice", "NO_DEVICE", "DevicesUnavailable", "DEVICE_UNAVAILABLE", "DeviceUninitialized", "SystemNotReady",
         "SYSTEM_NOT_READY", "InitializationError", "NOT_INITIALIZED", "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN",
         "OperatingSystem", "OPERATING_SYSTEM", "ResetRequired", "RESET_REQUIRED"),
        "the card is gone, or somebody else's alone: see `nvidia-smi` and the Xid lines of `dmesg`, and run this again",
    ),
)  # fmt: skip
"""What CUDA says where neither the program nor the workload is to blame, and what to do about it."""


def in_words(error: Exception) -> str:
    """What CUDA said, and, where the driver or the card is at fault, what to do."""
    text = str(error)
    advice = next((words for names, words in _DRIVER if any(name in text for name in names)), "")
    return f"{advice} ({text})" if advice else text


def out_of_memory(error: Exception) -> bool:
    return "MemoryAllocation" in str(error) or "OUT_OF_MEMORY" in str(error)
