"""The state of the host program while it is read, and the facts of the file that reading needs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, evolve, field, frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.lexing import Macro
from agent.source.names import names_in
from agent.source.nodes import declared_name, is_pack, text_of
from agent.source.nodes import field as child
from agent.source.parsing import parse_tree
from agent.workload import dtypes, types
from agent.workload.expression import Expression
from agent.workload.expression import name as name_of
from agent.workload.static.run_line import RunLine
from agent.workload.static.unit import Unit
from agent.workload.static.values import Called, Content, Item, Memory, Queued, Root, Scalar, Unknown, Value
from agent.workload.workload import Origin

MAX_WORK = 60_000
MAX_CALLS = 8
MAX_ARGUMENTS = 256


_CONTAINERS = frozenset(
    {
        "translation_unit", "namespace_definition", "declaration_list", "linkage_specification", "template_declaration",
        "preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif", "ERROR",
    }
)  # fmt: skip


def plain_name(name: str) -> str:
    """The name of a variable as a directive can say it: ``n`` for ``s.n``, ``h_2`` for ``h[2]``."""
    return re.sub(r"\W+", "_", name.split(".")[-1]).strip("_") or "value"


def whole_name(name: str) -> str:
    """The name of a member that tells it from other variables: ``s_n`` for ``s.n``; else as :func:`plain_name`."""
    path = re.fullmatch(r"\w+(\[\d+\])?(\.\w+(\[\d+\])?)+", name)
    return re.sub(r"\W+", "_", name).strip("_") if path is not None else plain_name(name)


class OutOfWork(Exception):
    """The host code is longer than is worth reading."""


@frozen
class Function:
    """A host function. ``template`` are the names of its template parameters, ``defaults`` what some are if not told,
    ``reference`` which parameters are `&`."""

    node: Node
    parameters: tuple[Node, ...]
    reference: tuple[bool, ...]
    template: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    @property
    def required(self) -> int:
        """How many arguments it takes at least."""
        return sum(parameter.type == "parameter_declaration" for parameter in self.parameters)

    @property
    def most(self) -> int:
        """How many it takes at most."""
        return MAX_ARGUMENTS if self.parameters and is_pack(self.parameters[-1]) else len(self.parameters)


@define
class State:
    """What changes as statements run: variables and the contents of memories. A copy is a fork of the program."""

    cells: dict[int, Value] = field(factory=dict)
    contents: dict[int, Content] = field(factory=dict)

    def fork(self) -> "State":
        return State(dict(self.cells), dict(self.contents))


@define
class Facts:
    """The program's files: functions, macros, types of variables, memories and roots met so far, and what was launched.

    ``device_names`` are the names that the kernel is compiled with: a macro or constant among them is not varied, as
    the kernel would have to be compiled anew. ``answers`` are values that the user gave for unknown roots,
    ``command`` what the program's Makefile runs it with, ``place`` the offset of what is being read, ``integers`` the
    integer types of members and elements, ``kernels`` the names of all kernels. ``same`` and ``turns`` remember what
    roots are called. ``granted`` are the bytes of dynamic shared memory that kernels were allowed, as they are written.
    ``queue`` is what was put into streams. Branches by the numbers in ``followed`` are read both ways; ``tied`` are
    those of them by which a branch could not be, and its line; ``rests`` are places among the items ``listed`` of a
    function, and what holds from there on.
    """

    unit: Unit
    device_names: frozenset[str]
    answers: dict[str, int | float] = field(factory=dict)
    command: RunLine | None = None
    functions: dict[str, tuple[Function, ...]] = field(factory=dict)
    kernels: frozenset[str] = frozenset()
    scopes: list[dict[str, int]] = field(factory=lambda: [{}])
    types: dict[int, str] = field(factory=dict)
    names: dict[int, str] = field(factory=dict)
    parts: dict[int, dict[str, int]] = field(factory=dict)
    integers: dict[int, str | None] = field(factory=dict)
    symbol_contents: dict[str, Content] = field(factory=dict)
    followed: frozenset[str] = frozenset()
    tied: dict[str, int] = field(factory=dict)
    listed: list[Item] | None = None
    rests: list[tuple[int, Expression]] = field(factory=list)
    queue: list[Queued] = field(factory=list)
    granted: dict[Called, Scalar | Unknown] = field(factory=dict)
    file_cells: set[int] = field(factory=set)
    memories: list[Memory] = field(factory=list)
    roots: dict[str, Root] = field(factory=dict)
    same: dict[tuple[object, ...], str] = field(factory=dict)
    turns: dict[str, int] = field(factory=dict)
    bindings: dict[str, str] = field(factory=dict)
    generated: set[str] = field(factory=set)
    paths: dict[str, str] = field(factory=dict)
    judged: dict[str, bool] = field(factory=dict)
    symbols: set[str] = field(factory=set)
    pinned: set[str] = field(factory=set)
    items: list[Item] = field(factory=list)
    notes: list[str] = field(factory=list)
    text: bytes = b""
    place: int = 0
    parsed_line: int | None = None
    moved: bool = False
    line_override: int | None = None
    file_state: "State | None" = None
    first_turns: set[int] = field(factory=set)
    plain_numbers: int = 0
    conditional: int = 0
    calls: int = 0
    work: int = 0
    unrolled: int = 0
    events: int = 0
    floating: set[str] = field(factory=set)

    @property
    def document(self) -> Document:
        return self.unit.document

    def spend(self, amount: int = 1) -> None:
        self.work += amount
        if self.work > MAX_WORK:
            raise OutOfWork

    def reach(self, node: Node) -> None:
        """Note where in the program's files reading has come to."""
        if self.line_override is None:
            self.place = node.start_byte

    def at(self, line: int) -> str:
        """``line 12``, with the file where it is not the kernel's own."""
        return self.unit.at(line)

    def macro(self, name: str) -> Macro | None:
        """What the preprocessor takes a name for here; None for no macro, and for one that depends on the build."""
        held = self.unit.joined.macro(name, self.place)
        if held is not None:
            return held.macro if held.certain else None
        flag = self.unit.joined.flags.get(name)
        return Macro(name, None, flag.body) if flag is not None and flag.certain else None

    def function(self, name: str, count: int | None = None) -> Function | None:
        """The host function of a name that is meant here, given ``count`` arguments; None where there is none, or where
        it is not certain which."""
        found = self.functions.get(name, ())
        fitting = [one for one in found if count is None or one.required <= count <= one.most] or found
        here = self.unit.joined.root(self.place)
        near = [one for one in fitting if self.unit.joined.root(one.node.start_byte) == here] or fitting
        texts = {text_of(self.document.text, one.node) for one in near}
        return near[0] if len(texts) == 1 else None

    def line(self, node: Node) -> int:
        return self.line_override or node.start_point.row + 1

    def node_text(self, node: Node) -> str:
        return text_of(self.text, node)

    def values(self) -> dict[str, int | float]:
        """Known values of roots; loop variables and roots without one are missing."""
        return {root.name: root.value for root in self.roots.values() if root.value is not None}

    def type_text(self, node: Node) -> str:
        """A type as written, with the template parameters of the function that is being followed filled in."""
        return self.bound(self.node_text(node))

    def bound(self, text: str) -> str:
        for name, told in self.bindings.items():
            text = re.sub(rf"\b{re.escape(name)}\b", lambda _, told=told: told, text)  # type: ignore[misc]
        return text

    def dtype(self, text: str) -> str | None:
        """The element type that a C type names here."""
        return types.c_dtype(self.document, self.bound(text))

    def known(self, name: str) -> bool:
        return self.find(name) is not None or self.macro(name) is not None

    def interesting(self, name: str, depth: int) -> bool:
        """Whether a function of the file launches, allocates or transfers."""
        from agent.workload.static.execute import is_interesting

        if name not in self.judged:
            self.judged[name] = False  # a function that calls itself adds nothing by that
            with self.original_text():
                self.judged[name] = any(is_interesting(one.node, self, depth + 1) for one in self.functions[name])
        return self.judged[name]

    # Variables

    def declare(self, name: str, value: Value, type_text: str, state: State) -> int:
        cell = len(self.names)
        self.names[cell] = name
        self.types[cell] = type_text
        self.scopes[-1][name] = cell
        state.cells[cell] = value
        return cell

    def part(self, full_name: str) -> int:
        """A new variable that stands for a member of a struct or an element of an array."""
        cell = len(self.names)
        self.names[cell] = full_name
        self.types[cell] = ""
        return cell

    def find(self, name: str) -> int | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    @contextmanager
    def call_scope(self) -> Iterator[None]:
        """Only file scope and a new scope are seen inside a function."""
        outer, self.scopes = self.scopes, [self.scopes[0], {}]
        self.calls += 1
        try:
            yield
        finally:
            self.scopes = outer
            self.calls -= 1

    @contextmanager
    def reading(self, text: bytes, line: int | None) -> Iterator[None]:
        """Nodes come from ``text`` for a while: the document's where ``line`` is None, else a snippet's."""
        outer = self.text, self.line_override
        self.text, self.line_override = text, line
        try:
            yield
        finally:
            self.text, self.line_override = outer

    @contextmanager
    def original_text(self) -> Iterator[None]:
        """Nodes come from the document itself for a while."""
        with self.reading(self.document.text, None):
            yield

    def copy(self) -> "Facts":
        """The same for another kernel's workload to be put together from: what that adds is not seen here."""
        return evolve(
            self, memories=list(self.memories), roots=dict(self.roots), pinned=set(self.pinned), notes=list(self.notes),
            generated=set(self.generated), names=dict(self.names), types=dict(self.types), same=dict(self.same),
            turns=dict(self.turns), paths=dict(self.paths),
        )  # fmt: skip

    def mark(self) -> tuple[int, int, set[str], set[str], dict[str, Root], int, int]:
        """Where a reading begins that may be taken back."""
        return (
            len(self.memories), len(self.items), set(self.symbols), set(self.pinned), dict(self.roots), len(self.notes),
            len(self.queue),
        )  # fmt: skip

    def back_to(self, mark: tuple[int, int, set[str], set[str], dict[str, Root], int, int]) -> None:
        """Take back what was met since."""
        memories, items, self.symbols, self.pinned, self.roots, notes, queue = mark
        del self.queue[queue:]
        del self.memories[memories:]
        del self.items[items:]
        del self.notes[notes:]

    # Roots and memories

    def root(
        self, name: str, value: int | float | None, origin: Origin, why: str = "", file_level: bool = False,
        event: int = 0,
    ) -> Scalar:  # fmt: skip
        """A named starting number. A file-level name that the kernel is compiled with stays a plain number."""
        whole, name = whole_name(name), plain_name(name)
        said = (whole, value, origin, why, event)
        unique, turn = self.same.get(said, name), 1
        if not self._taken(unique):
            unique = name  # it was taken back
        elif said not in self.same and self._taken(f"{name}_{self.turns.get(name, 1)}"):
            turn = self.turns[name]
            unique = f"{name}_{turn}"
        made = self._told(Root(unique, value, origin, why, event))
        while unique in self.symbols or (unique in self.roots and self.roots[unique] != made):
            if unique == name != whole:
                unique = whole
                self.paths[whole] = name
            else:
                turn += 1
                unique = f"{name}_{turn}"
                self.generated.add(unique)
            made = self._told(Root(unique, value, origin, why, event))
        self.same[said], self.turns[name] = unique, max(turn, self.turns.get(name, 1))
        self.roots[unique] = made
        if made.value is not None and file_level and name in self.device_names:
            self.pinned.add(unique)  # and with it what is computed from it
        return Scalar(name_of(unique))

    def _taken(self, name: str) -> bool:
        return name in self.symbols or name in self.roots

    def opened(self, cell: int, reason: str, line: int | None) -> Value:
        """A variable whose value is not known from here on: a number is asked for under the variable's name, once for
        all that is computed from it; of anything else only the reason is kept."""
        text = self.types.get(cell, "")
        dtype = None if "*" in text or "[" in text else self.dtype(text) if text else None
        if dtype is None or dtype == "bool" or dtypes.base(dtype)[1] > 1 or dtypes.is_raw(dtype):
            return Unknown(reason, line)
        self.events += 1
        made = self.root(self.names[cell], None, Origin("asked", line), reason, event=self.events)
        if not dtypes.is_float(dtype):
            return evolve(made, dtype=dtype)
        self.floating |= made.expression.names
        return made

    def _told(self, root: Root) -> Root:
        """A root with the value that the user gave it, where it has none of its own."""
        name = root.name
        if root.event and name not in self.answers and name in self.generated:
            name = name.rpartition("_")[0]  # as it is asked for where nothing else of that name is open
        if root.value is not None or name not in self.answers:
            return root
        return evolve(root, value=self.answers[name], origin=Origin("directive", root.origin.line))

    def symbol(self, name: str) -> str:
        """A fresh name for a loop variable."""
        name = plain_name(name)
        unique, turn = name, 1
        while unique in self.symbols or unique in self.roots:
            turn += 1
            unique = f"{name}_{turn}"
            self.generated.add(unique)
        self.symbols.add(unique)
        return unique

    def rename(self, memory: int, name: str) -> None:
        self.memories[memory] = evolve(self.memories[memory], name=name)

    def forget_symbols(self, symbols: set[str], memories: int) -> None:
        """Take back the names that a reading which came to nothing had used."""
        self.symbols -= symbols
        del self.memories[memories:]

    def allocate(self, memory: Memory, content: Content, state: State, path: str = "") -> int:
        """A new memory; ``path`` is the variable that it is allocated for, where that is a member."""
        taken = {known.name for known in self.memories if known.space != "host"}
        unique, turn, whole = memory.name, 1, whole_name(path or memory.name)
        while memory.space != "host" and unique in taken:
            if unique == memory.name != whole:
                unique = whole
                self.paths[whole] = memory.name
                continue
            turn += 1
            unique = f"{memory.name}_{turn}"
            self.generated.add(unique)
        self.memories.append(evolve(memory, name=unique))
        state.contents[len(self.memories) - 1] = content
        return len(self.memories) - 1


