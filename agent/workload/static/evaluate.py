"""The value of a host expression: syntax tree -> Value, with the effects that calls inside it have."""

import re
from collections.abc import Callable, Mapping

from attrs import evolve
from tree_sitter import Node

from agent.source.lexing import Macro
from agent.source.nodes import field as child
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.expression import parse as parse_expression
from agent.workload.static import (
    arguments,
    calls,
    constructing,
    integers,
    launching,
    members,
    options,
    parts,
    storing,
    streams,
)
from agent.workload.static.both_ways import tie
from agent.workload.static.combining import combine
from agent.workload.static.conversion import convert, size_of
from agent.workload.static.enumerators import BUILTIN, ENUMERATORS
from agent.workload.static.properties import property_value
from agent.workload.static.state import Facts, State, parse_snippet
from agent.workload.static.values import (
    ONE,
    ZERO,
    Called,
    Dim3,
    Lambda,
    Pointer,
    Properties,
    Random,
    Record,
    Ref,
    Scalar,
    Text,
    Unknown,
    Value,
)
from agent.workload.workload import Origin


def evaluate(node: Node, facts: Facts, state: State) -> Value:
    """The value of an expression node; Unknown, with the reason, for what is not followed."""
    facts.spend()
    facts.reach(node)
    handler = _HANDLERS.get(node.type)
    if handler is None:
        return Unknown(f"`{_short(facts, node)}` is not followed", facts.line(node))
    try:
        return handler(node, facts, state)
    except ExpressionError as error:
        return Unknown(str(error), facts.line(node))


def evaluate_text(text: str, line: int, facts: Facts, state: State) -> Value:
    """The same for text that has no node of its own: macro bodies, and arguments that the grammar took for types."""
    source, body = parse_snippet(f"return ({text});")
    statement = next((n for n in body.named_children if n.type == "return_statement"), None)
    if statement is None or body.has_error or not statement.named_children:
        return Unknown(f"`{text[:40]}` is not followed", line)
    with facts.reading(source, line):
        return evaluate(statement.named_children[0], facts, state)


def as_scalar(value: Value) -> Scalar | Unknown:
    if isinstance(value, Scalar | Unknown):
        return value
    return Unknown("a random number" if isinstance(value, Random) else "it is not a number")


def truth(value: Value, facts: Facts) -> bool | None:
    """Whether a condition holds at the values that the program has when run as it is; None if that is not known."""
    if isinstance(value, Pointer | Ref | Text | Called):
        return True
    if not isinstance(value, Scalar):
        return None
    try:
        return bool(value.expression.evaluate(facts.values()))
    except ExpressionError:
        return None


