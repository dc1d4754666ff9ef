"""Numbers from the command line: asked for, unless the program's own Makefile says what it is run with."""

import re

from tree_sitter import Node

from agent.workload.expression import number
from agent.workload.static.state import Facts
from agent.workload.static.values import Scalar, Unknown, Value
from agent.workload.workload import Origin

MARK = "argv:"
"""Begins the reason of a number that only the command line gives; the name it is kept under becomes a root."""

INTEGERS = frozenset({"atoi", "atol", "atoll", "strtol", "strtoul", "strtoull", "stoi", "stol", "stoul", "stoull"})
FLOATS = frozenset({"atof", "strtod", "stof", "strtof", "stod"})
PARSERS = INTEGERS | FLOATS
_ARGUMENT = re.compile(r"argv\s*\[\s*(\d+)\s*\]")


def count(facts: Facts) -> Scalar:
    """``argc``: of the run in the Makefile, or of one without arguments."""
    return Scalar(number(1 + len(facts.command.arguments) if facts.command is not None else 1))


def parsed(given: list[Node], function: str, node: Node, facts: Facts) -> Value:
    """``atoi(argv[1])`` and its kin."""
    text = facts.node_text(given[0]) if given else ""
    told = _told(text, facts)
    reason = f"it comes from the command line (`{text}`)"
    if function in FLOATS:
        return Unknown(reason, facts.line(node)) if told is None else Scalar(number(float(told)))
    return Unknown(MARK + reason, facts.line(node))


def root(name: str, value: Unknown, facts: Facts) -> Scalar:
    """A number of the command line under the name of the variable that keeps it: known where the Makefile tells it and
    the user says nothing else, else without value, to be asked for."""
    why = value.reason.removeprefix(MARK)
    told = _told(why, facts)
    if told is None or facts.command is None or name in facts.answers:
        return facts.root(name, None, Origin("argv", value.line), why)
    return facts.root(name, int(told), Origin("run line", value.line, facts.command.where))


def _told(text: str, facts: Facts) -> float | None:
    """The number that the Makefile passes for the one ``argv[i]`` in a text."""
    found = _ARGUMENT.search(text)
    if found is None or facts.command is None or not 1 <= int(found[1]) <= len(facts.command.arguments):
        return None
    try:
        return float(facts.command.arguments[int(found[1]) - 1])
    except ValueError:
        return None
