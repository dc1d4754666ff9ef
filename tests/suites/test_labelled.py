"""How labels are read and answers are held against them, on kernels of our own that plant what the suites plant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.suites import gpuverify, indigo, sanitizer, scor
from tests.suites.labelled import BARRIER, BOUNDS, OTHER, RACE, UNSET, Labelled, Seen, look, report

HEAD = "#include <cstdio>\n\n"
HOST = """
int main() {
    int *in, *out;
    cudaMalloc(&in, 128 * sizeof(int));
    cudaMalloc(&out, 128 * sizeof(int));
    cudaMemset(in, 0, 128 * sizeof(int));
    k<<<BLOCKS, 64>>>(in, out);
    cudaDeviceSynchronize();
}
"""


def planted(body: str, *, blocks: int = 1, before: str = "", **more: Any) -> Labelled:
    """A program whose kernel ``k(const int* in, int* out)`` has ``body``, each line of it at its own."""
    kernel = f"{before}\n__global__ void k(const int* in, int* out) {{\n    int t = threadIdx.x;\n{body}\n}}\n"
    text = HEAD + kernel + HOST.replace("BLOCKS", str(blocks))
    wanted = more.pop("wanted", frozenset())
    lines = frozenset(at for at, line in enumerate(text.splitlines(), 1) if "// HERE" in line)
    return Labelled("ours", "planted", text, "k", wanted, lines=lines, **more)


PLANTED = {
    "misaligned": (BOUNDS, "    *(int*)((char*)out + 2 + t * 4) = in[t];  // HERE"),
    "an address that was made up": (BOUNDS, "    *(int*)0x31234560 = in[t];  // HERE\n    out[t] = 1;"),
    "past the end": (BOUNDS, "    out[t * 3] = in[t];  // HERE"),
    "a negative index": (BOUNDS, "    out[t] = in[t - 1];  // HERE"),
    "shared, past the end": (BOUNDS, "    __shared__ int s[32];\n    s[t] = in[t];  // HERE\n    out[t] = 1;"),
    "no barrier before the sum": (
        RACE,
        "    __shared__ int s[64];\n    s[t] = in[t] + t;  // HERE\n    if (t == 0) {\n        int sum = 0;\n"
        "#pragma unroll 1\n        for (int i = 0; i < 64; i++) sum += s[i];  // HERE\n        out[0] = sum;\n    }",
    ),
    "no __syncwarp before the sum": (
        RACE,
        "    __shared__ int s[64];\n    s[t] = in[t] + t;  // HERE\n    if (t % 32 == 0) {\n        int sum = 0;\n"
        "#pragma unroll 1\n        for (int i = 0; i < 32; i++) sum += s[t + i];  // HERE\n        out[t] = sum; }",
    ),
    "global, across blocks": (RACE, "    int i = blockIdx.x * 64 + t;\n    out[t] = i * 3 + in[t];  // HERE"),
    "a barrier that some come to once more": (
        BARRIER,
        "    int sum = 0;\n#pragma unroll 1\n    for (int i = t; i < 112; i += 64) {\n        sum += in[i];\n"
        "        __syncthreads();  // HERE\n    }\n    out[t] = sum;",
    ),
    "a mask without the lane itself": (
        BARRIER,
        "    unsigned mask = __ballot_sync(~0u, t % 32 < 10);\n    if (t % 32 <= 10) {\n"
        "        __syncwarp(mask);  // HERE\n        out[t] = in[t];\n    }",
    ),
    "a shuffle from lanes that are not there": (
        BARRIER,
        "    if (t % 2) out[t] = __shfl_xor_sync(~0u, in[t], 1);  // HERE",
    ),
    "shared, never written": (
        UNSET,
        "    __shared__ int s[64];\n    if (t < 60) s[t] = in[t];\n    out[t] = s[t];  // HERE",
    ),
    "an assertion": (OTHER, "    if (in[t] != 7) __trap();  // HERE\n    out[t] = 1;"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_at_its_line_and_nothing_else(name: str) -> None:
    kind, body = PLANTED[name]
    seen = look(planted(body, blocks=2 if "across" in name else 1, wanted=frozenset({kind})))
    assert (seen.outcome, seen.problem) == ("agreed", ""), [(one.kind, one.where) for one in seen.faults]


def test_what_the_host_leaves_out_counts_where_rules_are_asked() -> None:
    case = planted("    out[t] = in[t];", wanted=frozenset({UNSET}), rules=("L20",))
    short = evolve(case, text=case.text.replace("cudaMemset(in, 0, 128 * sizeof(int))", "cudaMemset(in, 0, 128)"))
    seen = look(short)
    assert seen.outcome == "agreed" and "cudaMemset" in short.text.splitlines()[seen.faults[-1].where.line - 1]
    assert look(case).outcome == "missed"


MENDED = {
    "barrier before the sum": "    __shared__ int s[64];\n    s[t] = in[t] + t;\n    __syncthreads();\n"
    "    int sum = 0;\n    for (int i = 0; t == 0 && i < 64; i++) sum += s[i];\n    if (t == 0) out[0] = sum;",
    "the barrier outside the condition": "    int sum = 0;\n    for (int b = 0; b < 2; b++) {\n"
    "        if (t + 64 * b < 112) sum += in[t + 64 * b];\n        __syncthreads();\n    }\n    out[t] = sum;",
    "the lanes of the mask alone": "    unsigned mask = __ballot_sync(~0u, t % 32 < 10);\n"
    "    if (t % 32 < 10) __syncwarp(mask);\n    out[t] = in[t];",
}


@pytest.mark.parametrize("name", MENDED)
def test_without_the_fault_nothing_is_found(name: str) -> None:
    seen = look(planted(MENDED[name]))
    assert (seen.outcome, seen.problem, seen.found) == ("agreed", "", frozenset()), seen.faults


def test_outcomes() -> None:
    race = planted("    out[t / 2] = t;  // HERE", wanted=frozenset({RACE}))
    seen = look(race)
    assert seen.outcome == "agreed" and not seen.elsewhere
    assert Seen(race).outcome == "missed"
    assert Seen(race, harmless=frozenset({RACE})).outcome == "named"
    assert Seen(planted("    out[t] = 1;"), frozenset({RACE})).outcome == "invented"
    assert Seen(race, problem="no compiler").outcome == "not run"
    assert look(planted("    out[t / 2] = t;", wanted=frozenset({RACE}), apart="because")).outcome == "apart"
    moved = planted("    out[t / 2] = t;\n    out[100] = 1;  // HERE", wanted=frozenset({RACE}))
    assert look(moved).outcome == "invented"
    broken = look(planted("    out[t] = nothing;"))
    assert broken.outcome == "not run" and "does not compile" in broken.problem
    text = "\n".join(report([seen, broken, Seen(race)]))
    assert "not run: ours/planted" in text and "missed: ours/planted (race): nothing found" in text


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_gpuverify_labels_are_read_from_the_head(tmp_path: Path) -> None:
    def file(head: str, place: str) -> str:
        kernel = f"__global__ void foo(int* p, int n) {{ __requires(n > 0); p[{place}] = threadIdx.x; }}\n"
        return f"//{head}\n\n#include <cuda.h>\n{kernel}"

    own = "(blockIdx.y * 2 + blockIdx.x) * 1024 + threadIdx.x"
    files = {
        "fine": file("pass\n//--blockDim=2048 --gridDim=[2,3]", own),
        "racy": file("xfail:NOT_ALL_VERIFIED\n//--blockDim=64 --gridDim=1", "0"),
        "step": file("pass\n//--blockDim=64 --gridDim=1 --warp-sync=32", "0"),
    }
    _write(tmp_path, {f"testsuite/CUDA/{name}/kernel.cu": text for name, text in files.items()})
    found = {case.name: case for case in gpuverify.cases(tmp_path)}
    assert found["racy"].wanted == {RACE} and not found["fine"].wanted
    assert "1024" in str(found["fine"].workloads[0]["plan"]) and "(2, 3)" in str(found["fine"].workloads[0]["plan"])
    assert {name: look(case).outcome for name, case in found.items()} == {
        "fine": "agreed", "racy": "agreed", "step": "apart",
    }  # fmt: skip


def test_indigo_labels_are_read_from_names(tmp_path: Path) -> None:
    head = 'typedef int data_t;\n#include "indigo_cuda.h"\n'
    body = "__global__ void test_kernel(int* nindex, int* nlist, data_t* data1, data_t* data2, int numv) {{\n"
    body += (
        "  int i = threadIdx.x + blockIdx.x * blockDim.x;\n  if ({}) for (int j = nindex[i]; j < nindex[i + 1]; j++)\n"
    )
    body += "    {};\n}}\n"
    _write(tmp_path, {
        "push_node.cu": head + body.format("i < numv", "atomicAdd(&data1[nlist[j]], 1)"),
        "push_node_atomicBug.cu": head + body.format("i < numv", "data1[nlist[j]] += 1"),
        "push_node_boundsBug.cu": head + body.format("i <= numv", "atomicAdd(&data1[nlist[j]], 1)"),
    })  # fmt: skip
    seen = [look(case) for case in indigo.cases(tmp_path)]
    assert [row.case.wanted for row in seen] == [frozenset(), {RACE}, {BOUNDS}]
    assert [row.outcome for row in seen] == ["agreed"] * 3, [row.faults for row in seen]


def test_scor_labels_are_read_from_names(tmp_path: Path) -> None:
    text = "__global__ void kmain(volatile unsigned int* data) {{ {} = blockIdx.x + 1; }}\n"
    text += "int main() {{ unsigned int* d; cudaMalloc(&d, 8); kmain<<<2, 1>>>(d); }}\n"
    folder = "microbenchmarks/src"
    _write(tmp_path, {
        f"{folder}/race_interblock_none.cu": text.format("data[0]"),
        f"{folder}/norace_interblock_own.cu": text.format("data[blockIdx.x]"),
        f"{folder}/norace_intrawarp_none.cu": text.format("data[0]"),
    })  # fmt: skip
    assert {row.case.name: row.outcome for row in map(look, scor.cases(tmp_path))} == {
        "norace_interblock_own": "agreed", "norace_intrawarp_none": "apart", "race_interblock_none": "agreed",
    }  # fmt: skip


def test_the_lines_of_the_sanitizer_s_samples_are_found_by_what_stands_on_them(tmp_path: Path) -> None:
    _write(tmp_path, {planted.file: "x\n" + "\n".join(planted.lines) + "\n" for planted in sanitizer.PLANTED})
    found = {case.name: case for case in sanitizer.cases(tmp_path)}
    assert len(found) == len(sanitizer.PLANTED)
    assert found["Racecheck/block_error.cu:sumKernel"].lines == {2, 3}
    assert found["Racecheck/block_error.cu:sumKernel"].wanted == {RACE}
