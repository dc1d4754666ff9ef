"""The reader on what NVRTC really writes, for several architectures, optimised and not; and on damaged copies of it."""

import re
import time
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.emulator.ptx.instruction import Address, Instruction, Label, Operand, Register, Vector
from agent.execution.emulator.semantics import ENGINE, lower
from agent.execution.toolkit import include_folders
from tests.execution.emulator.decode_kernels import NAMES, SOURCE

WAYS = (
    ("75",), ("80",), ("90",), ("100",), ("120",),
    ("80", "-use_fast_math"), ("120", "-use_fast_math"),
    ("90", "-G", "-DUNOPTIMISED"), ("120", "-G", "-DUNOPTIMISED"),
)  # fmt: skip


@lru_cache(maxsize=16)
def ptx(arch: str, *options: str) -> str:
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    folders = [f"-I{folder}" for folder in include_folders(nvrtc.getVersion()[0])]
    program = nvrtc.createProgram(SOURCE, "kernels.cu", (), ())
    lines = () if "-G" in options else ("--generate-line-info",)
    flags = (f"--gpu-architecture=compute_{arch}", "-default-device", "-w", *lines, *options, *folders)
    try:
        nvrtc.compileProgram(program, flags)
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    text = nvrtc.getPTX(program)
    return text.decode() if isinstance(text, bytes) else str(text)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_nothing_is_lost(way: tuple[str, ...]) -> None:
    """Instructions, functions, parameters and registers are counted in the text by other means."""
    text = ptx(*way)
    module = decode(text)
    assert module.target == f"sm_{way[0]}" and set(NAMES) <= {f.name for f in module.functions.values() if f.entry}
    assert any(path.endswith("kernels.cu") for path in module.files.values())
    code = re.sub(r"//.*", "", text)
    # whatever ends in a semicolon and is no declaration is an instruction
    declaration = re.compile(
        r"^\s*\{?\s*\.(?:reg|param|local|shared|pragma|branchtargets)[\s.][^;\n]*;"
        r"|^\.(?:visible |weak )?\.?(?:global|const)\s[^;]*;"
        r"|^\.extern \.shared[^;]*;|^\.(?:extern \.|weak \.)?func[^;{]*;",
        re.M,
    )
    written = code.count(";") - len(declaration.findall(code))
    bodies = re.findall(r"^\.(?:visible |weak )?\.?(?:entry|func)\b[^;{]*\{", code, re.M)
    decoded = [i for function in module.functions.values() for i in function.instructions]
    assert len(bodies) == len(module.functions) and len(decoded) == written
    for function in module.functions.values():
        used = {r.name for i in function.instructions for r in registers(i)}
        assert sum(function.registers.values()) >= len(used)
        slots = {(r.file, r.slot) for i in function.instructions for r in registers(i)}
        assert all(slot < function.registers[file] for file, slot in slots)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_every_instruction_has_a_meaning_or_is_the_engines(way: tuple[str, ...]) -> None:
    module = decode(ptx(*way))
    for function in module.functions.values():
        for instruction in function.instructions:
            if instruction.base not in ENGINE:
                lower(instruction)
            for operand in instruction.sources:
                if isinstance(operand, Label):
                    assert 0 <= operand.target <= len(function.instructions)


@pytest.mark.parametrize("way", WAYS[:7], ids=" ".join)
def test_lines_of_the_source(way: tuple[str, ...]) -> None:
    """What a line says is what its instructions do."""
    module = decode(ptx(*way))
    lines = SOURCE.split("\n")
    number = next(index for index, text in enumerate(lines, 1) if "acc += as" in text)
    own = {n for n, path in module.files.items() if path.endswith("kernels.cu")}
    found = [i for i in module.functions["matmul"].instructions if i.file in own and i.line == number]
    assert len([i for i in found if i.base == "fma"]) >= 16 and any("shared" in i.modifiers for i in found)


def registers(instruction: Instruction) -> list[Register]:
    found: list[Register] = [instruction.guard.register] if instruction.guard else []

    def visit(operand: Operand | None) -> None:
        if isinstance(operand, Register):
            found.append(operand)
        elif isinstance(operand, Vector):
            for element in operand.elements:
                visit(element)
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            found.append(operand.base)

    for operand in (*instruction.destinations, *instruction.sources):
        visit(operand)
    return found


@lru_cache(maxsize=1)
def small() -> str:
    """One kernel with calls, tables, vectors and inline blocks: some 300 lines."""
    text = ptx("75")
    start, end = text.index(".entry scan"), text.index(".entry blur")
    return text[: text.index(".visible")] + ".visible " + text[start : text.rindex("}", start, end) + 1]


def test_the_small_one_is_whole() -> None:
    assert list(decode(small()).functions) == ["scan"]


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1))
def test_cut_short(share: float) -> None:
    text = small()
    damaged = text[: int(len(text) * share)]
    if damaged.rstrip() != text.rstrip():
        refused_or_read(damaged)


MARKS = [
    "",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    '"',
    "/*",
    "//",
    ".",
    "@",
    ",",
    "|",
    "!",
    "%",
    "=",
    "\0",
    "é",
    "%r<99999999999>",
]


@settings(max_examples=150, deadline=None)
@given(st.floats(0, 1), st.integers(0, 30), st.sampled_from(MARKS))
def test_damaged(share: float, gone: int, mark: str) -> None:
    text = small()
    at = int(len(text) * share)
    refused_or_read(text[:at] + mark + text[at + gone :])


def refused_or_read(text: str) -> None:
    started = time.process_time()
    try:
        decode(text)
    except PtxError as error:
        assert error.message and error.line <= text.count("\n") + 1
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "tail",
    [
        "{" * 50_000,
        ".entry k() {" + "{" * 50_000,
        ".entry k() { mov.b64 " + "{" * 50_000 + ";}",
        ".entry k() { call " + "(" * 50_000 + ";}",
        ".entry k() { add.s32 " + "a," * 50_000 + ";}",
        ".entry k() { " + "L" * 50_000 + ": bra " + "L" * 50_000 + "; }",
        ".entry k() { mov.u32 x, " + "9" * 50_000 + "; }",
        ".entry k() { mov.f64 x, 1e" + "9" * 50_000 + "; }",
        ".entry k" + "(" * 50_000,
        ".func (" + "(a)" * 50_000,
        ".global .b8 x" + "[1]" * 20_000 + ";",
        ".global .b8 x[" + "9" * 50_000 + "];",
        ".global .b8 x[99999999999999] = {1};",
        ".global .u32 x = " + "generic(" * 50_000 + ";",
        ".global .u32 x[2] = {" + "{" * 50_000 + "};",
        "/*" * 50_000,
        '"' * 50_000,
        ".file 1 " + " " * 50_000 + "x",
        ".entry k() { .loc " + "1 " * 50_000 + " }",
        "@" * 50_000,
    ],
    ids=lambda tail: tail[:24],
)
def test_hostile(tail: str) -> None:
    refused_or_read(".version 8.0\n.target sm_90\n.address_size 64\n" + tail)
