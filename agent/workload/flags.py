"""Compiler flags of several origins: which of them count, and what of another build's command line means the same here.

A command line of a build is the user's, for another compiler and maybe from another machine. Only what device code is
made from is taken of it: macros, include folders, the language standard, floating-point options, a cap on registers.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

# Flags of nvcc, GCC and clang whose value may stand apart.
_NAMES = """
-D -U -I -isystem -iquote -idirafter -include -imacros -std -maxrregcount -arch -code -gencode -ccbin -o -odir -l -L
-x -t -rdc -cudart -MF -MT -MQ -Xcompiler -Xptxas -Xlinker -Xnvlink -Xclang -Xcuda-ptxas -Xcuda-fatbinary
-Xarch_host -Xarch_device -Xpreprocessor -Xassembler -isysroot -target -optf -diag-suppress -diag-error -diag-warn
-mllvm --param --define-macro --undefine-macro --include-path --system-include --pre-include --std --maxrregcount
--gpu-architecture --gpu-code --generate-code --compiler-bindir --output-file --output-directory --library
--library-path --x --threads --relocatable-device-code --compiler-options --ptxas-options --linker-options
--nvlink-options --options-file --dependency-output --diag-suppress --diag-error --fmad --ftz --prec-div --prec-sqrt
-fmad -ftz -prec-div -prec-sqrt --cudart --sysroot --cuda-path
"""
_VALUED = frozenset(_NAMES.split())
_JOINED = ("-D", "-U", "-I", "-isystem", "-iquote", "-include")
"""Flags to which a value may be joined without a sign."""

_KIND = {
    **dict.fromkeys(("-D", "--define-macro"), "-D"),
    **dict.fromkeys(("-U", "--undefine-macro"), "-U"),
    **dict.fromkeys(("-I", "-isystem", "-iquote", "--include-path", "--system-include"), "-I"),
    **dict.fromkeys(("-std", "--std"), "--std"),
    **dict.fromkeys(("-maxrregcount", "--maxrregcount"), "--maxrregcount"),
    **{f"{dash}{name}": f"--{name}" for name in ("fmad", "ftz", "prec-div", "prec-sqrt") for dash in ("-", "--")},
}
# As clang says what nvcc says otherwise.
_SAME = {
    "-use_fast_math": "--use_fast_math",
    "--use_fast_math": "--use_fast_math",
    "-fgpu-flush-denormals-to-zero": "--ftz=true",
    "-fcuda-flush-denormals-to-zero": "--ftz=true",
    "-fno-gpu-flush-denormals-to-zero": "--ftz=false",
    "-fno-cuda-flush-denormals-to-zero": "--ftz=false",
    "-ffp-contract=off": "--fmad=false",
    "-ffp-contract=fast": "--fmad=true",
}
_MATTERS = re.compile(
    r"-ffast-math|-idirafter|-arch|--gpu-architecture|-code|--gpu-code|-gencode|"
    r"--generate-code|--cuda-gpu-arch|--offload-arch|@|--options-file|-optf|-march"
)
"""What is left out, and said."""
_FORCED = re.compile(r"--pre-include|-include|-imacros")
_CHOSEN = re.compile(r"__(CUDA|NV|HIP|HCC|THRUST|GNUC|clang|cplusplus)\w*")
"""Macros that say which compiler works, and for what: the one that does knows best."""
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\([\w\s,.]*\))?(=.*)?")
_STANDARD = re.compile(r"(?:c|gnu)\+\+(\w\w)")
_NEW = {"17": "17", "1z": "17", "20": "20", "2a": "20", "23": "20", "2b": "20", "26": "20", "2c": "20"}
_LONGEST = 1000

Unit = tuple[str, ...]


@frozen
class Taken:
    """``flags`` are those that count, each in one piece and with absolute folders; ``left_out`` what might have
    mattered, ``forced`` the headers that stand before the source (:mod:`agent.workload.brought`)."""

    flags: tuple[str, ...]
    left_out: tuple[str, ...]
    forced: tuple[str, ...] = ()


def merged(*ranks: Iterable[str]) -> tuple[str, ...]:
    """Flags of several origins, the stronger ones behind. Of equal ones the strongest stays; macros and options stay in
    order, as the last counts to a compiler, and the folders of the strongest come first, as the first counts there."""
    told = [tuple(_units(tuple(flags))) for flags in ranks]
    folders = dict.fromkeys(unit for units in reversed(told) for unit in units if _is_folder(unit))
    others = [unit for units in told for unit in units if not _is_folder(unit)]
    last = list(dict.fromkeys(reversed(others)))[::-1]
    return tuple(flag for unit in (*last, *folders) for flag in unit)


def macros(flags: Iterable[str]) -> dict[str, str | None]:
    """What ``flags`` define, by name; None for a name that they undefine."""
    found: dict[str, str | None] = {}
    for unit in _units(tuple(flags)):
        name, value = _split(unit)
        kind = _KIND.get(name)
        if kind == "-D":
            macro, sign, body = value.partition("=")
            found[macro] = body if sign else "1"
        elif kind == "-U":
            found[value] = None
    return found


def folders(flags: Iterable[str]) -> tuple[str, ...]:
    """The include folders that ``flags`` name, as they are written."""
    return tuple(_split(unit)[1] for unit in _units(tuple(flags)) if _is_folder(unit))


def taken(arguments: Sequence[str], folder: Path) -> Taken:
    """What of a command line (without the compiler) is taken. Relative include folders are ``folder``'s."""
    flags: list[str] = []
    left_out: list[str] = []
    forced: list[str] = []
    for unit in _units(tuple(arguments)):
        flag = _same(unit, folder)
        if flag is not None:
            flags.append(flag)
        elif _FORCED.match(unit[0]):
            name, value = _split(unit)
            forced += value.split(",") if name.startswith("--") else [value]
        elif _KIND.get(_split(unit)[0]) is not None or _MATTERS.match(unit[0]):
            left_out.append(_shown(unit))
    return Taken(merged(flags), tuple(dict.fromkeys(left_out)), tuple(forced))


