"""Numbers from the command line: asked for, unless the program's own Makefile says what it is run with."""

import re
from typing import TypeGuard

from tree_sitter import Node

from agent.workload.expression import number
from agent.workload.static.state import Facts, plain_name
from agent.workload.static.values import Scalar, Unknown, Value
from agent.workload.workload import Origin

MARK = "argv:"
"""Begins the reason of a number that only the command line gives; the name it is kept under becomes a root."""

INTEGERS = frozenset({"atoi", "atol", "atoll", "strtol", "strtoul", "strtoull", "stoi", "stol", "stoul", "stoull"})
FLOATS = frozenset({"atof", "strtod", "stof", "strtof", "stod"})
PARSERS = INTEGERS | FLOATS
ARGV = Unknown("it is the command line (`argv`)")
"""What ``argv`` is in ``main``, and in the functions that it is handed to."""

_ARGUMENT = re.compile(r"argv\s*\[\s*(\d+)\s*\]")
# Whatever may make argv[i] another argument than the i-th: the pointer is moved, or the array is written or permuted.
_MOVED = re.compile(
    rb"(\+\+|--|(?<!&)&)\s*argv\b|\bargv\s*(\[[^\]]*\]\s*)?(\+|-|=(?!=))|\bgetopt|\bargc\s*(--|-=)|--\s*argc\b"
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


def parsed(given: list[Node], function: str, node: Node, facts: Facts, state: dict[int, Value]) -> Value:
    """``atoi(argv[1])`` and its kin: the number itself where the Makefile tells it, for arithmetic to go on with."""
    text = facts.node_text(given[0]) if given else ""
    reason = f"it comes from the command line (`{text}`)"
    word = _word(text, facts, state)
    if function in FLOATS:
        told = word is not None and _DECIMAL.fullmatch(word) is not None
        return Scalar(number(float(word))) if told and word is not None else Unknown(reason, facts.line(node))
    based = len(given) > 2 and facts.node_text(given[2]).strip() != "10"
    whole = None if word is None or based or _WHOLE.fullmatch(word) is None else int(word)
    bits = _NARROW if function in ("atoi", "stoi") else _WIDE
    if whole is None or not -(2**bits) <= whole < 2**bits:
        return Unknown(MARK + reason, facts.line(node))
    return Scalar(number(whole))


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


def _word(text: str, facts: Facts, state: dict[int, Value]) -> str | None:
    """What the Makefile passes for ``argv[i]``, where a text is that and nothing else."""
    found = _ARGUMENT.fullmatch(text.strip())
    if found is None or facts.command is None or not 1 <= int(found[1]) <= len(facts.command.arguments):
        return None
    cell = facts.find("argv")
    if cell is None or state.get(cell) != ARGV or _MOVED.search(facts.document.text):
        return None
    return facts.command.arguments[int(found[1]) - 1]
