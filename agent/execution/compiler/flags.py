"""The user's flags, written for nvcc, as NVRTC understands them."""

import difflib
import re

from attrs import frozen

from agent.execution.compiler.result import Diagnostic, Options


@frozen
class Flags:
    """``passed`` go to NVRTC as they are, ``includes`` are the folders of ``-I``, ``forced`` the files of ``-include``,
    ``unknown`` what was left out and might have mattered."""

    passed: tuple[str, ...]
    includes: tuple[str, ...]
    forced: tuple[str, ...]
    unknown: tuple[str, ...]

    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(Diagnostic("warning", "", 0, f"compiler flag {flag} is not used here") for flag in self.unknown)


# Flags of nvcc that are followed by a value, or joined to it with "=": name -> how it is treated.
_VALUED = {
    **dict.fromkeys(("-D", "--define-macro"), "define"),
    **dict.fromkeys(("-U", "--undefine-macro"), "undefine"),
    **dict.fromkeys(("-I", "--include-path", "-isystem", "--system-include"), "folder"),
    **dict.fromkeys(("-include", "--pre-include"), "forced"),
    **dict.fromkeys(("-std", "--std"), "std"),
    **dict.fromkeys(("-maxrregcount", "--maxrregcount"), "maxrregcount"),
    **dict.fromkeys(("-fmad", "--fmad"), "fmad"),
    **dict.fromkeys(("-ftz", "--ftz"), "ftz"),
    **dict.fromkeys(("-prec-div", "--prec-div"), "prec-div"),
    **dict.fromkeys(("-prec-sqrt", "--prec-sqrt"), "prec-sqrt"),
    **dict.fromkeys(("-diag-suppress", "--diag-suppress"), "diag-suppress"),
    **dict.fromkeys(("-Xptxas", "--ptxas-options"), "ptxas"),
    # What only the host, the linker or the driver program cares about. The architecture is ours to choose.
    **dict.fromkeys(
        ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "--cuda-gpu-arch",
         "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xnvlink", "--nvlink-options",
         "-ccbin", "--compiler-bindir", "-o", "--output-file", "-l", "--library", "-L", "--library-path", "-x", "--x",
         "-rdc", "--relocatable-device-code", "-t", "--threads", "-cudart", "--cudart", "-MF", "-MT", "-MQ",
         "-odir", "--output-directory", "-split-compile", "--split-compile", "-diag-error", "--diag-error",
         "-diag-warn", "--diag-warn", "--dependency-output", "--dependency-target-name", "-arbin", "--archiver-binary",
         "-cudadevrt", "--cudadevrt", "-ldir", "--libdevice-directory", "-target-dir", "--target-directory",
         "-Xarchive", "--archive-options", "-Xfatbin", "--fatbin-options", "-opt-info", "--optimization-info",
         "-default-stream", "--default-stream", "-keep-dir", "--keep-dir", "-time", "--time", "-run-args", "--run-args",
         "-idp", "--input-drive-prefix", "-ddp", "--dependency-drive-prefix", "-dp", "--drive-prefix",
         "-m", "--machine",
         "-split-compile-extended", "--split-compile-extended", "-compress-mode", "--compress-mode", "-e", "--entries",
         "-hls", "--host-linker-script", "-aug-hls", "--augment-host-linker-script", "-qpp-config", "--qpp-config",
         "-ftemplate-depth", "--ftemplate-depth", "-ftemplate-backtrace-limit", "--ftemplate-backtrace-limit",
         "-frandom-seed", "--frandom-seed", "--fdevice-time-trace", "-fdevice-time-trace", "-jobserver", "--jobserver"),
        "ignored",
    ),
}  # fmt: skip

_SWITCHES = {
    **dict.fromkeys(("-use_fast_math", "--use_fast_math"), "--use_fast_math"),
    **dict.fromkeys(("-restrict", "--restrict"), "--restrict"),
    **dict.fromkeys(("-w", "--disable-warnings"), "-w"),
    **dict.fromkeys(("-extra-device-vectorization", "--extra-device-vectorization"), "--extra-device-vectorization"),
}

