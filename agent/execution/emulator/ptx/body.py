"""The body of a PTX function: statements, nested blocks, labels, source lines, instructions."""

import re

from attrs import define, evolve, field

from agent.execution.emulator.ptx.instruction import Guard, Instruction, Label, Operand, Variable, Vector
from agent.execution.emulator.ptx.opcode import destination_count, split_opcode
from agent.execution.emulator.ptx.scope import Scope, Slots, label_of
from agent.execution.emulator.ptx.text import NAME, PtxError, line_of, split_list
from agent.execution.emulator.ptx.variable import declared

_STATEMENT = re.compile(
    rf"""\s*(?:
      (?P<brace>[{{}}])
    | (?P<directive>\.[a-z_]+)
    | (?P<label>{NAME})\s*:(?!:)
    | (?:@\s*(?P<not>!?)\s*(?P<guard>{NAME})\s+)?(?P<opcode>[a-z_][\w.:]*)\s*(?P<operands>[^;]*);
    )""",
    re.X,
)
_LOC = re.compile(
    r"[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+(\d{1,9})"
    r"(?:[ \t]*,[ \t]*function_name[ \t]+[^\s,]+(?:[ \t]*\+[ \t]*\d+)?"
    r"[ \t]*,[ \t]*inlined_at[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+(\d{1,9}))?[^\n;]*"
)
_TO_SEMICOLON = re.compile(r"([^;]*);")
_REGISTERS = re.compile(r"\s*(?:\.align\s+\d+\s+)?(\.v[248]\s+)?\.(\w+)\s*(.*)", re.S)
_DEEPEST = 200
_LONGEST_CHAIN = 16


@define(eq=False)
class Body:
    """What the statements of one function have declared so far."""

    text: str
    slots: Slots
    variables: list[Variable] = field(factory=list)
    instructions: list[Instruction] = field(factory=list)
    branches: list[tuple[int, Scope, int]] = field(factory=list)
    taken: set[str] = field(factory=set)
    callers: dict[tuple[int, int, int], tuple[tuple[int, int], ...]] = field(factory=dict)
    file: int = 0
    line: int = 0
    inlined: tuple[tuple[int, int], ...] = ()

    def name_for(self, name: str) -> str:
        """A name for a variable that no other variable of the function has (blocks may declare one again)."""
        unique, again = name, 2
        while unique in self.taken:
            unique, again = f"{name}#{again}", again + 1
        self.taken.add(unique)
        return unique


def parse_body(body: Body, scope: Scope, start: int) -> int:
    """Read statements from just behind the opening brace; the answer is the offset behind the closing one.

    Raises PtxError with its line.
    """
    text, outermost, position, at, label = body.text, scope, start, start, ""
    try:
        while True:
            match = _STATEMENT.match(text, position)
            if match is None:
                at = position
                raise PtxError(_lost(text, position))
            at, position = match.end() - len(match.group().lstrip()), match.end()
            if match["opcode"]:
                _instruction(body, scope, match, at)
            elif match["directive"]:
                position = _directive(body, scope, match["directive"], position, label)
            elif match["label"]:
                label = match["label"]
                if label in scope.labels:
                    raise PtxError(f"the label '{label}' is declared twice")
                scope.labels[label] = len(body.instructions)
            elif match["brace"] == "{":
                scope = _inner(scope)
            elif scope is not outermost:
                scope = scope.parent or outermost
            else:
                break
        for index, inner, where in body.branches:
            at = where
            body.instructions[index] = _resolve(body.instructions[index], inner)
    except PtxError as error:
        raise error if error.line else PtxError(error.message, line_of(text, at)) from None
    return position


def _lost(text: str, position: int) -> str:
    rest = text[position : position + 200].split(maxsplit=6)
    return f"'{' '.join(rest[:6])[:60]}' is not understood" if rest else "the text ends inside a function"


def _inner(scope: Scope) -> Scope:
    depth, above = 0, scope.parent
    while above is not None:
        depth, above = depth + 1, above.parent
    if depth > _DEEPEST:
        raise PtxError(f"blocks are nested more than {_DEEPEST} deep")
    return Scope(scope, scope.slots)


