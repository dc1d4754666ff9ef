"""Targets against arithmetic that their datasheets state in another form."""

import pytest

from agent.execution.targets import TARGETS, UnknownTarget, find_target


@pytest.mark.parametrize(
    ("name", "tflops"),
    # Peak single-precision rate in TFLOPS as each datasheet or whitepaper states it; a fused multiply-add counts two.
    [("T4", 8.1), ("A100", 19.5), ("RTX 3090", 35.6), ("RTX 4090", 82.6), ("L40S", 91.6), ("H100", 67), ("H200", 67)],
)
def test_single_precision_peak_is_the_datasheets(name: str, tflops: float) -> None:
    assert find_target(name).fp32_per_s * 2 / 1e12 == pytest.approx(tflops, rel=0.01)


@pytest.mark.parametrize(("name", "tflops"), [("A100", 9.7), ("H100", 34), ("H200", 34)])
def test_double_precision_peak_is_the_datasheets(name: str, tflops: float) -> None:
    target = find_target(name)
    assert target.sms * target.clock_hz * target.fp64_lanes * 2 / 1e12 == pytest.approx(tflops, rel=0.02)


def test_names_are_found_however_they_are_written() -> None:
    for spelling in ("H200", "h200", "NVIDIA H200", "nvidia-h200"):
        assert find_target(spelling).name == "H200"
    assert find_target("NVIDIA A100-SXM4-80GB").name == "A100"
    assert find_target("NVIDIA GeForce RTX 4090").name == "RTX 4090"
    assert find_target("sm_90a").arch == "sm_90"


def test_an_unknown_card_is_told_which_are_known() -> None:
    with pytest.raises(UnknownTarget, match=r"did you mean H\d00.*Known are T4, A100"):
        find_target("H300")


def test_every_target_is_whole() -> None:
    names = [target.name for target in TARGETS]
    assert len(set(names)) == len(names)
    for target in TARGETS:
        assert target.l2_bytes_per_s > target.dram_bytes_per_s
        assert target.sm.threads_per_sm >= 1024
