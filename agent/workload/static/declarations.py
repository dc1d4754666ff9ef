"""Declarations: variables come to be, in all the shapes that the grammar gives them."""

import re
from collections.abc import Iterator

from attrs import evolve
from tree_sitter import Node

from agent.source.nodes import declared_name, descendants
from agent.source.nodes import field as child
from agent.workload.expression import number
from agent.workload.static import (
    arguments,
    calls,
    constructing,
    conversion,
    hints,
    integers,
    library,
    members,
    packs,
    parts,
    rows,
    storing,
)
from agent.workload.static import evaluate as ev
from agent.workload.static.combining import combine
from agent.workload.static.state import Facts, State
from agent.workload.static.values import ONE, Content, Pointer, Record, Scalar, Unknown, Value
from agent.workload.workload import Origin

_STORAGE = re.compile(
    r"\b(const|constexpr|static|volatile|register|inline|extern|__constant__|__device__|__managed__)\b"
)

MAX_LISTED = 256
"""Longer initialisers are not read: they are tables, not constants."""


def declare(node: Node, facts: Facts, state: State, file_level: bool = False) -> None:
    """A declaration statement: each of its declarators."""
    type_node = child(node, "type")
    if type_node is None:
        return
    type_text = _STORAGE.sub(" ", facts.type_text(type_node)).strip()
    for declarator in node.children_by_field_name("declarator"):
        before = len(facts.names)
        _declarator(declarator, type_text, facts, state, file_level)
        if file_level:
            facts.file_cells.update(range(before, len(facts.names)))


def declare_enumerators(facts: Facts, state: State) -> None:
    """The enumerators of the program's files. One that two enumerations have, with different values, is not known."""
    for node in descendants(facts.document.tree.root_node, "enumerator_list"):
        value: Value = Scalar(number(-1))
        for part in descendants(node, "enumerator"):
            name_node, told = child(part, "name"), child(part, "value")
            value = ev.evaluate(told, facts, state) if told is not None else combine("+", value, ONE)
            if name_node is None:
                continue
            name = facts.node_text(name_node)
            known = facts.scopes[0].get(name)
            if known is None:
                facts.declare(name, value, "", state)
            elif state.cells[known] != value:
                state.cells[known] = Unknown(f"two enumerations have a `{name}`", facts.line(part))


def _declarator(node: Node, type_text: str, facts: Facts, state: State, file_level: bool) -> None:
    line = facts.line(node)
    if node.type == "function_declarator" and not _is_pointed(node):
        _constructor_in_disguise(node, type_text, facts, state)
        return
    value_node = child(node, "value") if node.type == "init_declarator" else None
    inner = child(node, "declarator") if node.type == "init_declarator" else node
    name_node = declared_name(inner)
    if inner is None or name_node is None:
        return
    name = facts.node_text(name_node)
    stars = _stars(inner)
    if (stepped := rows.pointed(inner)) is not None:
        type_text, stars = type_text + rows.written(stepped, facts, state), 1
    elif (array := _array(inner)) is not None and (stars == 0 or _holds_pointers(inner)):
        _declare_array(array, name, type_text + "*" * stars, value_node, facts, state)
        return
    if inner.type == "reference_declarator" and value_node is not None:
        cell = ev.cell_of(value_node, facts, state)
        if cell is not None:
            facts.scopes[-1][name] = cell
            return
    initial = _initial(value_node, name, type_text if not stars else "", line, facts, state)
    cell = facts.declare(name, Unknown(f"`{name}` has no value yet", line), type_text + "*" * stars, state)
    if file_level:
        facts.file_cells.add(cell)
    filled = not stars and (
        members.fill(cell, type_text, value_node, facts, state, line)
        or (_listed_or_none(value_node) and constructing.construct(cell, type_text, value_node, facts, state, line))
    )
    if initial is not None and not filled:
        give(cell, initial, value_node, facts, state, line)


