"""Reports of Nsight Compute, read without it: what it prints for a card, in both of its forms, and files that are none.

The first text was printed by ncu 2025.3 on an H200 (``tests/benchmarks/counters.py`` asks for it), shortened.
"""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execution import nsight
from agent.execution.nsight import METRICS, Counted, ReportError, of_kernel, parse_report, read_report

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
ARGMAX = (
    '"0","4766","python3.12","127.0.0.1","argmax(const float *, int *, int, int)","1","7","(256, 1, 1)","(96, 1, 1)",'
    '"0","9.0","Command line profiler metrics",'
)
LONG = "\n".join(
    (
        "==PROF== Connected to process 4766 (/usr/bin/python3.12)",
        HEAD,
        *(
            ARGMAX + rest
            for rest in (
                '"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum","","3,463"',
                '"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum","","3,662"',
                '"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","","61,440"',
                '"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum","","96"',
                '"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","sector","245,760"',
                '"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","sector","96"',
                '"lts__t_sectors_srcunit_tex.sum","sector","245,856"',
            )
        ),
        "==PROF== Disconnected from process 4766",
    )
)
WIDE = """==PROF== Disconnected
"ID","Kernel Name","Block Size","Grid Size","dram__bytes_read.sum","gpu__time_duration.sum","sm__cycles.max"
"","","","","Mbyte","us","cycle"
"0","void ns::k<float, 3>(const float *)","(32, 4, 1)","(8, 1, 1)","1.5","12.25","77"
"1","_Z5stepsPKf","(32, 1, 1)","(9, 2, 1)","n/a","3","77"
"2","steps(int)","(32, 1, 1)","(9, 2, 1)","2","nan","77"
"""


def test_what_ncu_printed_on_a_card() -> None:
    assert list(parse_report(LONG.splitlines())) == [
        Counted(
            "argmax(const float *, int *, int, int)", "(96, 1, 1)", "(256, 1, 1)",
            61440, 245760, 96, 96, 3463 + 3662, 245856, None, None,
        )
    ]  # fmt: skip


def test_a_column_for_each_metric_with_units() -> None:
    first, second, third = parse_report(WIDE.splitlines())
    assert (first.dram_bytes, first.seconds, first.loads) == (1.5e6, pytest.approx(12.25e-6), None)
    assert (second.dram_bytes, second.seconds) == (None, pytest.approx(3e-6))
    assert (third.dram_bytes, third.seconds) == (2e6, None)


def test_launches_of_a_kernel_by_its_bare_name() -> None:
    found = tuple(parse_report(WIDE.splitlines()))
    assert of_kernel(found, "k") == found[:1]
    assert of_kernel(found, "steps") == found[1:]
    assert of_kernel(found, "step") == of_kernel(found, "eps") == ()


@given(st.lists(st.text(max_size=40).map(lambda text: '"' + text), max_size=6))
def test_any_text_gives_launches_or_none(rows: list[str]) -> None:
    for head in (HEAD, WIDE.splitlines()[1]):
        assert all(isinstance(one, Counted) for one in parse_report([head, *rows]))


def test_files_that_are_no_report_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReportError, match="cannot be read"):
        read_report(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ReportError, match=r"ncu --set full"):
        read_report(tmp_path / "other.csv")
    (tmp_path / "r.ncu-rep").write_bytes(b"NVR\0")
    monkeypatch.setattr(nsight.toolkit, "tool", lambda name: None)
    with pytest.raises(ReportError, match=r"--page raw --print-units base > report.csv"):
        read_report(tmp_path / "r.ncu-rep")
    monkeypatch.setattr(nsight, "MOST_BYTES", 3)
    with pytest.raises(ReportError, match="profile fewer"):
        read_report(tmp_path / "other.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="a script of the shell")
def test_a_report_is_opened_by_ncu_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, report = tmp_path / "ncu", tmp_path / "r.ncu-rep"
    report.write_bytes(b"NVR\0")
    (tmp_path / "said").write_text(WIDE)
    monkeypatch.setattr(nsight.toolkit, "tool", lambda name: script)

    def ncu(line: str) -> None:
        script.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/asked"\n{line}\n')
        script.chmod(0o755)

    ncu(f"cat '{tmp_path}/said'")
    assert len(read_report(report)) == 3
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    ncu("echo no such report >&2; exit 9")
    with pytest.raises(ReportError, match=r"exit code 9\): no such report"):
        read_report(report)
    script.unlink()
    with pytest.raises(ReportError, match="could not open"):
        read_report(report)


def test_every_metric_is_looked_for_once() -> None:
    assert len(set(METRICS)) == len(METRICS) == 10
