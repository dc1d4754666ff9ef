"""Which launch site in the file is which launch of the plan, and where a site stands in the host code."""

import re
from collections.abc import Mapping, Sequence

from tree_sitter import Node

from agent.ideas.rewriting import indent_of
from agent.search.host.problem import Inexpressible
from agent.source.document import Document
from agent.source.launch import LaunchSite
from agent.source.nodes import ancestors, descendants, enclosing
from agent.workload.plan import Launch
from agent.workload.types import split_name


def bare(name: str) -> str:
    """``ns::scan<float>`` -> ``scan``."""
    return split_name(name)[0].split("::")[-1].strip()


def sites_of(document: Document, kernel: str) -> tuple[LaunchSite, ...]:
    """The launches of a kernel by host code, in text order."""
    inside = [one.span for one in document.kernels]
    return tuple(
        site
        for site in document.launches
        if site.kernel == bare(kernel) and not any(span.start <= site.span.start < span.end for span in inside)
    )


def matched(launches: Sequence[Launch], document: Document) -> tuple[tuple[LaunchSite, ...], ...]:
    """For each launch of the original plan its sites: several where the file writes the very same launch several times
    (a warm-up and a timed one).

    Raises Inexpressible where the sites of a kernel are not as many as the plan's launches of it.
    """
    groups: dict[str, list[tuple[LaunchSite, ...]]] = {}
    found: list[tuple[LaunchSite, ...]] = []
    for launch in launches:
        name = bare(launch.kernel)
        if name not in groups:
            groups[name] = _alike(sites_of(document, name))
            wanted = sum(1 for other in launches if bare(other.kernel) == name)
            _check(groups[name], wanted, launch)
        found.append(groups[name].pop(0))
    return tuple(found)


def check_direct(launches: Sequence[Launch], document: Document) -> None:
    """Raises Inexpressible where a kernel is launched through a pointer or by a call as well: that is not edited."""
    names = {bare(launch.kernel) for launch in launches}
    other = next((site for site in document.indirect_launches if site.kernel in names), None)
    if other is not None:
        raise Inexpressible(f"{other.kernel} is launched by {other.how} at line {other.line}, which is not edited")


def _check(groups: Sequence[tuple[LaunchSite, ...]], wanted: int, launch: Launch) -> None:
    if not groups:
        raise Inexpressible(f"no launch of {launch.kernel} is in this file")
    if len(groups) != wanted:
        first = groups[0][0]
        raise Inexpressible(
            f"{launch.kernel} is launched in several places, and not all of them were verified (line {first.line})"
        )
    broken = next((site for group in groups for site in group if site.damage), None)
    if broken is not None:
        raise Inexpressible(f"the launch at line {broken.line} has {broken.damage}")


def _alike(sites: Sequence[LaunchSite]) -> list[tuple[LaunchSite, ...]]:
    groups: dict[tuple[object, ...], list[LaunchSite]] = {}
    for site in sites:
        key = (site.callee, site.grid, site.block, site.shared, site.stream, site.arguments, site.function)
        groups.setdefault(key, []).append(site)
    return [tuple(group) for group in groups.values()]


def node_of(document: Document, site: LaunchSite) -> Node:
    """The call expression of a launch."""
    node = document.tree.root_node.descendant_for_byte_range(site.span.start, site.span.end)
    while node is not None and not (node.type == "call_expression" and node.start_byte == site.span.start):
        node = node.parent
    if node is None:
        raise Inexpressible(f"the launch at line {site.line} cannot be found in the syntax tree")
    return node


def statement_of(document: Document, site: LaunchSite) -> Node:
    """The statement around a launch: usually the launch alone, sometimes a macro call that wraps it."""
    found = enclosing(node_of(document, site), "expression_statement")
    if found is None:
        raise Inexpressible(f"the launch at line {site.line} is no statement of its own")
    return found


def is_alone(document: Document, site: LaunchSite) -> bool:
    """Whether the statement is the launch and nothing else."""
    parent = node_of(document, site).parent
    return parent is not None and parent.type == "expression_statement"


def names_in_scope(document: Document, node: Node) -> frozenset[str]:
    """Names that host code at ``node`` can see: declared before it in a block around it, parameters of its function,
    what stands at file level above it, and macros."""
    found = {macro.name for macro in document.macros}
    for above in (node, *ancestors(node)):
        if above.type == "function_definition":
            found |= _declared(above.child_by_field_name("declarator"), document)
        parent = above.parent
        if parent is None:
            continue
        if parent.type in ("compound_statement", "translation_unit", "declaration_list", "case_statement"):
            for sibling in parent.named_children:
                if sibling.start_byte >= above.start_byte:
                    break
                if sibling.type == "declaration":
                    found |= _declared(sibling, document)
        if above.type in ("for_statement", "for_range_loop") and above is not node:
            found |= _declared(above.child_by_field_name("initializer"), document)
            found |= _declared(above.child_by_field_name("declarator"), document)
    return frozenset(found)


def _declared(node: Node | None, document: Document) -> set[str]:
    """Every identifier that a declaration introduces (those in its initialisers too, which were in scope anyway)."""
    if node is None:
        return set()
    return {
        document.text[one.start_byte : one.end_byte].decode("utf-8", "replace")
        for one in descendants(node, "identifier")
    }


def arguments_of(launch: Launch, site: LaunchSite) -> Mapping[str, str]:
    """What the site calls each name that the plan passes on as it is: ``rows`` -> ``m``, ``x`` -> ``d_x``."""
    found: dict[str, str] = {}
    for argument, text in zip(launch.arguments, site.arguments, strict=False):
        if argument.op == "name":
            found.setdefault(str(argument.value), text)
    return found


def unit_at(document: Document, place: Node) -> str:
    """One step of indentation as the code around has it."""
    indent = indent_of(document, place)
    return "\t" if indent.startswith("\t") else "    " if len(indent) % 4 == 0 else "  "


def check_of(document: Document) -> str:
    """``CHECK`` of ``CHECK(cudaMalloc(...))``, if all allocations of the file stand in one and the same."""
    text = document.text.decode("utf-8", "replace")
    around = {found[1] for found in re.finditer(r"(?:(\w+)\s*\(\s*)?\bcudaMalloc\s*\(", text)}
    return next(iter(around)) or "" if len(around) == 1 else ""


def checked(call: str, check: str) -> str:
    """A call of the runtime as a statement, in the file's own error check where it has one."""
    return f"{check}({call});" if check else f"{call};"