def _is_pointed(function: Node) -> bool:
    """``void (*f)(float*, int)``: a pointer to functions."""
    inner = child(function, "declarator")
    return inner is not None and inner.type == "parenthesized_declarator"


def _listed_or_none(node: Node | None) -> bool:
    """Whether a declaration makes a struct by its constructor: ``P p;``, ``P p(n);``, ``P p{n};``."""
    return node is None or node.type in ("argument_list", "initializer_list")


def give(cell: int, value: Value, node: Node | None, facts: Facts, state: State, line: int) -> None:
    """The first value of a variable; where it comes from the command line, with a default or without, is kept."""
    if isinstance(value, Pointer) and facts.memories[value.memory].name.startswith("host memory of"):
        facts.rename(value.memory, facts.names[cell])
    text = facts.node_text(node) if node is not None else ""
    measured = (
        node is not None and node.type == "sizeof_expression"
    )  # as large as what is declared, and no size to vary
    facts.plain_numbers += measured
    storing.set_cell(cell, value, facts, state, line, arguments.origin(text, line, facts))
    facts.plain_numbers -= measured


def _initial(node: Node | None, name: str, type_text: str, line: int, facts: Facts, state: State) -> Value | None:
    bare = type_text.split("::")[-1].strip()
    values: list[Value] = []
    if node is not None and node.type in ("argument_list", "initializer_list"):
        given = [part for part in node.named_children if part.type != "comment"]
        values = [ev.evaluate(part, facts, state) for part in given]
        if node.type == "initializer_list" and bare != "dim3" and "array" not in type_text and "vector" in type_text:
            values = [Scalar(number(len(given)))]
    elif node is not None:
        values = [ev.evaluate(node, facts, state)]
    if bare == "dim3":
        return library.make_dim3(values)
    known = library.container(type_text, name, values, line, facts, state) or hints.distribution(type_text, values)
    if isinstance(known, Pointer) and node is not None and node.type == "initializer_list":
        list_elements(known, name, known.element, node, facts, state)
        state.contents[known.memory] = _initialised(node, Scalar(number(len(_listed(node)))), facts, state)
    if known is not None:
        return known
    return values[0] if len(values) == 1 else None


def _constructor_in_disguise(node: Node, type_text: str, facts: Facts, state: State) -> None:
    """``dim3 grid(n, m);`` and ``std::vector<float> v(n);``: the grammar reads a function of types n, m."""
    name_node, parameters = child(node, "declarator"), child(node, "parameters")
    if name_node is None or parameters is None or name_node.type != "identifier":
        return
    line = facts.line(node)
    texts = [facts.node_text(part) for part in parameters.named_children if part.type != "comment"]
    bare = type_text.split("::")[-1].strip()
    known = bare == "dim3" or library.is_container(type_text) or "distribution" in type_text
    name = facts.node_text(name_node)
    if not known and not _plain_scalar(type_text, texts, facts):
        if texts and all(facts.find(text) is not None for text in texts):
            given = [ev.evaluate_text(text, line, facts, state) for text in texts]
            cell = facts.declare(name, Unknown(f"`{name}` is a struct", line), type_text, state)
            constructing.run_constructor(cell, type_text, given, facts, state, line)
        return
    values = [ev.evaluate_text(text, line, facts, state) for text in texts]
    value: Value | None
    if bare == "dim3":
        value = library.make_dim3(values)
    else:
        value = library.container(type_text, name, values, line, facts, state) or hints.distribution(type_text, values)
        value = value or (values[0] if len(values) == 1 else None)
    if value is not None:
        cell = facts.declare(name, Unknown("it has no value yet", line), type_text, state)
        give(cell, value, None, facts, state, line)


def _plain_scalar(type_text: str, texts: list[str], facts: Facts) -> bool:
    """``int n(other);`` with a known variable."""
    return len(texts) == 1 and facts.dtype(type_text) is not None and facts.find(texts[0]) is not None


