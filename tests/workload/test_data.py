"""Captured contents: named by their hash, read from one folder, and never anything but what was captured."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.document import parse
from agent.workload import data, generators
from agent.workload.bind import bind
from agent.workload.binding import BoundBuffer
from agent.workload.directive import format_directive, read_directive
from agent.workload.errors import WorkloadError
from agent.workload.forms import form
from agent.workload.workload import Access, Domain

VALUES = np.arange(1000, dtype="<f4") * 0.25


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """What names VALUES, which are kept."""
    file = tmp_path / "x.raw"
    file.write_bytes(VALUES.tobytes())
    return data.keep(file)


def source(domain: str, extent: str = "1000", size: str = "const n = 1000") -> str:
    return (
        f"// cuda-lsp: workload\n//   {size}\n//   buffer x: f32[{extent}] in {domain}\n"
        f"//   buffer y: f32[{extent}] out\n//   launch k<<<4, 256>>>(x, y, n)\n"
        "__global__ void k(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }\n"
    )


def held(name: str, count: int = 1000) -> BoundBuffer:
    domain = Domain("data", None, None, True, name)
    return BoundBuffer("x", "f32", count, 4 * count, Access.IN, domain, None, None)


def test_contents_are_named_by_their_hash_and_are_private(kept: str, tmp_path: Path) -> None:
    assert kept == hashlib.sha256(VALUES.tobytes()).hexdigest()[:32]
    path = data.folder() / f"{kept}.bin"
    assert path.parent == tmp_path / "state" / "cuda-lsp" / "captured"
    assert path.read_bytes() == VALUES.tobytes()
    assert path.stat().st_mode & 0o777 == 0o400 and path.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_what_is_kept_twice_is_there_once(kept: str, tmp_path: Path) -> None:
    again = tmp_path / "again.raw"
    again.write_bytes(VALUES.tobytes())
    assert data.keep(again) == kept
    assert len(list(data.folder().iterdir())) == 1


def test_another_disk_is_copied_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "x.raw"
    file.write_bytes(VALUES.tobytes())
    assert np.array_equal(data.load(data.keep(file), "x").view("<f4"), VALUES)
    assert file.stat().st_mode & 0o200  # the user's own file stays as it was


def test_a_directive_reads_back_and_gives_the_captured_bytes(kept: str) -> None:
    document = parse(source(f"data({kept})").encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None
    assert workload.buffer("x").domain == Domain("data", None, None, True, kept)
    again = parse((format_directive(workload) + source("").rpartition("//")[2].partition("\n")[2]).encode())
    back = read_directive(again, again.kernel("k"))
    assert back is not None and back.buffer("x").domain == workload.buffer("x").domain
    bound = next(buffer for buffer in bind(workload, workload.plan, None, document).buffers if buffer.name == "x")
    for family, seed in (("captured", 1), ("normal", 2), ("denormals", 3)):
        made = generators.recipe(bound, family, seed)(0, bound.nbytes)
        assert np.array_equal(made.view("<f4"), VALUES)
    assert generators.families(workload) == ("captured",) and not generators.special(workload)
    assert form(bound, "captured") is None  # no kernel makes them: they are sent


@given(st.integers(0, 4000), st.integers(0, 4000))
def test_any_part_of_them_is_theirs(start: int, stop: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "load", lambda name, buffer: VALUES.view(np.uint8))
        made = generators.recipe(held("0" * 32), "uniform", 0)(start, stop)
    assert made.tobytes() == VALUES.tobytes()[start : max(start, stop)]


def test_families_of_the_other_inputs_are_still_tried(kept: str) -> None:
    text = source(f"data({kept})").replace("buffer y: f32[1000] out", "buffer y: f32[1000] inout normal")
    document = parse(text.encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None and set(generators.families(workload)) == set(generators.FAMILIES)


@pytest.mark.parametrize(
    "told", ["", "()", "(../../etc/passwd)", '("x.bin")', "(9F86D081884C7D659A2FEAA0C55AD015)", "(12)"]
)
def test_nothing_but_a_hash_names_contents(told: str) -> None:
    document = parse(source(f"data{told}").encode())
    with pytest.raises(WorkloadError, match="32 hexadecimal digits"):
        read_directive(document, document.kernel("k"))


def test_contents_of_another_machine_are_asked_for() -> None:
    document = parse(source(f"data({'0' * 32})").encode())
    with pytest.raises(WorkloadError, match=r"`x` are not on this machine .*capture the launch again"):
        read_directive(document, document.kernel("k"))


def test_they_fit_the_captured_size_alone(kept: str) -> None:
    document = parse(source(f"data({kept})", "n", "size n = 1000").encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None
    with pytest.raises(WorkloadError, match="`x` has 3996 bytes, and what was captured for it 4000"):
        bind(workload, workload.plan, {"n": 999}, document)


def test_contents_that_were_changed_are_refused(kept: str) -> None:
    path = data.folder() / f"{kept}.bin"
    assert data.load(kept, "x").nbytes == 4000
    path.chmod(0o600)
    path.write_bytes(b"\1" + VALUES.tobytes()[1:])
    with pytest.raises(WorkloadError, match="no longer holds what was captured for `x`"):
        generators.recipe(held(kept), "captured", 0)


def test_a_symbol_may_hold_them_too(kept: str) -> None:
    text = source("normal").replace("buffer y", "symbol c: f32[1000] in data(" + kept + ")\n//   buffer y")
    document = parse(text.encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None and workload.buffer("c").symbol
    assert workload.buffer("c").domain.data == kept
