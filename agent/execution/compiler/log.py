"""NVRTC's log as values: diagnostics on the user's own lines, and what ptxas says of each kernel's resources."""

import re
from collections.abc import Iterator

from agent.execution.compiler.result import Diagnostic, Resources

_MESSAGE = re.compile(
    r"^(?:(?P<file>[^\n]+?)\((?P<line>\d+)\): )?"
    r"(?P<severity>catastrophic error|error|warning|remark|note)(?: #\d+(?:-D)?)?: (?P<text>.*)$"
)
_PTXAS = re.compile(
    r"^\s*ptxas\s+(?:[^,;:]+, line (?P<line>\d+); )?(?P<severity>fatal|error|warning)\s*:\s*(?P<text>.*)$"
)
_OTHER = re.compile(r"^(?:nvrtc|Command-line) ?(?:: )?(?P<severity>error|warning): (?P<text>.*)$", re.IGNORECASE)
_NAME_MAP = "__nv_name_map"
_SEVERITY = {"catastrophic error": "error", "fatal": "error", "remark": "note"}


def diagnostics(log: str, ptx: str = "") -> tuple[Diagnostic, ...]:
    """Every error, warning and note of the log, in order; the source excerpts that NVRTC repeats are left out.

    Where a template was being instantiated, that is said in the same message. What ptxas says of a line of ``ptx`` is
    moved to the line of the source that it came from.
    """
    found: list[Diagnostic] = []
    lines = log.splitlines()
    for index, line in enumerate(lines):
        matched = _MESSAGE.match(line) or _OTHER.match(line)
        if matched is not None:
            groups = matched.groupdict()
            file, number = groups.get("file") or "", int(groups.get("line") or 0)
            text = _explained(groups["text"].strip()) + _context(lines[index + 1 :])
            if file == _NAME_MAP:  # about a name expression, not about any line of the user's
                file, number, text = "", 0, _of_name(text, lines[index + 1 : index + 2])
            found.append(Diagnostic(_severity(groups["severity"]), file, number, text))
            continue
        matched = _PTXAS.match(line)
        if matched is not None and "Conflicting options" not in line:
            file, number = _source_line(ptx, int(matched["line"])) if matched["line"] else ("", 0)
            found.append(Diagnostic(_severity(matched["severity"]), file, number, f"ptxas: {matched['text'].strip()}"))
    return tuple(dict.fromkeys(found))


_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')


def _source_line(ptx: str, number: int) -> tuple[str, int]:
    """File and line that line ``number`` of the PTX came from, by the last ``.loc`` before it; ("", 0) if unknown."""
    lines = ptx.splitlines()
    marks = [matched for line in lines[:number] if (matched := _LOC.match(line))]
    if not marks:
        return "", 0
    files = {matched[1]: matched[2] for line in lines if (matched := _FILE.match(line))}
    return files.get(marks[-1][1], ""), int(marks[-1][2])


def _explained(text: str) -> str:
    """A message that says too little, with its reason."""
    kind = re.fullmatch(r"(texture|surface) is not a template", text)
    if kind is None:
        return text
    return f"{text}: {kind[1]} references were removed in CUDA 12; pass a cuda{kind[1].title()}Object_t instead"


def _severity(word: str) -> str:
    return _SEVERITY.get(word.lower(), word.lower())


def _of_name(text: str, excerpt: list[str]) -> str:
    name = excerpt[0].strip().removeprefix("#pragma nv_mangled_name").strip() if excerpt else ""
    return f"no kernel can be made of the name `{name}`: {text}" if name else text


def _context(following: list[str]) -> str:
    """The "detected during" lines of a message, joined to one line."""
    words: list[str] = []
    for line in following:
        stripped = line.strip()
        if _MESSAGE.match(line) or _PTXAS.match(line) or not stripped:
            break
        if words or stripped.startswith("detected during"):
            words.append(stripped)
    return " (" + " ".join(words) + ")" if words else ""


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?P<rest>.*)")


def resources(log: str) -> dict[str, Resources]:
    """What ``--ptxas-options=-v`` reports, by the kernel's name in the PTX."""
    stacks: dict[str, tuple[int, int, int]] = {}
    used: dict[str, tuple[int, str]] = {}
    for kind, name, matched in _reports(log):
        if kind == "stack":
            stacks[name] = (int(matched[1]), int(matched[2]), int(matched[3]))
        else:
            used[name] = (int(matched[1]), matched["rest"])
    return {
        name: Resources(
            registers=registers,
            spill_stores=stacks.get(name, (0, 0, 0))[1],
            spill_loads=stacks.get(name, (0, 0, 0))[2],
            stack=max(stacks.get(name, (0, 0, 0))[0], _sum(r"(\d+) bytes cumulative stack size", rest)),
            static_shared=_sum(r"(\d+)(?:\+(\d+))? bytes smem", rest),
            barriers=_sum(r"used (\d+) barriers", rest),
            constant=_sum(r"(\d+) bytes cmem\[\d+\]", rest),
        )
        for name, (registers, rest) in used.items()
    }


def _reports(log: str) -> Iterator[tuple[str, str, "re.Match[str]"]]:
    entry = function = ""
    for line in log.splitlines():
        if matched := _ENTRY.search(line):
            entry = matched["name"]
        elif matched := _PROPERTIES.search(line):
            function = matched["name"]
        elif matched := _STACK.search(line):
            yield "stack", function, matched
        elif matched := _USED.search(line):
            yield "used", entry, matched


def _sum(pattern: str, text: str) -> int:
    return sum(int(number) for matched in re.finditer(pattern, text) for number in matched.groups() if number)