def _stars(node: Node | None) -> int:
    count = 0
    while node is not None and node.type in ("pointer_declarator", "reference_declarator"):
        count += node.type == "pointer_declarator"
        node = child(node, "declarator") or next(
            (c for c in node.named_children if "declarator" in c.type or c.type == "identifier"), None
        )
    return count


def _array(node: Node) -> Node | None:
    while node.type not in ("array_declarator", "identifier"):
        inner = child(node, "declarator")
        if inner is None:
            return None
        node = inner
    return node if node.type == "array_declarator" else None


def _holds_pointers(node: Node) -> bool:
    """``T* a[n]``, and not ``T (*a)[n]``."""
    inner: Node | None = node
    while inner is not None and inner.type == "pointer_declarator":
        inner = child(inner, "declarator")
    return inner is not None and inner.type == "array_declarator"


def _declare_array(inner: Node, name: str, element: str, value_node: Node | None, facts: Facts, state: State) -> None:
    """``float h[n][m];``: a host memory of its own."""
    line = facts.line(inner)
    count: Value = Scalar(number(1))
    node: Node | None = inner
    pointers = element.endswith("*")
    while node is not None and node.type == "array_declarator":
        size = child(node, "size")
        extent = (
            ev.evaluate(size, facts, state)
            if size is not None
            else Scalar(number(max(1, packs.count(_listed(value_node), facts))))
        )
        count = combine("*", count, extent)
        node = child(node, "declarator")
    nbytes = combine("*", count, Scalar(number(8))) if pointers else calls.times_size(count, element, facts)
    pointer = calls.host_memory("array", nbytes, element, line, Content("fresh"), facts, state, name)
    if value_node is not None:
        state.contents[pointer.memory] = Content("host") if pointers else _initialised(value_node, count, facts, state)
    facts.declare(name, pointer, f"{element}{rows.written(rows.in_rows(inner), facts, state)}[]", state)
    list_elements(pointer, name, element, value_node, facts, state)


def list_elements(pointer: Pointer, name: str, element: str, node: Node | None, facts: Facts, state: State) -> None:
    """The elements that an initialiser lists, each by itself; those of structs by their members."""
    listed = _listed(node)
    if len(listed) > MAX_LISTED:
        return
    for index, part in enumerate(packs.each(listed, facts)):
        cell = parts.member(parts.of_memory(pointer.memory), str(index), f"{name}[{index}]", facts)
        facts.types[cell] = element
        if part.type == "initializer_list" and members.fill(cell, element, part, facts, state, facts.line(part)):
            continue
        held, dtype = ev.evaluate(part, facts, state), integers.integer(facts.dtype(element))
        state.cells[cell] = conversion.as_type(held, dtype, facts) if dtype and isinstance(held, Scalar) else held


def _initialised(node: Node, count: Value, facts: Facts, state: State) -> Content:
    """What an initialiser puts into an array of ``count`` elements."""
    listed = _listed(node)
    if node.type != "initializer_list" or len(listed) > MAX_LISTED:
        return Content("host")
    if all(_is_zero(part, facts, state) for part in _leaves(node)):
        return Content("host", hints.listed([], count, facts))  # lists in lists, of structs or rows, among them
    return Content(
        "host", hints.listed([ev.evaluate(part, facts, state) for part in packs.each(listed, facts)], count, facts)
    )


def _listed(node: Node | None) -> list[Node]:
    if node is None or node.type != "initializer_list":
        return []
    return [part for part in node.named_children if part.type != "comment"]


def _is_zero(node: Node, facts: Facts, state: State) -> bool:
    if node.type not in ("number_literal", "false", "null", "nullptr"):
        return False
    told = hints.domain_of(ev.evaluate(node, facts, state), facts)
    return told is not None and told.kind == "zeros"


def _leaves(node: Node) -> Iterator[Node]:
    """What a list lists, and the lists in it."""
    for part in _listed(node):
        if part.type == "initializer_list":
            yield from _leaves(part)
        else:
            yield part


