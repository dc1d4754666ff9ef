"""Numbers from the command line: asked for, unless the program's own Makefile says what it is run with."""

import re
from typing import TypeGuard

from tree_sitter import Node

from agent.workload.expression import number
from agent.workload.static.state import Facts, plain_name
from agent.workload.static.values import Scalar, Text, Unknown, Value
from agent.workload.workload import Origin

MARK = "argv:"
"""Begins the reason of a number that only the command line gives; the name it is kept under becomes a root."""

INTEGERS = frozenset({"atoi", "atol", "atoll", "strtol", "strtoul", "strtoull", "stoi", "stol", "stoul", "stoull"})
FLOATS = frozenset({"atof", "strtod", "stof", "strtof", "stod"})
PARSERS = INTEGERS | FLOATS
ARGV = Unknown("it is the command line (`argv`)")
"""What ``argv`` is in ``main``, and in the functions that it is handed to."""

_ARGUMENT = re.compile(r"argv\s*\[\s*(\d+)\s*\]")
_COMES = "it comes from the command line"
# Whatever may make argv[i] another argument than the i-th: the pointer is moved, or the array is written or permuted.
_MOVED = re.compile(
    rb"(\+\+|--|(?<!&)&)\s*argv\b|\bargv\s*(\[[^\]]*\]\s*)?(\+|-|=(?!=))|\bgetopt_long|\bargc\s*(--|-=)|--\s*argc\b"
)
# What C reads from other words (octal, hexadecimal, the 1 of "1e3") differs from function to function: asked for.
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_WIDE = 63
_NARROW = 31


def count(facts: Facts) -> Scalar:
    """``argc``: of the run in the Makefile, or of one without arguments."""
    return Scalar(number(1 + len(facts.command.arguments) if facts.command is not None else 1))


def passed(facts: Facts) -> bool:
    """Whether the Makefile runs the program with any argument."""
    return facts.command is not None and bool(facts.command.arguments)


def parsed(given: list[Node], held: Value, function: str, node: Node, facts: Facts) -> Value:
    """``atoi(argv[1])`` and its kin, of the text ``held``.

    The number itself where the Makefile tells it, for arithmetic to go on with.
    """
    text = facts.node_text(given[0]) if given else ""
    reason = f"{_COMES} (`{text}`)"
    word = held.text if isinstance(held, Text) else None
    if word is not None and isinstance(held, Text) and held.argument:
        facts.parsed_line = facts.line(node)
    if function in FLOATS:
        told = word is not None and _DECIMAL.fullmatch(word) is not None
        return Scalar(number(float(word))) if told and word is not None else Unknown(reason, facts.line(node))
    based = len(given) > 2 and facts.node_text(given[2]).strip() != "10"
    found = None if word is None or based else whole(word, _NARROW if function in ("atoi", "stoi") else _WIDE)
    if found is None:
        return Unknown(MARK + reason, facts.line(node))
    return Scalar(number(found), "i32" if function in ("atoi", "stoi") else "u64" if "u" in function else "i64")


def whole(word: str, bits: int = _NARROW) -> int | None:
    """The number that a word is, where all of C's functions read the same; None where they do not."""
    told = int(word) if _WHOLE.fullmatch(word) else None
    return told if told is not None and -(2**bits) <= told < 2**bits else None


def is_argv(value: Value) -> bool:
    """Whether a value is the array of the command line's words, under whatever name."""
    return value == ARGV


def is_argument(value: Unknown) -> bool:
    """Whether a value is a word of the command line that is not known."""
    return value.reason.startswith(_COMES)


def word(index_node: Node, index: Value, facts: Facts) -> Value:
    """``argv[i]``: the word where the Makefile tells it."""
    place = index.expression.constant if isinstance(index, Scalar) else None
    unknown = Unknown(f"{_COMES} (`argv[{facts.node_text(index_node)}]`)", facts.line(index_node))
    text = facts.document.text
    if facts.command is None or facts.moved or not isinstance(place, int) or _MOVED.search(text):
        return unknown
    if index_node.type == "number_literal" and b"getopt" in text:
        return unknown  # it moves what is no option to the end
    if not 1 <= place <= len(facts.command.arguments):
        return unknown
    return Text(facts.command.arguments[place - 1], argument=True)


def is_asked(value: Value) -> TypeGuard[Unknown]:
    """Whether a value is a number that only the command line gives."""
    return isinstance(value, Unknown) and value.reason.startswith(MARK)


def root(name: str, value: Unknown, facts: Facts) -> Scalar:
    """A number of the command line under the name of the variable that keeps it, to be asked for."""
    return facts.root(name, None, Origin("argv", value.line), value.reason.removeprefix(MARK))


def origin(text: str, line: int, facts: Facts) -> Origin:
    """Where a variable's first value comes from, by how it is written: the run in the Makefile, the default for an
    argument that is not passed, or a number that the program states."""
    if "argc" not in text and "argv" not in text:
        if facts.parsed_line is not None and line <= facts.parsed_line <= line + 2 and facts.command is not None:
            return Origin("run line", line, facts.command.where)
        return Origin("literal", line)
    told = [int(index) for index in _ARGUMENT.findall(text)]
    if facts.command is None or (told and min(told) > len(facts.command.arguments)):
        return Origin("argv default", line)
    return Origin("run line", line, facts.command.where)


def answered(name: str, value: Value, origin: Origin, facts: Facts) -> bool:
    """Whether the user states the number that the command line would give a variable, directly or by arithmetic."""
    if plain_name(name) not in facts.answers or not isinstance(value, Scalar):
        return False
    kinds = {facts.roots[part].origin.kind for part in value.expression.names & facts.roots.keys()} | {origin.kind}
    return bool(kinds & {"run line", "argv"})
