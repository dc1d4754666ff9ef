"""Which branches of ``#if`` a program is compiled with, as far as its own files and its Makefile tell."""

import re
from collections.abc import Mapping

from attrs import define, field, frozen

from agent.source.lexing import Directive, Macro, macro_of, spaces, without_comments
from agent.workload.expression import ExpressionError
from agent.workload.expression import parse as parse_expression

# What nvcc defines for host code on Linux, and what only other compilers and systems do.
_PREDEFINED = {"__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703", "__linux__": "1"}
_NEVER = frozenset(
    {"_WIN32", "WIN32", "_WIN64", "_MSC_VER", "__APPLE__", "__HIPCC__", "__HIP__", "__HIP_PLATFORM_AMD__", "__INTEL__"}
)
_COMPILERS = re.compile(r"__\w+|_OPENMP|CUDA(RT)?_VERSION")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_DEPTH = 8


@frozen
class Definition:
    """What a name means from ``offset`` on: a macro, nothing (``macro`` is None), or, where ``certain`` is false,
    something that depends on how the program is built."""

    offset: int
    macro: Macro | None
    certain: bool = True


@frozen
class BuildFlag:
    """``-Dname=body`` of a Makefile; ``certain`` where every build has it. ``where`` names file and line. ``stated``:
    it is of the settings or of ``compile_commands.json``, with which each file is compiled anyway."""

    name: str
    body: str
    where: str
    certain: bool
    stated: bool = False


@define
class _Frame:
    """An ``#if``: whether its condition was decided, one of its branches was taken, and the present one is compiled."""

    known: bool
    taken: bool
    active: bool


@define
class Conditionals:
    """Follows the directives of files in the order in which a compiler meets them."""

    flags: Mapping[str, BuildFlag] = field(factory=dict)
    history: dict[str, list[Definition]] = field(factory=dict)
    frames: list[_Frame] = field(factory=list)
    guard: str = ""

    @property
    def active(self) -> bool:
        return all(frame.active for frame in self.frames)

    @property
    def certain(self) -> bool:
        """Whether what stands here is compiled in every build."""
        return all(frame.known for frame in self.frames)

    def directive(self, directive: Directive, offset: int, following: Directive | None) -> bytes:
        """Take note of a directive that stands at ``offset`` of the joined text; what is left of its text there (same
        length): nothing of a condition that is decided."""
        keyword, text = directive.keyword, directive.text
        if keyword in ("if", "ifdef", "ifndef"):
            return self._open(directive, following)
        if keyword in ("elif", "else", "endif"):
            return self._next(directive) if self.frames else text
        if not self.active:
            return spaces(text)
        if keyword in ("define", "undef"):
            self._define(directive, offset)
        return text

    def _open(self, directive: Directive, following: Directive | None) -> bytes:
        if not self.active:
            self.frames.append(_Frame(True, True, False))
            return spaces(directive.text)
        truth = self._truth(directive, following)
        self.frames.append(_Frame(truth is not None, truth is True, truth is not False))
        return directive.text if truth is None else spaces(directive.text)

    def _next(self, directive: Directive) -> bytes:
        frame, keyword = self.frames[-1], directive.keyword
        if keyword == "endif":
            self.frames.pop()
            return spaces(directive.text) if frame.known else directive.text
        if not frame.known:
            return directive.text
        outer = all(other.active for other in self.frames[:-1])
        if frame.taken or not outer:
            frame.active = False
            return spaces(directive.text)
        truth = True if keyword == "else" else self._truth(directive, None)
        frame.known, frame.taken, frame.active = truth is not None, truth is True, truth is not False
        if truth is None:  # the first branch that may be compiled: the conditional begins here
            return directive.text.replace(b"elif", b"if  ", 1)
        return spaces(directive.text)

    def _define(self, directive: Directive, offset: int) -> None:
        macro = macro_of(directive)
        words = without_comments(directive.text).split()
        name = macro.name if macro is not None else words[1].decode("utf-8", "replace") if len(words) > 1 else ""
        self.history.setdefault(name, []).append(Definition(offset, macro, self.certain))

    def _truth(self, directive: Directive, following: Directive | None) -> bool | None:
        text = without_comments(directive.text).decode("utf-8", "replace").replace("\\\n", " ")
        condition = re.sub(r"^#\s*\w+", "", text).strip()
        if directive.keyword == "ifdef":
            return self._is_defined(condition)
        if directive.keyword == "ifndef":
            guards = following is not None and (made := macro_of(following)) is not None and made.name == condition
            held = self._is_defined(condition)
            return (
                True if held is None and guards and condition not in self.flags else None if held is None else not held
            )
        return self._evaluated(condition)

    def _is_defined(self, name: str) -> bool | None:
        told = self.meaning(name)
        if told is not None:
            return (told.macro is not None) if told.certain else None
        if name in _NEVER:
            return False
        return None if _COMPILERS.fullmatch(name) else False

    def meaning(self, name: str) -> Definition | None:
        """The last that was said about a name; None where nothing was."""
        if name in self.history:
            return self.history[name][-1]
        if name in self.flags:
            flag = self.flags[name]
            return Definition(0, Macro(name, None, flag.body), flag.certain)
        return Definition(0, Macro(name, None, _PREDEFINED[name])) if name in _PREDEFINED else None

    def _evaluated(self, condition: str) -> bool | None:
        unknown = False

        def told(match: re.Match[str]) -> str:
            nonlocal unknown
            held = self._is_defined(match[1] or match[2])
            unknown = unknown or held is None
            return str(int(bool(held)))

        text = self._expanded(_DEFINED.sub(told, condition), _DEPTH)
        if unknown or text is None:
            return None
        try:
            return bool(parse_expression(text).evaluate({}))
        except ExpressionError:
            return None

    def _expanded(self, text: str, depth: int) -> str | None:
        """A condition with its macros filled in, other names as 0; None where one of them is not known."""
        result, at = "", 0
        for match in _NAME.finditer(text):
            held, meaning = self._is_defined(match[0]), self.meaning(match[0])
            if held is None or depth == 0:
                return None
            body: str | None = "0"
            if held and meaning is not None and meaning.macro is not None:
                if meaning.macro.parameters is not None:
                    return None
                body = self._expanded(meaning.macro.body, depth - 1)
            if body is None:
                return None
            result, at = result + text[at : match.start()] + f"({body})", match.end()
        return result + text[at:]
