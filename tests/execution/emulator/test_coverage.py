"""What the emulator says it runs and refuses is what it does; its page is up to date; what is within error is named."""

from pathlib import Path

import numpy as np
import pytest

from agent.execution.emulator.coverage import FORMS, ISA, forms, refused, runs
from agent.execution.emulator.pages import page
from tests.execution.emulator.building import build, launch, of_ptx, run, with_headers

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_says_what_is_refused_now() -> None:
    assert (ROOT / "docs" / "emulator.md").read_text() == page(), (
        "run: python -m agent.execution.emulator.pages > docs/emulator.md"
    )


@pytest.mark.parametrize("base", [base for names in refused().values() for base in names])
def test_opcodes_listed_as_refused_are_refused_by_name(base: str) -> None:
    ptx = f""".version 9.0
        .target sm_90
        .address_size 64
        .visible .entry k() {{ .reg .b32 %r<4>; {base}.b32 %r0, %r1, %r2; ret; }}"""
    answer, _ = run(of_ptx(ptx), launch("k", 1, 32), {})
    assert answer.status == "refused" and base in answer.message, answer


def test_forms_that_are_tried_belong_to_opcodes_that_run() -> None:
    assert len(forms()) == len(FORMS) and any(not form.why for form in forms())
    for form in forms():
        assert runs(form.text.split(".")[0]) and (not form.why or form.text.split(".")[0] in form.why)
    assert {base for names in ISA.values() for base in names.split()} >= {"add", "tex", "wgmma", "mma"}


def test_results_within_error_are_named_and_exact_ones_are_not() -> None:
    source = """extern "C" __global__ void k(float* x, float* s, unsigned* n) {
        x[threadIdx.x] = BODY; }"""
    x = np.ones(32, np.float32)
    buffers, step = {"x": x, "s": x, "n": np.ones(32, np.uint32)}, launch("k", 1, 32, "x", "s", "n")

    def named(body: str) -> tuple[str, ...]:
        return run(build(source.replace("BODY", body)), step, buffers)[0].inexact

    assert named("x[threadIdx.x] / s[1] + sqrtf(s[2]) + atomicAdd(n, 1u)") == ()
    assert named("__sinf(x[threadIdx.x])") == ("sin.approx.f32",)
    assert named("__fdividef(x[threadIdx.x], s[3]) + atomicAdd(s, 1.0f)") == ("atom.global.add.f32", "div.approx.f32")


@pytest.mark.parametrize(("kind", "sums", "open_ended"), [("half", "float", True), ("signed char", "int", False)])
def test_products_of_floats_are_within_error_those_of_integers_exact(kind: str, sums: str, open_ended: bool) -> None:
    built = with_headers(f"""#include <mma.h>
        using namespace nvcuda;
        extern "C" __global__ void k({sums}* d) {{
            wmma::fragment<wmma::matrix_a, 16, 16, 16, {kind}, wmma::row_major> a; wmma::fill_fragment(a, 1);
            wmma::fragment<wmma::matrix_b, 16, 16, 16, {kind}, wmma::col_major> b; wmma::fill_fragment(b, 2);
            wmma::fragment<wmma::accumulator, 16, 16, 16, {sums}> c; wmma::fill_fragment(c, 3);
            wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(d, c, 16, wmma::mem_row_major); }}""")
    d = np.zeros((16, 16), np.float32 if open_ended else np.int32)
    answer, out = run(built, launch("k", 1, 32, "d"), {"d": d})
    assert answer.status == "ok" and (out["d"] == 35).all()
    assert (answer.inexact != ()) is open_ended