_IGNORED = re.compile(
    r"-O[0-3sz]?|-O(fast)?|--optimize(=.*)?|-g|-G|-c|-dc|-dw|-dlink|--device-[cw]|--device-link|--compile|--debug|-pg|-p|"
    r"--device-debug|--profile|-v|--verbose|--?dryrun|--?run|--link|--lib|-lib|-r|--relocatable-link|"
    r"-lineinfo|--generate-line-info|--?m(64|32)|--?(ptx|cubin|fatbin|optix-ir|ltoir)|-E|--preprocess|-M[MDGP]*|"
    r"--generate-(nonsystem-)?dependenc(y-targets|ies(-with-compile)?)|-k(eep)?|--keep|--?save-temps|--?W.*|"
    r"-f(PIC|pic|PIE|pie|openmp\S*|no-\S+|exceptions|permissive|visibility\S*|stack-\S+|lto\S*|diagnostics-\S+)|"
    r"--?expt-(relaxed-constexpr|extended-lambda)|--?extended-lambda|--?cuda|--?res-usage|--resource-usage|-s|--?shared|"
    r"-l.+|-L.+|--?forward-(unknown-(to-host-(compiler|linker)|opts))|--?allow-unsupported-compiler|-dlto|--lto|"
    r"--dlink-time-opt|-(no)?(dlink|comp\S+)|--no-(compress|device-link)|--?(source-in-ptx|src-in-ptx)|-march=.*|-mtune=.*|"
    r"--?(keep-device-functions|display-error-number|no-display-error-number|err-no|no-err-no|brief-diag(nostics)?)|"
    r"--?(objdir-as-tempdir|objtemp|clean(-targets)?|use-local-env|force-cl-env-setup|extensible-whole-program|ewp)|-pthread"
)
"""What device code is made the same without."""
_PTXAS_ALLOWED = re.compile(r"-O[0-3]|-v|-w|-(dlcm|dscm)=\w\w|--?(def-load-cache|def-store-cache)=\w\w|--?warn-[\w-]+")


TAKEN = (
    "-D", "-U", "-I", "-include", "--std", "--use_fast_math", "--fmad", "--ftz", "--prec-div", "--prec-sqrt",
    "--maxrregcount", "--restrict", "--ptxas-options", "--diag-suppress", "-w",
)  # fmt: skip
"""Flags that mean something to device code, in one of their spellings each."""


def complaint(flags: tuple[str, ...]) -> str:
    """What is wrong with flags that somebody wrote by hand: those that are not known; empty where all are."""
    unknown = translate(flags).unknown
    if not unknown:
        return ""
    said = "; ".join(f"`{flag}` {_problem(flag)}" for flag in unknown)
    return (
        f"compiler flags: {said}. Taken are {', '.join(TAKEN)}; what nvcc has for host code, linking and architectures "
        "changes nothing here"
    )


def _problem(flag: str) -> str:
    if flag in _VALUED:
        return "lacks its value"
    if not flag.startswith("-"):
        return "is no flag"
    bare = flag.partition("=")[0]
    near = difflib.get_close_matches(bare, (*_VALUED, *_SWITCHES), 1, 0.75)
    return f"is not known (did you mean `{near[0]}`?)" if near and near[0] != bare else "is not known"


def translate(flags: tuple[str, ...]) -> Flags:
    """Flags of an nvcc command line as NVRTC's. What means nothing to device code is left out without a word; what is
    not known, or lacks its value, is ``unknown``."""
    passed: list[str] = []
    folders: list[str] = []
    forced: list[str] = []
    unknown: list[str] = []
    rest = list(reversed(flags))
    while rest:
        flag = rest.pop()
        name, value, how = _split(flag, rest)
        if how and not value:
            unknown.append(flag)
        elif how == "define":
            passed.append(f"-D{value}")
        elif how == "undefine":
            passed.append(f"-U{value}")
        elif how == "folder":
            folders += value.split(",") if name.startswith("--") else [value]
        elif how == "forced":
            forced.append(value)
        elif how == "std":
            passed.append(f"--std={value.replace('gnu++', 'c++')}")
        elif how == "ptxas":
            for part in value.split(","):
                known = _PTXAS_ALLOWED.fullmatch(part)
                (passed if known else unknown).append(f"--ptxas-options={part}")
        elif how in ("maxrregcount", "fmad", "ftz", "prec-div", "prec-sqrt", "diag-suppress"):
            passed.append(f"--{how}={value}")
        elif flag in _SWITCHES:
            passed.append(_SWITCHES[flag])
        elif how != "ignored" and not _IGNORED.fullmatch(flag):
            unknown.append(flag)
    return Flags(tuple(passed), tuple(folders), tuple(forced), tuple(unknown))


def _split(flag: str, rest: list[str]) -> tuple[str, str, str]:
    """(name, value, treatment) of a flag that takes a value; the value is taken from ``rest`` where it stands apart."""
    name, equals, value = flag.partition("=")
    if equals and name in _VALUED:
        return name, value, _VALUED[name]
    if flag in _VALUED:
        how = _VALUED[flag]
        there = rest and (how in ("ignored", "ptxas") or not rest[-1].startswith("-"))
        return flag, rest.pop() if there else "", how
    for short in ("-D", "-U", "-I"):
        if flag.startswith(short):
            return short, flag[len(short) :], _VALUED[short]
    return flag, "", ""


def nvrtc_options(options: Options, passed: tuple[str, ...]) -> tuple[str, ...]:
    """The whole option list but for include folders. Ours come last: for a repeated option NVRTC takes the last."""
    ours = [f"--gpu-architecture={options.arch}", "-lineinfo" if options.optimised else "-G", "--ptxas-options=-v"]
    kept = [flag for flag in passed if options.fmad or not flag.startswith("--fmad=")]
    return (*kept, *ours, *([] if options.fmad else ["--fmad=false"]))
