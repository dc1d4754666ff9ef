"""GPUVerify's own tests: small kernels that its static analysis must pass or refuse; the first line has its verdict.

``CUDA_LSP_GPUVERIFY`` is a checkout of https://github.com/mc-imperial/gpuverify (its paper: A. Betts and others, "The
Design and Implementation of a Verifier for GPU Kernels", TOPLAS 2015). A verdict there is about all arguments and
contents; here each kernel runs with a few. Labels of what no run shows (assertions about loops, functions without a
body, pointers that nobody passes, warps in step) are told apart, with the reason.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from agent.source.document import parse
from agent.source.kernel import Kernel
from tests.suites.labelled import BARRIER, BOUNDS, OTHER, RACE, UNSET, Labelled

_WORDS = (
    "__requires", "__requires_fresh_array", "__assert", "__assume", "__invariant", "__global_invariant", "__ensures",
    "__global_ensures", "__global_requires", "__global_assert", "__function_wide_invariant", "__axiom",
    "__function_wide_candidate_invariant", "__candidate_invariant", "__candidate_assert", "__at_most_one",
    "__non_temporal",
)  # fmt: skip
"""What is said to the verifier alone."""

_FLAGS = (
    *(f"-D{word}(...)=true" for word in _WORDS),
    "-D__builtin_memcpy=memcpy", "-D__builtin_memset=memset", "-Dsynchronize=sync",
)  # fmt: skip
_ELEMENTS = 1 << 22

_TYPES = {"int": "i32", "unsigned int": "u32", "unsigned": "u32", "float": "f32", "double": "f64", "char": "i8"}

_SCALARS = {
    "function_pointers/basic_assignment_pass": (1, 2),
    "function_pointers/basic_statement": (1, 2),
    "param_values/value_causing_race": (185,),
    "reduced_strength_with_requires": (1024,),
}
"""Where ``__requires`` says what arguments are, or the verifier must find them."""

_ALLOWED = frozenset({UNSET, BOUNDS})
"""Nothing there is about what was not written before, and its arrays have no end."""

_KINDS = {"race|racy": RACE, "barrier": BARRIER, "constant memory": OTHER}
"""What a label speaks of. A write to constant memory is a trap by the time that it is PTX."""

_APART = {
    "annotation_tests/test_axiom": "the verifier alone is told which blocks there are",
    "atomics/test_abstraction_enforced": "an assertion about the verifier's own abstraction",
    "function_pointers/soundness_issue": "an assertion that is false on purpose",
    "globalarray/fail": "the host is taken to change a constant that the file initialises",
    "misc/fail/miscfail2": "the verifier must find an invariant",
    "misc/fail/miscfail7": "a null pointer is taken to be passed",
    "param_values/value_in_assert": "an assertion about arguments",
    "pointertests/test12": "all threads write one value, which each reads back: found in unoptimised code alone",
}


def cases(root: Path) -> Iterator[Labelled]:
    folder = root / "testsuite" / "CUDA"
    for path in sorted(folder.rglob("kernel.cu")):
        text = path.read_text()
        name = str(path.parent.relative_to(folder))
        head = [line.removeprefix("//").strip() for line in text.splitlines()[:12] if line.startswith("//")]
        document = parse(text.encode(), name)
        kernels = document.kernels
        if kernels:
            yield Labelled(
                "GPUVerify", name, _plain(text), kernels[-1].name, _wanted(head, name),
                _entries(kernels[-1], head, name),
                (*_FLAGS, *re.findall(r"-D\w+=\w+", " ".join(head))), _APART.get(name) or _apart(head), _ALLOWED,
            )  # fmt: skip


def _plain(text: str) -> str:
    """With CUDA's own header where the verifier has one of that name."""
    groups = "#include <cooperative_groups.h>" if "cooperative_groups" in text else ""
    return re.sub(r'#include\s*[<"](cuda|call|annotations|cooperative_groups)[\w.]*[>"]', groups, text)


def _wanted(head: list[str], name: str) -> frozenset[str]:
    verdict = head[0].lower()
    if verdict.startswith("pass"):
        return frozenset()
    told = " ".join(head[1:]).lower()
    found = {kind for words, kind in _KINDS.items() if re.search(words, told)}
    if "divergence" in name or "broken_barrier" in name:
        return frozenset({BARRIER})
    if "null pointer" in told or "null" in name:
        return frozenset({OTHER if "function_pointers" in name else BOUNDS})
    return frozenset(found or {RACE})


def _apart(head: list[str]) -> str:
    told = " ".join(head)
    if "--warp-sync" in told:
        return "warps are taken to be in step"
    if "BUGLE_ERROR" in told or "CLANG_ERROR" in told:
        return "refused by the verifier's front end"
    return ""


def _entries(kernel: Kernel, head: list[str], name: str) -> tuple[dict[str, object], ...]:
    """Buffers are as long as anything asks here: the verifier's have no end. Indices in them are small."""
    told = " ".join(head)
    grid, block = _shape(told, "gridDim"), _shape(told, "blockDim")
    pointers = [one for one in kernel.parameters if "*" in one.type or "[" in one.type]
    scalars = [one for one in kernel.parameters if one not in pointers]
    arguments = ", ".join(one.name for one in kernel.parameters)
    return tuple(
        {
            "constants": {one.name: value for one in scalars},
            "buffers": {one.name: _buffer(one.element) for one in pointers},
            "plan": f"launch {kernel.name}<<<{grid}, {block}>>>({arguments})",
        }
        for value in _SCALARS.get(name, (0, 1, 4, 64) if scalars else (0,))
    )


def _buffer(element: str) -> str:
    known = _TYPES.get(element.replace("const ", "").replace("volatile ", "").strip())
    whole = known is not None and known[0] in "iu"
    domain = "integers(0, 100)" if whole else "" if known else "zeros"
    return f"{known}[{_ELEMENTS}] inout {domain}" if known else f"u8[{_ELEMENTS}] inout zeros"


def _shape(told: str, word: str) -> str:
    """As launched there, but for blocks of more threads than CUDA has: those are as large as they may be."""
    found = re.search(rf"--{word}=(\[[\d, ]+\]|\d+)", told)
    sizes = [int(size) for size in re.findall(r"\d+", found[1])] if found else [1]
    while word == "blockDim" and math.prod(sizes) > 1024:
        sizes[sizes.index(max(sizes))] //= 2
    return f"({', '.join(map(str, sizes))})" if len(sizes) > 1 else str(sizes[0])