def read_facts(
    unit: Unit, device_names: frozenset[str], answers: dict[str, int | float], command: RunLine | None = None
) -> Facts:
    """The functions of a program's files, for a run with the arguments of ``command``."""
    document = unit.document
    kernels = frozenset(kernel.name for kernel in document.kernels)
    facts = Facts(unit, device_names, answers, command, kernels=kernels, text=document.text)
    for node in _functions(document.tree.root_node):
        declarator = child(node, "declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = child(declarator, "declarator") or next(
                (c for c in declarator.named_children if "declarator" in c.type), None
            )
        inner = child(declarator, "declarator")
        if declarator is None or inner is None or _on_device(text_of(document.text, node).split("{")[0]):
            continue
        name = text_of(document.text, declared_name(inner) or inner).split("::")[-1]
        parameters = child(declarator, "parameters")
        listed = tuple(
            p for p in (parameters.named_children if parameters else ()) if "parameter_declaration" in p.type
        )
        reference = tuple("&" in text_of(document.text, p).split("=")[0] for p in listed)
        made = Function(node, listed, reference, *_template(node, document.text))
        facts.functions[name] = (*facts.functions.get(name, ()), made)
    return facts


def _on_device(head: str) -> bool:
    return "__global__" in head or ("__device__" in head and "__host__" not in head)


