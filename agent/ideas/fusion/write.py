"""Writing it: the second kernel's work on one element, done where the first kernel stores it."""

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.accesses import subscripts_of
from agent.analysis.syntax import bare, contains, descendants, expression_of, text
from agent.analysis.types import type_of
from agent.ideas.bodies import with_names
from agent.ideas.fusion.pair import Pair
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, indent_of, insert_after, replace, source_text
from agent.ideas.view import View
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.dtypes import from_c_type
from agent.workload.expression import Expression
from agent.workload.plan import Launch, Plan, Repeat, Step

SIMPLE = ("identifier", "number_literal", "call_expression", "subscript_expression", "field_expression")


@frozen
class _Argument:
    """What the second kernel's parameter is in the first kernel: an expression there, and a parameter to be added."""

    name: str
    spelled: str
    added: str
    value: Expression


def fused(pair: Pair, view: View) -> Rewrite:
    inline = _inline(pair, view)
    given = _arguments(pair, view)
    added = [one for one in given if one.added]
    plan = _without_second(view.request.plan, pair, [one.value for one in added])
    edits = [] if not added else [_longer_signature([one.added for one in added], view)]
    if inline is not None:
        return Rewrite((*edits, inline), (), plan)
    name = fresh_name(f"{pair.consumer.name}_element", view.document)
    return Rewrite((*edits, *_called(pair, view, name, given)), (_function(pair, view, name, given),), plan)


def _assignment(pair: Pair) -> Node:
    assert pair.store.node.parent is not None
    return pair.store.node.parent


def _inline(pair: Pair, view: View) -> Edit | None:
    """``y[i] = f(y[i])`` alone, the stored expression put in the place of ``y[i]``."""
    work = pair.work
    assignment = expression_of(work.body[0]) if len(work.body) == 1 else None
    stored = _assignment(pair).child_by_field_name("right")
    right = None if assignment is None else assignment.child_by_field_name("right")
    if assignment is None or stored is None or right is None or assignment.type != "assignment_expression":
        return None
    if text(assignment.child_by_field_name("operator")) != "=" or not pair.in_place:
        return None
    reads = [access.node for access in work.accesses if contains(right, access.node)]
    names = [name for name in descendants(right, "identifier") if not any(contains(read, name) for read in reads)]
    known = all(pair.facts.symbols.resolve(name) is None for name in names)
    plain = all(access.root is pair.parameter for access in work.accesses)
    once = len(reads) == 1 or (bare(stored) or stored).type == "identifier"
    same_type = type_of(stored, view.facts.symbols) == from_c_type(pair.parameter.type)
    if not (known and plain and reads and once and same_type):
        return None
    spelled = source_text(view.document, stored)
    inner = spelled if (bare(stored) or stored).type in SIMPLE or _argument_of_call(reads[0]) else f"({spelled})"
    return replace(stored, with_names(view, right, dict.fromkeys(reads, inner)))


def _argument_of_call(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "argument_list"


def _arguments(pair: Pair, view: View) -> list[_Argument]:
    """The second kernel's parameters that its work uses, found in the first kernel or added to it."""
    used = {
        symbol.name
        for statement in pair.work.body
        for name in descendants(statement, "identifier")
        if (symbol := pair.facts.symbols.resolve(name)) is not None and symbol.space == "parameter"
    }
    own = {str(a): p for p, a in zip(view.kernel.parameters, pair.first.arguments, strict=False)}
    taken: set[str] = set()
    found: list[_Argument] = []
    for parameter, argument in zip(pair.consumer.parameters, pair.second.arguments, strict=False):
        if parameter.name not in used or parameter.name == pair.parameter.name:
            continue
        there = own.get(str(argument))
        if there is not None and there.element == parameter.element and (parameter.const or not there.const):
            found.append(_Argument(parameter.name, there.name, "", argument))
        elif parameter.pointer_depth == 0 and argument.constant is not None:
            found.append(_Argument(parameter.name, str(argument), "", argument))
        else:
            name = fresh_local(parameter.name, view.document, view.kernel, *taken)
            declared = view.document.slice_text(parameter.span)
            found.append(_Argument(parameter.name, name, _renamed(declared, parameter.name, name), argument))
            taken.add(name)
    return found


def _renamed(declared: str, old: str, new: str) -> str:
    return declared if old == new else new.join(declared.rsplit(old, 1))


def _longer_signature(added: list[str], view: View) -> Edit:
    end = max((p.span.end for p in view.kernel.parameters), default=view.kernel.name_span.end)
    return Edit(Span(end, end), "".join(f", {one}" for one in added).encode())


def _function(pair: Pair, view: View, name: str, given: list[_Argument]) -> str:
    work, element = pair.work, pair.parameter.type
    held = fresh_local("value", view.document, pair.consumer)
    renamed = {access.node: held for access in work.accesses if access.root is pair.parameter}
    lines: list[str] = []
    for statement in work.body:
        outer = indent_of(view.document, statement)
        first, *more = with_names(view, statement, renamed).split("\n")
        lines += ["    " + first, *("    " + line.removeprefix(outer) for line in more)]
    declared = {p.name: view.document.slice_text(p.span) for p in pair.consumer.parameters}
    index = [f"{work.place.symbol.type} {work.place.symbol.name}"] if _needs_index(pair) else []
    parameters = ", ".join([f"{element} {held}", *index, *(declared[one.name] for one in given)])
    result, end = (element, [f"    return {held};"]) if pair.in_place else ("void", [])
    return "\n".join(
        [
            f"// What {pair.consumer.name} does to one element.",
            f"__device__ __forceinline__ {result} {name}({parameters}) {{",
            *lines,
            *end,
            "}\n",
        ]
    )


def _needs_index(pair: Pair) -> bool:
    """Whether the work uses its index for anything but the element itself."""
    own = [access.node for access in pair.work.accesses if access.root is pair.parameter]
    return any(
        pair.facts.symbols.resolve(name) is pair.work.place.symbol and not any(contains(node, name) for node in own)
        for statement in pair.work.body
        for name in descendants(statement, "identifier")
    )


def _called(pair: Pair, view: View, name: str, given: list[_Argument]) -> list[Edit]:
    assignment = _assignment(pair)
    stored = assignment.child_by_field_name("right")
    statement = assignment.parent
    assert stored is not None and statement is not None
    index = [source_text(view.document, subscripts_of(pair.store.node)[0])] if _needs_index(pair) else []
    rest = "".join(f", {one}" for one in [*index, *(one.spelled for one in given)])
    if pair.in_place:
        return [replace(stored, f"{name}({source_text(view.document, stored)}{rest})")]
    call = f"{name}({source_text(view.document, pair.store.node)}{rest});"
    if statement.parent is not None and statement.parent.type == "compound_statement":
        return [insert_after(view.document, statement, call)]
    return [replace(statement, f"{{ {source_text(view.document, statement)} {call} }}")]


def _without_second(plan: Plan, pair: Pair, added: list[Expression]) -> Plan:
    longer = evolve(pair.first, arguments=(*pair.first.arguments, *added))

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Repeat):
                found.append(evolve(step, body=changed(step.body)))
            elif step is pair.first:
                found.append(longer)
            elif not _is(step, pair.second, steps, pair.first):
                found.append(step)
        return tuple(found)

    return evolve(plan, steps=changed(plan.steps))


def _is(step: Step, second: Launch, steps: tuple[Step, ...], first: Launch) -> bool:
    return step is second and any(one is first and steps[at + 1] is step for at, one in enumerate(steps[:-1]))