def _short(facts: Facts, node: Node) -> str:
    text = " ".join(facts.node_text(node).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _number(node: Node, facts: Facts, state: State) -> Value:
    text = facts.node_text(node).replace("'", "")
    found = parse_expression(text)
    return Scalar(found, integers.literal_type(text, found.constant) if isinstance(found.constant, int) else None)


def _inner(node: Node, facts: Facts, state: State) -> Value:
    inside = [part for part in node.named_children if part.type != "comment"]
    if not inside:
        return Unknown("nothing stands here", facts.line(node))
    return evaluate(inside[-1], facts, state)


def _comma(node: Node, facts: Facts, state: State) -> Value:
    values = [evaluate(part, facts, state) for part in node.named_children]
    return values[-1]


def _identifier(node: Node, facts: Facts, state: State) -> Value:
    return lookup(facts.node_text(node), facts.line(node), facts, state)


def lookup(name: str, line: int, facts: Facts, state: State) -> Value:
    """The value of a variable, macro, enumerator or well-known name."""
    cell = facts.find(name)
    if cell is None and "::" in name:
        cell = facts.find(name.split("::")[-1])
    if cell is not None:
        return parts.record(cell, state.cells.get(cell, Unknown(f"`{name}` has no value yet", line)), facts)
    if facts.bindings.get(name, name) != name:
        return evaluate_text(facts.bindings[name], line, facts, state)
    macro = facts.macro(name)
    if macro is not None and macro.parameters is None:
        return _macro(macro, line, facts, state)
    if name in BUILTIN:
        return BUILTIN[name]
    if name in ENUMERATORS:
        return Text(name)
    return launching.kernel(name, line, facts, state) or Unknown(f"`{name}` is not defined in this file", line)


def _macro(macro: Macro, line: int, facts: Facts, state: State) -> Value:
    name, body = macro.name, macro.body.strip()
    if not body or facts.calls > 12:
        return Unknown(f"macro `{name}` has no value", line)
    facts.calls += 1
    value = evaluate_text(body, line, facts, state)
    facts.calls -= 1
    constant = value.expression.constant if isinstance(value, Scalar) else None
    if not isinstance(constant, int) or constant <= 0:
        return value
    made = facts.root(name, constant, _defined(name, facts), file_level=True)
    return evolve(made, dtype=value.dtype) if isinstance(value, Scalar) else made


def _defined(name: str, facts: Facts) -> Origin:
    """Where a macro comes from: its line, or the Makefile."""
    held = facts.unit.joined.macro(name, facts.place)
    if held is None:
        return Origin("macro", None, facts.unit.joined.flags[name].where)
    match = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b".encode(), re.M).search(facts.document.text, held.offset)
    return Origin("macro", facts.document.line(match.start()) if match else None)


def _binary(node: Node, facts: Facts, state: State) -> Value:
    left_node, right_node = child(node, "left"), child(node, "right")
    if left_node is None or right_node is None:
        return Unknown("a broken expression", facts.line(node))
    op = facts.node_text(child(node, "operator") or node.children[1])
    op = {"and": "&&", "or": "||", "bitand": "&", "bitor": "|", "xor": "^", "not_eq": "!="}.get(op, op)
    left, right = evaluate(left_node, facts, state), evaluate(right_node, facts, state)
    if op == ">>" and streams.reads(node, facts):
        streams.take(right_node, facts, state)
        return left
    return combine(op, left, right, facts)


def _unary(node: Node, facts: Facts, state: State) -> Value:
    operand_node = child(node, "argument")
    if operand_node is None:
        return Unknown("a broken expression", facts.line(node))
    op = {"not": "!", "compl": "~"}.get(facts.node_text(node.children[0]), facts.node_text(node.children[0]))
    if op not in ("+", "-", "!", "~"):
        return Unknown(f"`{op}` is not followed", facts.line(node))
    operand = evaluate(operand_node, facts, state)
    if op == "!" and isinstance(operand, Pointer | Ref):
        return ZERO
    if not isinstance(operand, Scalar):
        return operand if isinstance(operand, Unknown | Random) else Unknown(f"`{op}` of what is no number")
    if op == "+":
        return operand
    return integers.unary({"-": "neg", "!": "not", "~": "~"}[op], operand, facts)


def _address(node: Node, facts: Facts, state: State) -> Value:
    """``&x`` and ``*p``."""
    inner = child(node, "argument")
    if inner is None:
        return Unknown("a broken expression", facts.line(node))
    if facts.node_text(node.children[0]) == "*":
        return dereference(evaluate(inner, facts, state), facts, state, facts.line(node))
    while inner.type == "parenthesized_expression" and inner.named_children:
        inner = inner.named_children[0]
    if inner.type == "subscript_expression":
        base, index = subscript(inner, facts, state)
        return combine("+", base, index) if isinstance(base, Pointer) else Unknown("the address of an element")
    cell = cell_of(inner, facts, state)
    if cell is None:
        named = launching.kernel(facts.node_text(inner), facts.line(node), facts, state)
        return named or Unknown(f"`{_short(facts, node)}` is not followed", facts.line(node))
    held = state.cells.get(cell)
    if isinstance(held, Pointer) and parts.is_array(cell, facts):
        return held
    return Ref(cell)


def dereference(value: Value, facts: Facts, state: State, line: int) -> Value:
    if isinstance(value, Called):
        return value
    if isinstance(value, Ref):
        return parts.record(value.cell, state.cells.get(value.cell, Unknown("a variable without value", line)), facts)
    if isinstance(value, Pointer) and (cell := parts.element(value, ZERO, facts)) is not None and cell in state.cells:
        return parts.record(cell, state.cells[cell], facts)
    return value if isinstance(value, Unknown) else Unknown("it is read from memory", line)


def cell_of(node: Node, facts: Facts, state: State) -> int | None:
    """The variable that an expression names, members of structs included; None for anything else."""
    if node.type == "identifier":
        return facts.find(facts.node_text(node))
    if node.type == "field_expression":
        return _member_cell(node, facts, state)
    if node.type == "pointer_expression" and facts.node_text(node.children[0]) == "*":
        inner = child(node, "argument")
        value = evaluate(inner, facts, state) if inner is not None else None
        if isinstance(value, Pointer):
            return parts.element(value, ZERO, facts, make=True)
        return value.cell if isinstance(value, Ref) else None
    if node.type == "parenthesized_expression" and node.named_children:
        return cell_of(node.named_children[0], facts, state)
    return None


def _member_cell(node: Node, facts: Facts, state: State) -> int | None:
    """Members are variables of their own, called ``s.x``; they come to be when first named."""
    base, member = child(node, "argument"), child(node, "field")
    owner = _owner(base, facts, state) if base is not None else None
    if owner is None or member is None:
        return None
    name = f"{facts.names[owner]}.{facts.node_text(member)}"
    known = parts.member(owner, facts.node_text(member), name, facts)
    if known not in facts.integers and not facts.types.get(known):
        facts.integers[known] = members.integer_type(facts.types.get(owner, ""), facts.node_text(member), facts)
    if known not in state.cells:
        members.array_member(known, owner, facts.node_text(member), facts, state, facts.line(node))
    state.cells.setdefault(known, Unknown(f"nothing that is followed sets `{name}`", facts.line(node)))
    return known


def _owner(base: Node, facts: Facts, state: State) -> int | None:
    """The struct whose member is named: a variable, what a pointer leads to, or an element of an array."""
    while base.type == "parenthesized_expression" and base.named_children:
        base = base.named_children[0]
    if base.type == "subscript_expression":
        holder, index = subscript(base, facts, state)
        owner = parts.element(holder, index, facts, make=True) if isinstance(holder, Pointer) else None
        if owner is not None and isinstance(holder, Pointer) and not facts.types.get(owner):
            facts.types[owner] = holder.element
    elif base.type in ("identifier", "field_expression", "pointer_expression"):
        owner = cell_of(base, facts, state)
    else:
        return None
    held = state.cells.get(owner) if owner is not None else None
    if isinstance(held, Ref):
        return held.cell
    if isinstance(held, Pointer):
        return parts.element(held, ZERO, facts, make=True)
    return None if isinstance(held, Dim3 | Properties | Scalar) else owner


def _field(node: Node, facts: Facts, state: State) -> Value:
    base, member = child(node, "argument"), child(node, "field")
    if base is None or member is None:
        return Unknown("a broken expression", facts.line(node))
    name = facts.node_text(member)
    owner = evaluate(base, facts, state) if base.type in ("identifier", "field_expression") else None
    if isinstance(owner, Dim3):
        axes: Mapping[str, Value] = {"x": owner.x, "y": owner.y, "z": owner.z}
        name = {"width": "x", "height": "y", "depth": "z"}.get(name, name)  # of a cudaExtent
        return axes.get(name, Unknown(f"a dim3 has no `{name}`"))
    if isinstance(owner, Properties):
        return property_value(name, facts.line(node), facts)
    cell = _member_cell(node, facts, state)
    if cell is None:
        return Unknown(f"`{_short(facts, node)}` is not followed", facts.line(node))
    held = state.cells.get(cell, Unknown(f"`{facts.names[cell]}` has no value yet", facts.line(node)))
    return parts.record(cell, held, facts)


def subscript(node: Node, facts: Facts, state: State) -> tuple[Value, Value]:
    """Base and index of ``a[i]``."""
    base, index = child(node, "argument"), _index_node(node)
    if base is None or index is None:
        return Unknown("a broken expression"), ZERO
    return evaluate(base, facts, state), evaluate(index, facts, state)


def _index_node(node: Node) -> Node | None:
    indices = child(node, "indices") or child(node, "index")
    if indices is not None and indices.type == "subscript_argument_list" and indices.named_children:
        return indices.named_children[0]
    return indices


def _subscript(node: Node, facts: Facts, state: State) -> Value:
    holder, index = subscript(node, facts, state)
    if arguments.is_argv(holder):
        return arguments.word(_index_node(node) or node, index, facts)
    if isinstance(holder, Text):
        place = index.expression.constant if isinstance(index, Scalar) else None
        if isinstance(place, int) and 0 <= place < len(holder.text):
            return Scalar(number(ord(holder.text[place])))
    element = parts.element(holder, index, facts) if isinstance(holder, Pointer) else None
    if element is not None:
        held = parts.record(element, state.cells.get(element, Unknown("")), facts)
        if element in state.cells or isinstance(held, Record):
            return held
    return Unknown(f"`{_short(facts, node)}` is read from memory", facts.line(node))


def _conditional(node: Node, facts: Facts, state: State) -> Value:
    condition_node = child(node, "condition")
    yes_node, no_node = child(node, "consequence"), child(node, "alternative")
    if condition_node is None or yes_node is None or no_node is None:
        return Unknown("a broken expression", facts.line(node))
    condition = evaluate(condition_node, facts, state)
    constant = condition.expression.constant if isinstance(condition, Scalar) else None
    if constant is not None:
        return evaluate(yes_node if constant else no_node, facts, state)
    yes, no = evaluate(yes_node, facts, state), evaluate(no_node, facts, state)
    if yes == no:
        return yes
    known = truth(condition, facts)
    other = no if known else yes
    if isinstance(condition, Scalar) and known is not None and isinstance(other, Unknown | Called):
        tie(condition.expression, facts.line(node), facts)  # the other side is for other values of its names
        return yes if known else no
    if isinstance(condition, Scalar) and isinstance(yes, Scalar) and isinstance(no, Scalar):
        chosen = build("?", (condition.expression, yes.expression, no.expression))
        return Scalar(chosen, integers.common(yes.dtype, no.dtype))
    return next(
        (part for part in (condition, yes, no) if isinstance(part, Unknown)), Unknown("a choice between pointers")
    )


def _cast(node: Node, facts: Facts, state: State) -> Value:
    type_node, value_node = child(node, "type"), child(node, "value")
    if type_node is None or value_node is None:
        return Unknown("a broken expression", facts.line(node))
    return convert(evaluate(value_node, facts, state), facts.type_text(type_node), facts)


def _call(node: Node, facts: Facts, state: State) -> Value:
    return calls.call(node, facts, state)


def _new(node: Node, facts: Facts, state: State) -> Value:
    return calls.new(node, facts, state)


def _initializer(node: Node, facts: Facts, state: State) -> Value:
    listed = [part for part in node.named_children if part.type != "comment"]
    return evaluate(listed[0], facts, state) if len(listed) == 1 else Unknown("a list of values", facts.line(node))


def expression_of(value: Value) -> Expression | None:
    return value.expression if isinstance(value, Scalar) else None


_HANDLERS: Mapping[str, Callable[[Node, Facts, State], Value]] = {
    "number_literal": _number,
    "parenthesized_expression": _inner,
    "identifier": _identifier,
    "qualified_identifier": _identifier,
    "template_function": _identifier,
    "true": lambda node, facts, state: ONE,
    "false": lambda node, facts, state: ZERO,
    "null": lambda node, facts, state: ZERO,
    "nullptr": lambda node, facts, state: ZERO,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "pointer_expression": _address,
    "field_expression": _field,
    "subscript_expression": _subscript,
    "conditional_expression": _conditional,
    "cast_expression": _cast,
    "sizeof_expression": size_of,
    "assignment_expression": lambda node, facts, state: storing.assign(node, facts, state),
    "update_expression": lambda node, facts, state: storing.update(node, facts, state),
    "call_expression": _call,
    "new_expression": _new,
    "initializer_list": _initializer,
    "compound_literal_expression": lambda node, facts, state: constructing.literal(node, facts, state),
    "comma_expression": _comma,
    "lambda_expression": lambda node, facts, state: Lambda(node, facts.text, facts.line_override),
    "string_literal": lambda node, facts, state: options.literal(facts.node_text(node), facts.line(node)),
    "char_literal": lambda node, facts, state: options.character(facts.node_text(node), facts.line(node)),
}