def _template(node: Node, text: bytes) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    parent = node.parent
    listed = child(parent, "parameters") if parent is not None and parent.type == "template_declaration" else None
    names: list[str] = []
    defaults: list[tuple[str, str]] = []
    for parameter in listed.named_children if listed is not None else ():
        name = declared_name(child(parameter, "declarator")) or next(
            (part for part in parameter.named_children if part.type == "type_identifier"), None
        )
        names.append(text_of(text, name) if name is not None else "")
        default = child(parameter, "default_value") or child(parameter, "default_type")
        if default is not None:
            defaults.append((names[-1], text_of(text, default)))
    return tuple(names), tuple(defaults)


def _functions(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "function_definition":
            yield node
        elif node.type in _CONTAINERS:
            stack.extend(reversed(node.named_children))


def device_names(document: Document, uses: frozenset[str]) -> frozenset[str]:
    """Every file-level name that a kernel is compiled with: what it uses, and what that uses in turn."""
    bodies: dict[str, bytes] = {}
    for macro in document.macros:
        bodies[macro.name] = bodies.get(macro.name, b"") + b" " + macro.body.encode()
    for node in document.tree.root_node.named_children:
        if node.type in (
            "function_definition",
            "declaration",
            "template_declaration",
            "struct_specifier",
            "alias_declaration",
        ):
            text = document.text[node.start_byte : node.end_byte]
            if b"main" in text[:200] and node.type == "function_definition":
                continue
            for name in _defined(node, document.text):
                bodies[name] = bodies.get(name, b"") + b" " + text
    found: set[str] = set()
    waiting = set(uses)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= names_in(bodies.get(name, b"")) - found
    return frozenset(found)


def _defined(node: Node, text: bytes) -> list[str]:
    if node.type == "template_declaration":
        inner = node.named_children[-1] if node.named_children else None
        return _defined(inner, text) if inner is not None else []
    declarators = node.children_by_field_name("declarator") or node.children_by_field_name("name")
    found = []
    for declarator in declarators:
        name = declared_name(declarator)
        if name is not None:
            found.append(text_of(text, name))
    return found


def parse_snippet(code: str) -> tuple[bytes, Node]:
    """Parse ``code`` as statements; its body node. The bytes are those that the node's offsets refer to."""
    text = f"void f() {{ {code} }}".encode()
    root = parse_tree(text).root_node
    function = root.named_children[0] if root.named_children else root
    return text, child(function, "body") or function


def unknown(reason: str, line: int | None = None) -> Unknown:
    return Unknown(reason, line)