def _same(unit: Unit, folder: Path) -> str | None:
    """The flag as the compiler here takes it; None if it takes none such."""
    if len(unit) == 1 and unit[0] in _SAME:
        return _SAME[unit[0]]
    name, value = _split(unit)
    kind = _KIND.get(name)
    if kind is None or not value or not value.isprintable() or len(value) > _LONGEST:
        return None
    if kind in ("-D", "-U"):
        macro = _DEFINE.fullmatch(value)
        return f"{kind}{value}" if macro is not None and not _CHOSEN.fullmatch(macro[1]) else None
    if kind == "-I":
        return f"-I{os.path.normpath(folder / value)}"
    if kind == "--std":
        standard = _STANDARD.fullmatch(value)
        # CUDA's own headers take none before C++17, which is what holds where nothing is said
        return f"--std=c++{_NEW[standard[1]]}" if standard is not None and standard[1] in _NEW else None
    valid = r"\d{1,3}" if kind == "--maxrregcount" else "true|false"
    return f"{kind}={value}" if re.fullmatch(valid, value) else None


def _units(flags: Sequence[str]) -> Iterator[Unit]:
    """Each flag with the value that stands apart from it."""
    rest = iter(flags)
    for flag in rest:
        value = next(rest, None) if flag in _VALUED else None
        yield (flag,) if value is None else (flag, value)


def _split(unit: Unit) -> tuple[str, str]:
    """Name and value of a flag."""
    if len(unit) > 1:
        return unit[0], unit[1]
    name, sign, value = unit[0].partition("=")
    if sign and name in _VALUED:
        return name, value
    joined = next((short for short in _JOINED if unit[0].startswith(short) and unit[0] != short), None)
    return (joined, unit[0][len(joined) :]) if joined is not None else (unit[0], "")


def _is_folder(unit: Unit) -> bool:
    return _KIND.get(_split(unit)[0]) == "-I"


def _shown(unit: Unit) -> str:
    text = " ".join(unit)
    return "".join(char if char.isprintable() else "?" for char in text[:80])
