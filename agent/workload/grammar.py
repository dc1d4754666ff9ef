"""Text -> Expression: a tokenizer and a precedence climber, for text that nobody vetted."""

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from agent.workload import arithmetic, dtypes
from agent.workload.expression import PRECEDENCE, Expression, ExpressionError, build, name, number, record

MAX_LENGTH = 2000
MAX_ARGUMENT = 16_000
_MAX_NESTING = 60

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<member> \.\s*[A-Za-z_]\w*\s*=(?!=) )
    | (?P<number> 0[xX][0-9a-fA-F']+[uUlLzZ]*
                | 0[bB][01']+[uUlLzZ]*
                | (?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?[fFuUlLzZ]* )
    | (?P<name> [A-Za-z_]\w*(?:\s*(?:::|\.|->)\s*[A-Za-z_]\w*)* )
    | (?P<op> \|\||&&|==|!=|<=|>=|<<|>>|[-+*/%<>!~?:(),&|^{}] )
    )""",
    re.VERBOSE,
)

_KNOWN = {
    "true": number(1),
    "false": number(0),
    "nullptr": number(0),
    "NULL": number(0),
    "INFINITY": number(float("inf")),
}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def parse_text(text: str) -> Expression:
    """The expression that ``text`` writes. Raises ExpressionError with the column of the first fault."""
    return _whole_text(text, MAX_LENGTH, lambda reader: reader.expression(1))


def parse_argument(text: str) -> Expression:
    """The same for what a launch passes, which may be members of a struct: ``{.scale = 0.5, .data = x}``."""
    longest = MAX_ARGUMENT if text.lstrip().startswith("{") else MAX_LENGTH
    return _whole_text(text, longest, lambda reader: reader.argument())


def _whole_text(text: str, longest: int, read: "Callable[[_Reader], Expression]") -> Expression:
    if len(text) > longest:
        raise ExpressionError(f"the expression has {len(text)} characters; at most {longest} are read")
    reader = _Reader(text)
    if reader.kind == "end":
        raise ExpressionError("expected an expression, found nothing")
    result = read(reader)
    if reader.kind != "end":
        reader.fail("expected an operator or the end")
    return result


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match:
            column = position + len(text[position:]) - len(text[position:].lstrip())
            raise ExpressionError(f"`{text[column]}` has no meaning in an expression (column {column + 1} of `{text}`)")
        kind = str(match.lastgroup)
        token = re.sub(r"\s+", "", match[kind])
        found.append(_Token(kind, token, match.start(kind)))
        position = match.end()
    return [*found, _Token("end", "", len(text))]


class _Reader:
    """A cursor over the tokens; each method reads one construct."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at, self.nesting = text, _tokens(text), 0, 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    @property
    def current(self) -> str:
        return self.tokens[self.at].text

    def fail(self, expected: str) -> NoReturn:
        found = f"`{self.current}`" if self.current else "the end"
        raise ExpressionError(f"{expected}, found {found} (column {self.tokens[self.at].start + 1} of `{self.text}`)")

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, text: str) -> None:
        if self.current != text:
            self.fail(f"expected `{text}`")
        self.at += 1

    def argument(self) -> Expression:
        if self.current != "{":
            return self.expression(1)
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise ExpressionError("the struct is too deeply nested")
        self.take()
        found: list[tuple[str, Expression]] = []
        while self.current != "}":
            if found:
                self.expect(",")
                if self.current == "}":
                    break
            found.append(self.member())
        self.take()
        self.nesting -= 1
        told = [called for called, _ in found if called]
        if len(told) not in (0, len(found)):
            raise ExpressionError(f"either all members have a name or none has one in `{self.text}`")
        if len(set(told)) < len(told):
            raise ExpressionError(f"a member is told twice in `{self.text}`")
        return record(found)

    def member(self) -> tuple[str, Expression]:
        called = self.take().strip(".=") if self.kind == "member" else ""
        return called, self.argument()

    def expression(self, level: int) -> Expression:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise ExpressionError("the expression is too deeply nested; give it a simpler form")
        left = self.unary()
        while self.kind == "op" and PRECEDENCE.get(self.current, 0) >= level:
            op = self.take()
            left = self.conditional(left) if op == "?" else build(op, (left, self.expression(PRECEDENCE[op] + 1)))
        self.nesting -= 1
        return left

    def conditional(self, condition: Expression) -> Expression:
        chosen = self.expression(1)
        self.expect(":")
        return build("?", (condition, chosen, self.expression(1)))

    def unary(self) -> Expression:
        if self.kind == "op" and self.current in "-+!~":
            op = self.take()
            operand = self.nested_unary()
            return operand if op == "+" else build({"-": "neg", "!": "not", "~": "~"}[op], (operand,))
        cast = self.cast_type()
        return build("cast", (self.nested_unary(),), cast) if cast else self.primary()

    def nested_unary(self) -> Expression:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise ExpressionError("the expression is too deeply nested; give it a simpler form")
        operand = self.unary()
        self.nesting -= 1
        return operand

    def cast_type(self) -> str | None:
        """The type in ``(type)`` at the cursor, which moves past it; None, unmoved, where there is none."""
        if self.current != "(":
            return None
        found = self.type_at(self.at + 1, ")")
        if found:
            self.at = found[1]
        return found[0] if found else None

    def type_at(self, start: int, closing: str) -> tuple[str, int] | None:
        words, index = [], start
        while self.tokens[index].kind == "name":
            words.append(self.tokens[index].text)
            index += 1
        if not words or self.tokens[index].text != closing:
            return None
        dtype = _type(" ".join(words))
        return (dtype, index + 1) if dtype else None

    def primary(self) -> Expression:
        if self.kind == "number":
            return self.number()
        if self.kind == "name":
            return self.named()
        if self.current != "(":
            self.fail("expected a number, a name or `(`")
        self.take()
        inner = self.expression(1)
        self.expect(")")
        return inner

    def number(self) -> Expression:
        try:
            literal = _literal(self.current)
        except (ValueError, OverflowError):
            self.fail("expected a number")
        self.take()
        return literal

    def named(self) -> Expression:
        text = self.take()
        if text == "sizeof":
            return self.size()
        if text == "static_cast":
            target = self.template_type()
            return build("cast", self.arguments(text, 1), target)
        if self.current == "<" and _bare(text) in arithmetic.FUNCTIONS and self.type_at(self.at + 1, ">"):
            return self.call(text, self.template_type())
        if self.current == "(":
            dtype = _type(text)
            return build("cast", self.arguments(text, 1), dtype) if dtype else self.call(text, None)
        return _KNOWN.get(text) or name(text)

    def template_type(self) -> str:
        found = self.type_at(self.at + 1, ">") if self.current == "<" else None
        if not found:
            self.fail("expected a scalar type in `<>`")
        self.at = found[1]
        return found[0]

    def size(self) -> Expression:
        found = self.type_at(self.at + 1, ")") if self.current == "(" else None
        if not found:
            self.fail("`sizeof` needs a scalar or vector type in parentheses (write the bytes of a struct as a number)")
        self.at = found[1]
        return build("sizeof", (), found[0])

    def call(self, text: str, convert: str | None) -> Expression:
        bare = _bare(text)
        if bare not in arithmetic.FUNCTIONS:
            raise ExpressionError(
                f"`{text}` is not a known function; known are {', '.join(sorted(arithmetic.FUNCTIONS))}"
            )
        arguments = self.arguments(text, arithmetic.parameters(bare))
        if convert:
            arguments = tuple(build("cast", (argument,), convert) for argument in arguments)
        return build("call", arguments, bare)

    def arguments(self, text: str, count: int) -> tuple[Expression, ...]:
        self.expect("(")
        found = [self.expression(1)]
        while self.current == ",":
            self.take()
            found.append(self.expression(1))
        self.expect(")")
        if len(found) != count:
            raise ExpressionError(
                f"`{text}` takes {count} argument{'s' if count > 1 else ''}, {len(found)} given in `{self.text}`"
            )
        return tuple(found)


def _bare(text: str) -> str:
    return text.removeprefix("std::").removeprefix("::")


def _type(text: str) -> str | None:
    found = dtypes.from_c_type(text)
    return found or (text if dtypes.is_dtype(text) else None)


def _literal(text: str) -> Expression:
    digits = text.replace("'", "").lower()
    if digits.startswith(("0x", "0b")):
        return number(_whole(digits.rstrip("ulz"), 16 if digits[1] == "x" else 2))
    bare = digits.rstrip("fulz")
    suffix = digits[len(bare) :]
    if "." in bare or "e" in bare or "f" in suffix:
        value = float(bare)
        if value == float("inf"):
            raise ValueError(text)
        return number(arithmetic.single(value), True) if "f" in suffix else number(value)
    return number(_whole(bare, 8 if len(bare) > 1 and bare.startswith("0") else 10))


def _whole(digits: str, radix: int) -> int:
    value = int(digits, radix)
    if value >= 2**64:
        raise ValueError(digits)
    return value
