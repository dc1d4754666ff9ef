"""``#if`` groups that cut a construct in two: in a parameter list, or around the specifiers of a function.

The parser reads the branch that a compiler of device code would take as far as this file tells (a macro that it does
not define is not defined), and neither the directives nor the other branches. Only groups inside one function or its
head are looked at, so that what is read depends on nothing outside it.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from agent.source.lexing import Directive, Macro, without_comments
from agent.source.misread import PartLike
from agent.source.span import Span

_OPENS = frozenset({"if", "ifdef", "ifndef"})
_TURNS = frozenset({"elif", "else"})
_HEAD = re.compile(
    rb'(?:\s|__\w+__\s*(?:\((?:[^(){};]|\([^(){};]*\)){0,200}\))?|static|inline|extern(?:\s*"+)?|constexpr|void|'
    rb"template\s*<[^{};()]{0,200}>|[A-Z][A-Z0-9_]*_EXPORT|CUDA_CALLABLE\w*){1,60}"
)
_STATEMENT = re.compile(rb"\s*(?:(?:else\s+)?(?:if|while|for)\s*\([^;{}]{1,400}\)|else)\s*")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_BUILTIN = {"__CUDACC__": "1", "__CUDA_ARCH__": "900", "__cplusplus": "201703", "__NVCC__": "1", "__GNUC__": "12"}
_LONGEST = 400
_DEPTH = 8


@frozen
class Group:
    """The directives of one ``#if``, in order; the last is ``#endif``."""

    directives: tuple[Directive, ...]

    @property
    def span(self) -> Span:
        return Span(self.directives[0].span.start, self.directives[-1].span.end)

    def branches(self) -> Iterator[tuple[Directive, Span]]:
        for one, following in zip(self.directives, self.directives[1:], strict=False):
            yield one, Span(one.span.end, following.span.start)


def split_groups(part: PartLike) -> Iterator[tuple[Span, tuple[Span, ...]]]:
    """Each group that cuts a construct, with what of it the parser does not read."""
    groups = tuple(_groups(part.directives))
    if not groups:
        return
    inside = _parentheses(part)
    changes = part.changes
    ends = changes[1::2]
    values: Mapping[str, str] | None = None
    for group in groups:
        span = group.span
        if bisect_left(ends, span.start) != bisect_left(ends, span.end):
            continue  # a function ends in it
        parts = [part.code[each.start : each.end] for _, each in group.branches()]
        within = _is_within(inside, span)
        in_code = bisect_right(changes, span.start) % 2 == 1
        pattern = _STATEMENT if in_code else _HEAD
        if not within and not all(not each.strip() or pattern.fullmatch(each) for each in parts):
            continue
        if not any(each.strip() for each in parts) or not all(map(_is_balanced, parts)):
            continue
        values = values if values is not None else _values(part.macros)
        kept = _taken(group, values)
        hidden = [one.span for one in group.directives]
        hidden += [each for one, each in group.branches() if one is not kept]
        yield span, tuple(sorted(hidden))


def _groups(directives: Sequence[Directive]) -> Iterator[Group]:
    stack: list[list[Directive]] = []
    for one in directives:
        keyword = one.keyword
        if keyword in _OPENS:
            stack.append([one])
        elif keyword in _TURNS and stack:
            stack[-1].append(one)
        elif keyword == "endif" and stack:
            yield Group((*stack.pop(), one))


def _parentheses(part: PartLike) -> tuple[list[int], list[int]]:
    """Where outermost parentheses begin, and where they end."""
    starts: list[int] = []
    ends: list[int] = []
    for opening, closing in sorted(part.closing.items()):
        if part.code[opening] == 0x28 and (not ends or opening > ends[-1]):
            starts.append(opening)
            ends.append(closing)
    return starts, ends


def _is_within(inside: tuple[list[int], list[int]], span: Span) -> bool:
    place = bisect_right(inside[0], span.start) - 1
    return place >= 0 and inside[1][place] >= span.end


def _is_balanced(code: bytes) -> bool:
    return code.count(b"(") == code.count(b")") and code.count(b"{") == code.count(b"}")


def _values(macros: Sequence[Macro]) -> dict[str, str]:
    return _BUILTIN | {macro.name: macro.body for macro in macros if macro.parameters is None}


def _taken(group: Group, values: Mapping[str, str]) -> Directive | None:
    """The directive of the branch that is compiled, None where none is."""
    for one, _ in group.branches():
        text = without_comments(one.text).decode("utf-8", "replace")
        rest = text.partition(one.keyword)[2].strip()
        if one.keyword == "else" or (one.keyword == "ifdef" and rest in values):
            return one
        if one.keyword == "ifndef" and rest not in values:
            return one
        if one.keyword in ("if", "elif") and _is_true(rest, values):
            return one
    return None


def _is_true(condition: str, values: Mapping[str, str]) -> bool:
    """What the preprocessor makes of a condition; False for what is not understood."""
    if len(condition) > _LONGEST:
        return False
    text = _DEFINED.sub(lambda match: "1" if (match[1] or match[2]) in values else "0", condition)
    for _ in range(_DEPTH):
        text = _WORD.sub(lambda match: match[0] if match[0] in _KEPT else f"({values.get(match[0], '0') or '0'})", text)
        if not set(_WORD.findall(text)) - _KEPT or len(text) > 4 * _LONGEST:
            break
    text = _SUFFIX.sub(r"\1", text).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    try:
        return bool(_value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return False


_KEPT = frozenset({"and", "or", "not"})


def _value(node: ast.expr) -> int:
    """Raises ValueError for anything but comparisons and logic over whole numbers."""
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.BoolOp(op=ast.And(), values=parts):
            return int(all(_value(part) for part in parts))
        case ast.BoolOp(op=ast.Or(), values=parts):
            return int(any(_value(part) for part in parts))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _value(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Compare(left=left, ops=[compared], comparators=[right]):
            return int(_compared(compared, _value(left), _value(right)))
        case _:
            raise ValueError(ast.dump(node))


def _compared(how: ast.cmpop, left: int, right: int) -> bool:
    match how:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case _:
            raise ValueError("no comparison of numbers")