def _directive(body: Body, scope: Scope, directive: str, position: int, label: str) -> int:
    if directive == ".loc":
        return _location(body, position)
    match = _TO_SEMICOLON.match(body.text, position)
    if match is None:
        raise PtxError(f"{directive} has no semicolon")
    rest = match[1]
    if directive == ".reg":
        declaration = _REGISTERS.fullmatch(rest)
        if declaration is None or declaration[1]:
            raise PtxError(f"the register declaration '{rest.strip()[:60]}' is not understood")
        scope.declare_registers(declaration[2], declaration[3])
    elif directive in (".param", ".local", ".shared", ".global", ".const"):
        for variable in declared(directive[1:], rest):
            unique = body.name_for(variable.name)
            scope.declare_symbol(variable.name, unique)
            body.variables.append(evolve(variable, name=unique))
    elif directive in (".branchtargets", ".calltargets"):
        scope.tables[label] = tuple(split_list(rest))
        scope.declare_symbol(label, label)
    elif directive == ".callprototype":
        scope.declare_symbol(label, label)
    elif directive != ".pragma":
        raise PtxError(f"the directive {directive} is not known")
    return match.end()


def _location(body: Body, position: int) -> int:
    match = _LOC.match(body.text, position)
    if match is None:
        raise PtxError(".loc is not understood")
    file, line, column, at_file, at_line, at_column = (int(group) if group else 0 for group in match.groups())
    chain: tuple[tuple[int, int], ...] = ()
    if at_file:
        outer = body.callers.get((at_file, at_line, at_column), ())
        chain = ((at_file, at_line), *outer)[:_LONGEST_CHAIN]
    body.callers[file, line, column] = chain
    body.file, body.line, body.inlined = file, line, chain
    return match.end()


def _instruction(body: Body, scope: Scope, match: re.Match[str], at: int) -> None:
    base, modifiers, types = split_opcode(match["opcode"])
    parts = split_list(match["operands"])
    guard = None
    if match["guard"]:
        register = scope.register(match["guard"])
        if register is None or register.file != "pred":
            raise PtxError(f"the guard '{match['guard']}' is no predicate register")
        guard = Guard(register, bool(match["not"]))
    destinations: tuple[Operand, ...] = ()
    sources: tuple[Operand, ...]
    negated: tuple[int, ...] = ()
    if base in ("bra", "brx", "call"):
        if base != "call":
            body.branches.append((len(body.instructions), scope, at))
        destinations, sources = _branch_operands(scope, base, parts)
    else:
        count = destination_count(base, modifiers, parts[0] if parts else "")
        if count:
            first = parts[0]
            names = first.split("|") if "|" in first else (first,)
            destinations = tuple(scope.operand(name.strip()) for name in names)
            parts = parts[1:]
        if any(part[:1] == "!" for part in parts):
            negated = tuple(index for index, part in enumerate(parts) if part[:1] == "!")
            parts = [part.removeprefix("!").strip() for part in parts]
        sources = tuple([scope.operand(part) for part in parts])
    body.instructions.append(
        Instruction(
            base=base,
            modifiers=modifiers,
            types=types,
            destinations=destinations,
            sources=sources,
            guard=guard,
            file=body.file,
            line=body.line,
            text=" ".join(match.group().split()),
            negated=negated,
            inlined=body.inlined,
        )
    )


def _branch_operands(scope: Scope, base: str, parts: list[str]) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """Targets stay unresolved (target -1) until the whole function is read."""
    if base == "bra" and len(parts) == 1:
        return (), (Label(parts[0], -1),)
    if base == "brx" and len(parts) == 2:
        return (), (scope.operand(parts[0]), Label(parts[1], -1))
    if base != "call" or not parts:
        raise PtxError(f"{base} with {len(parts)} operands is not understood")
    destinations: tuple[Operand, ...] = ()
    if parts[0][:1] == "(":
        results = scope.operand(parts.pop(0))
        destinations = tuple(element for element in results.elements if element) if isinstance(results, Vector) else ()
    operands = [scope.operand(part) for part in parts]
    if not operands:
        raise PtxError("the call names no function")
    if len(operands) == 1 or not isinstance(operands[1], Vector):
        operands.insert(1, Vector(()))
    return destinations, tuple(operands)


def _resolve(instruction: Instruction, scope: Scope) -> Instruction:
    """The branch with its labels as indices into the function's instructions."""
    if instruction.base == "bra":
        (label,) = instruction.sources
        assert isinstance(label, Label)
        return evolve(instruction, sources=(label_of(scope, label.name),))
    if instruction.base == "brx":
        index, table = instruction.sources
        assert isinstance(table, Label)
        names = scope.table(table.name)
        if names is None:
            raise PtxError(f"the list of targets '{table.name}' was not declared")
        return evolve(instruction, sources=(index, Vector(tuple(label_of(scope, name) for name in names))))
    return instruction
