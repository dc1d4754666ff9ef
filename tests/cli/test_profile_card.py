"""``cuda-lsp profile`` beside what a card's own counters say: a report of Nsight Compute, or a run under it.

The reports here are texts in the form that ncu has; a real one is made and read where there is a card.
"""

import subprocess
from pathlib import Path

import jsonschema
import pytest

from agent.execution import toolkit
from agent.execution.nsight import METRICS
from cuda_lsp.terminal.schema import schema
from tests.cli.running import ROW_SUMS, run, run_json

LOADS = {"loads": 96 * 4 * 3, "load_sectors": 96 * 4 * 3 * 4, "stores": 96, "store_sectors": 96}
"""Of ROW_SUMS: each of 96 blocks has four warps, which read 384 numbers in three steps, and stores one number."""

HEAD = '"ID","Kernel Name","Block Size","Grid Size","{}","{}","dram__bytes_read.sum","gpu__time_duration.sum"'
REPORT = f"""==PROF== Disconnected
{HEAD.format(METRICS[0], METRICS[1])}
"","","","","","sector","byte","ns"
"0","other(int)","(1, 1, 1)","(1, 1, 1)","1","1","1","1"
"1","row_sums(const float *, float *, int)","(128, 1, 1)","(96, 1, 1)","1,152","4,608","147,456","2,560"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.cu"
    path.write_text(ROW_SUMS)
    return path


def test_a_report_is_told_below_what_was_counted(file: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text(REPORT)
    done = run("profile", str(file), "--report", str(report))
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "counted by the card itself (Nsight Compute)" in text
    assert "(96, 1, 1) blocks of (128, 1, 1): 1.2k loads of 4 sectors on average" in text
    assert "147.5 KB DRAM; 2.56 us at the profiler's clocks" in text and "other(" not in text
    code, answer = run_json("profile", str(file), "--report", str(report))
    assert code == 0
    (card,) = answer["card"]
    assert (card["loads"], card["load_sectors"], card["stores"]) == (1152, 4608, None)
    assert answer["profile"]["total"]["loads"]["requests"] == card["loads"]
    jsonschema.validate(answer, schema())


@pytest.mark.parametrize(
    ("content", "more", "code", "said"),
    [
        (REPORT.replace("row_sums", "row_sum"), (), 3, "has no launch of `row_sums`; it has: other, row_sum"),
        ("nothing", (), 3, "ncu --set full"),
        (REPORT, ("--ncu",), 2, "give one of them"),
    ],
)
def test_what_cannot_be_told_says_why(
    content: str, more: tuple[str, ...], code: int, said: str, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "report.csv").write_text(content)
    done = run("profile", str(file), "--report", str(tmp_path / "report.csv"), *more)
    assert done.returncode == code and said in " ".join(done.stderr.split())


def test_without_a_card_it_cannot_be_counted_there(file: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a card")
    done = run("profile", str(file), "--ncu")
    assert done.returncode == 4 and "--ncu needs a card" in done.stderr


@pytest.mark.gpu
def test_a_report_that_is_made_here_and_a_run_under_ncu_say_what_is_counted_by_hand(file: Path, tmp_path: Path) -> None:
    ncu, nvcc = toolkit.tool("ncu"), toolkit.nvcc()
    if ncu is None or nvcc is None:
        pytest.skip("needs ncu and nvcc")
    app, report = tmp_path / "app", tmp_path / "report.ncu-rep"
    built = subprocess.run([nvcc, "-arch=native", str(file), "-o", str(app)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    asked = [ncu, "-f", "-o", str(report), "--clock-control", "none", "--metrics", ",".join(METRICS), str(app)]
    made = subprocess.run(asked, capture_output=True, text=True)
    if "ERR_NVGPUCTRPERM" in made.stdout + made.stderr:
        pytest.skip("ncu may not read counters here")
    assert report.is_file(), made.stdout + made.stderr
    for more in (("--report", str(report)), ("--ncu",)):
        code, answer = run_json("profile", str(file), *more)
        assert code == 0, answer
        (card,) = answer["card"]
        assert {name: card[name] for name in LOADS} == LOADS, more
        assert card["seconds"] > 0 and card["grid"] == "(96, 1, 1)"
