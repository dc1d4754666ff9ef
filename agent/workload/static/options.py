"""Text that a program compares and parses: literals, the words of its command line, and ``getopt`` over these."""

from agent.workload.expression import number
from agent.workload.static import arguments, calls, storing
from agent.workload.static import evaluate as ev
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ONE, Ref, Scalar, Text, Unknown, Value
from agent.workload.workload import Origin

ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"'}


def literal(text: str, line: int) -> Value:
    """A string literal without escapes; what stands behind a prefix or an escape is not read."""
    return Text(text[1:-1]) if text.startswith('"') and "\\" not in text else Unknown("a text", line)


def character(text: str, line: int) -> Value:
    """The number of a character literal."""
    inner = text[1:-1]
    if inner.startswith("\\"):
        inner = ESCAPES.get(inner[1:], "")
    return Scalar(number(ord(inner))) if len(inner) == 1 and ord(inner) < 128 else Unknown("a character", line)


def compared(name: str, values: list[Value]) -> Value | None:
    """``strcmp`` and its kin where all is known; None where it is not."""
    if name == "strlen" and len(values) == 1 and isinstance(values[0], Text):
        return Scalar(number(len(values[0].text)))
    texts = [value.text for value in values[:2] if isinstance(value, Text)]
    if len(texts) < 2:
        return None
    if name in ("strncmp", "strncasecmp"):
        count = ev.expression_of(values[2]) if len(values) > 2 else None
        if count is None or not isinstance(count.constant, int):
            return None
        texts = [text[: count.constant] for text in texts]
    if "case" in name:
        texts = [text.lower() for text in texts]
    return Scalar(number((texts[0] > texts[1]) - (texts[0] < texts[1])))


COMPARISONS = frozenset({"strcmp", "strncmp", "strcasecmp", "strncasecmp", "strlen"})


def operator(op: str, left: Text, right: Text) -> Value | None:
    """``==`` and ``!=`` of two texts, as std::string has them."""
    if op not in ("==", "!="):
        return None
    return Scalar(number(int((left.text == right.text) == (op == "=="))))


def getopt(values: list[Value], line: int, facts: Facts, state: State) -> Value:
    """The next option of the run in the Makefile, as ``getopt`` finds it; -1 for a program that is run without any.

    ``optarg`` and ``optind`` are set as the program sees them. An argument in the middle, an option that is not in the
    list, and ``--`` are left to the user.
    """
    words = facts.command.arguments if facts.command is not None else ()
    if not words:
        return Scalar(number(-1))
    known = values[2] if len(values) > 2 else None
    told = ev.lookup("optind", line, facts, state)
    place = told.expression.constant if isinstance(told, Scalar) else None
    if not isinstance(known, Text) or not isinstance(place, int) or not arguments.is_argv(values[1]):
        return _lost(values, line, facts, state)
    if place > len(words) or not words[place - 1].startswith("-"):
        rest = words[place - 1 :] if place <= len(words) else ()
        return Scalar(number(-1)) if not any(w.startswith("-") for w in rest) else _lost(values, line, facts, state)
    word = words[place - 1]
    at = known.text.find(word[1:2]) if len(word) > 1 and word[1] not in ":-" else -1
    takes = known.text[at + 1 : at + 2] == ":"
    if at < 0 or (not takes and len(word) > 2) or (takes and len(word) == 2 and place >= len(words)):
        return _lost(values, line, facts, state)
    apart = takes and len(word) == 2
    _set("optarg", Text(words[place] if apart else word[2:]) if takes else Unknown("no argument", line), facts, state)
    _set("optind", Scalar(number(place + 1 + apart)), facts, state)
    return Scalar(number(ord(word[1])))


def _lost(values: list[Value], line: int, facts: Facts, state: State) -> Value:
    for value in values:
        calls.forget(value, "`getopt` reads it from the command line", line, facts, state)
    for name in ("optarg", "optind"):
        _set(name, Unknown("`getopt` sets it", line), facts, state)
    return Unknown("`getopt` reads the command line", line)


def _set(name: str, value: Value, facts: Facts, state: State) -> None:
    cell = facts.find(name)
    if cell is not None:
        state.cells[cell] = value


def begin(facts: Facts, state: State) -> None:
    """What ``<unistd.h>`` declares."""
    facts.declare("optind", Scalar(number(1)), "", state)
    facts.declare("optarg", Unknown("no option was read yet"), "char*", state)


def scanned(values: list[Value], line: int, facts: Facts, state: State) -> Value:
    """``sscanf(text, "%d", &n)`` for whole numbers; anything else is not known afterwards."""
    source, form = [*values, Unknown(""), Unknown("")][:2]
    targets = values[2:]
    plain = isinstance(source, Text) and isinstance(form, Text) and form.text in ("%d", "%u", "%i", "%ld", "%lu", "%zu")
    if plain and isinstance(source, Text) and len(targets) == 1 and isinstance(targets[0], Ref):
        whole = arguments.whole(source.text)
        where = facts.command.where if facts.command is not None else ""
        if whole is not None:
            storing.set_cell(
                targets[0].cell, Scalar(number(whole)), facts, state, line, Origin("run line", line, where)
            )
            return ONE
    for value in targets:
        if isinstance(value, Ref) and isinstance(source, Unknown) and arguments.is_argument(source):
            storing.set_cell(value.cell, Unknown(arguments.MARK + source.reason, line), facts, state, line)
        else:
            calls.forget(value, "`sscanf` sets it", line, facts, state)
    return Unknown("`sscanf` decides it", line)
