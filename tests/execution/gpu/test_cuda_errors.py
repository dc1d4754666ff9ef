"""What CUDA says, in our words: whose fault it is, and what to do."""

import pytest

from agent.execution.children.cuda_errors import fault_kind, in_words, out_of_memory


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("cudaErrorIllegalAddress: an illegal memory access was encountered", "illegal address"),
        ("cudaErrorMisalignedAddress: misaligned address", "misaligned access"),
        ("cudaErrorAssert: device-side assert triggered", "trap"),
        ("cudaErrorLaunchTimeout: the launch timed out and was terminated", "timeout"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "refused"),
    ],
)
def test_what_the_kernel_did_and_what_it_did_not(said: str, kind: str) -> None:
    assert fault_kind(RuntimeError(said)) == kind


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("cudaErrorNoDevice: no CUDA-capable device is detected", "the card is gone"),
        ("CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy or unavailable", "somebody else's alone"),
        ("CUDA_ERROR_UNKNOWN: unknown error", "Xid lines of `dmesg`"),
        (
            "cudaErrorInsufficientDriver: CUDA driver version is insufficient",
            "update the driver",
        ),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: unsupported driver combination", "restart the machine"),
        ("cudaErrorECCUncorrectable: uncorrectable ECC error encountered", "a fault of its hardware"),
    ],
)
def test_where_card_or_driver_are_to_blame_it_says_what_to_do(said: str, words: str) -> None:
    found = in_words(RuntimeError(said))
    assert words in found and found.endswith(f"({said})")
    assert not out_of_memory(RuntimeError(said))


def test_a_kernel_s_own_fault_is_left_as_cuda_says_it() -> None:
    said = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    assert in_words(RuntimeError(said)) == said
    assert out_of_memory(RuntimeError("cudaErrorMemoryAllocation: out of memory"))
    assert out_of_memory(RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: out of memory"))