def bind_parameter(
    parameter: Node, value: Value | None, shared: int | None, facts: Facts, state: State,
    source: tuple[bytes, int | None] | None = None,
) -> None:  # fmt: skip
    """A parameter of a followed function gets its argument, or its default. ``source`` is the text that its node refers
    to, where that is not the document's."""
    name_node = declared_name(child(parameter, "declarator"))
    if name_node is None:
        return
    with facts.reading(*(source or (facts.document.text, None))):
        name, line = facts.node_text(name_node), facts.line(parameter)
        declarator, type_node = child(parameter, "declarator"), child(parameter, "type")
        type_text = _STORAGE.sub(" ", facts.type_text(type_node)).strip() if type_node is not None else ""
        if shared is not None:
            facts.scopes[-1][name] = shared
            return
        default = child(parameter, "default_value")
        if value is None and default is not None:
            value = ev.evaluate(default, facts, state)
        stars = _stars(declarator) + (declarator is not None and _array(declarator) is not None)
        stepped = rows.pointed(declarator)
        type_text += rows.written(rows.in_rows(declarator) if stepped is None else stepped, facts, state)
        cell = facts.declare(name, Unknown(f"`{name}` has no value yet", line), type_text + "*" * stars, state)
        if isinstance(value, Record):
            parts.copy(value.cell, cell, facts, state)
        elif value is not None:
            state.cells[cell] = value if stars else conversion.convert(value, type_text, facts)
            if arguments.is_asked(value) or (isinstance(value, Scalar) and value.expression.constant is not None):
                storing.set_cell(cell, value, facts, state, line)


def free_parameter(parameter: Node, function: str, facts: Facts, state: State) -> None:
    """A parameter of a function that nothing here calls: a number to ask for, or a buffer of unknown size."""
    name_node, declarator, type_node = (
        declared_name(child(parameter, "declarator")),
        child(parameter, "declarator"),
        child(parameter, "type"),
    )
    if name_node is None or type_node is None:
        return
    type_text = _STORAGE.sub(" ", facts.type_text(type_node)).strip() + "*" * _stars(declarator)
    why = f"it is a parameter of `{function}`, which nothing in this file calls"
    free(facts.node_text(name_node), type_text, why, facts.line(parameter), facts, state)


def free(name: str, type_text: str, why: str, line: int, facts: Facts, state: State) -> None:
    """A variable that something sets which is not followed: a number to ask for, or a buffer of unknown size."""
    from agent.workload.static.values import Memory

    bare, stars = type_text.rstrip("*").strip(), type_text.count("*")
    value: Value = Unknown(why, line)
    dtype = facts.dtype(bare)
    if stars == 1:
        memory = Memory(name, "device", Unknown(why, line), bare, line, "parameter")
        value = Pointer(facts.allocate(memory, Content("external"), state), number(0), bare)
    elif stars == 0 and dtype is not None and dtype[0] in "iu":
        value = evolve(facts.root(name, None, Origin("signature", line), why), dtype=integers.integer(dtype))
    elif bare == "dim3":
        value = Unknown(why, line)
    facts.declare(name, value, type_text, state)


def members_around(function: Node, facts: Facts, state: State) -> None:
    """Inside a method that is defined outside of its class the members' names are theirs, and no other variables'."""
    declarator = next(descendants(child(function, "declarator") or function, "function_declarator"), None)
    scoped = child(declarator, "declarator")
    scope = child(scoped, "scope") if scoped is not None and scoped.type == "qualified_identifier" else None
    if scope is None:
        return
    owner, line = facts.node_text(scope).split("<")[0].split("::")[-1].strip(), facts.line(function)
    for member in members.named(owner, facts):
        if member.name not in facts.scopes[-1]:
            why = f"it is a member of `{owner}`, and what its object holds is not followed"
            free(member.name, member.type + "*" * (member.extent is not None), why, line, facts, state)
