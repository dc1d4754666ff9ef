"""``--probe``: a kernel without host code is run to see what it touches, on request only, and never silently."""

from pathlib import Path

from tests.cli.running import run

ALONE = """\
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
__global__ void histogram(const int* x, int* h, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&h[x[i]], 1);
}
"""


def test_the_list_shows_what_running_tells(tmp_path: Path) -> None:
    file = tmp_path / "alone.cu"
    file.write_text(ALONE)
    plain = run("kernels", str(file))
    assert plain.returncode == 0 and "probed" not in plain.stdout
    shown = run("kernels", str(file), "--probe").stdout
    assert "  probed   x f32[n] in, y f32[n] out; scale<<<ceil_div(n, 128), 128>>>(x, y, a, n)" in shown
    assert "  probed   x i32[n] in, h i32[?] inout" in shown
    assert "  open     `h`: where it is written depends on values loaded from `x` (line 7)" in shown
    assert "  assumed  the values of `n` are ours: state your own" in shown


def test_a_search_offers_it_and_says_what_it_rests_on(tmp_path: Path) -> None:
    file = tmp_path / "alone.cu"
    file.write_text(ALONE)
    refused = run("optimize", str(file), "--kernel", "scale")
    assert refused.returncode == 3 and "Or add --probe" in refused.stderr
    searched = run("optimize", str(file), "--kernel", "scale", "--probe", "--rounds", "1", "--candidates", "1")
    assert "the workload of scale was probed" in searched.stderr and "assumed: " in searched.stderr
    assert "bounds not known (the extents of `x`, `y` were probed)" in searched.stdout
    assert "in bounds" not in searched.stdout
    open_ = run("optimize", str(file), "--kernel", "histogram", "--probe")
    assert open_.returncode == 3 and "probing histogram leaves something open" in open_.stderr
    assert "h: i32[?] probed inout" in open_.stderr


def test_a_rewrite_is_judged_on_a_probed_workload(tmp_path: Path) -> None:
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text(ALONE)
    new.write_text(ALONE.replace("a * x[i]", "x[i] * a"))
    judged = run("verify", str(old), str(new), "--kernel", "scale", "--probe")
    assert judged.returncode == 0, judged.stderr
    assert "right" in judged.stdout and "bounds not known" in judged.stdout
    assert "that accesses keep in bounds: the extents of x, y were probed" in judged.stdout
    assert "other launches than the probed one: scale<<<ceil_div(n, 128), 128>>>" in judged.stdout
    assert "Or add --probe" in run("verify", str(old), str(new), "--kernel", "scale").stderr


LIMITED = """\
__global__ void gather(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i < 100000 ? i : 2 * i];
}
"""
HIDDEN = """\
// cuda-lsp: workload
//   size     n = 65536
//   buffer   x: f32[n] probed in
//   buffer   y: f32[n] probed out
//   launch   one<<<ceil_div(n, 128), 128>>>(x, y, n)
__global__ void one(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.3 * x[n > 20000 && i == n / 4 ? n : i];
}
"""


def test_an_extent_that_was_probed_too_small_is_no_fault_of_the_kernel(tmp_path: Path) -> None:
    for text in (LIMITED, HIDDEN):  # before any candidate is judged, and while one is
        old, new = tmp_path / "old.cu", tmp_path / "new.cu"
        old.write_text(text)
        new.write_text(text.replace("x[", "1.0f * x["))
        for done in (
            run("verify", str(old), str(new), "--probe"),
            run("optimize", str(old), "--probe", "--rounds", "1", "--candidates", "1"),
        ):
            assert done.returncode == 3, done.stdout + done.stderr
            assert "the probed extent of `x` is too small at n=" in done.stderr
            assert "(buffer x: f32[...] in)" in done.stderr
            assert "broken" not in (done.stdout + done.stderr).lower()
