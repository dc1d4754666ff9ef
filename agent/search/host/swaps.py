"""Loops that only exchange two buffers, before a launch that writes both anew: host code can do without them.

Where a launch writes two buffers and reads neither, which of the two memories has which name no longer matters, as long
as everything that follows goes by the names. The plan that was verified keeps the loop, as it speaks of the memories;
the host code that is written from it need not.
"""

from collections.abc import Iterator

from attrs import evolve
from tree_sitter import Node

from agent.search.host.problem import Inexpressible
from agent.search.host.sites import bare, node_of, sites_of
from agent.search.host.written import in_macro, only_written
from agent.source.document import Document
from agent.source.nodes import IDENTIFIERS, descendants, enclosing, node_text
from agent.workload.plan import Launch, Plan, Repeat, Step, Swap
from agent.workload.workload import Buffer, Workload

_BY_NAME = ("cudaMalloc", "cudaMallocManaged", "cudaMemcpy", "cudaMemset", "cudaFree", "swap")
"""Calls that leave no other name for a buffer behind."""


def without_needless_swaps(old: Plan, plan: Plan, document: Document, workload: Workload) -> Plan:
    """The plan without the loops of exchanges that the host code can do without. ``document`` has the new kernels and
    still the launch sites of ``old``. A directive states the whole plan, and keeps them."""
    if workload.origin.kind == "directive":
        return plan
    kept = [
        step
        for at, step in enumerate(plan.steps)
        if at + 1 == len(plan.steps) or not _needless(step, plan.steps[at + 1], old, document, workload)
    ]
    return evolve(plan, steps=tuple(kept))


def _needless(step: Step, following: Step, old: Plan, document: Document, workload: Workload) -> bool:
    pair = _exchanged(step)
    if pair is None or not isinstance(following, Launch):
        return False
    held = [buffer for buffer in workload.buffers if buffer.name in pair and buffer.host]
    if len(held) != 2 or (held[0].extent, held[0].dtype) != (held[1].extent, held[1].dtype):
        return False
    return _written_anew(following, pair, document) and _goes_by_name(held, old, document)


def _exchanged(step: Step) -> frozenset[str] | None:
    """The two names that a loop exchanges, where it does nothing else."""
    if not isinstance(step, Repeat) or not all(isinstance(one, Swap) for one in step.body):
        return None
    pairs = {frozenset((one.first, one.second)) for one in step.body if isinstance(one, Swap)}
    return next(iter(pairs)) if len(pairs) == 1 else None


def _written_anew(launch: Launch, pair: frozenset[str], document: Document) -> bool:
    """Whether a launch takes both buffers, each once and whole, and only writes to them."""
    kernel = next((one for one in document.kernels if one.name == bare(launch.kernel)), None)
    places = [at for at, argument in enumerate(launch.arguments) if argument.names & pair]
    whole = [launch.arguments[at].value for at in places if launch.arguments[at].op == "name"]
    if kernel is None or sorted(map(str, whole)) != sorted(pair) or len(places) != len(whole):
        return False
    return all(only_written(document, kernel.name, at) for at in places)


def _goes_by_name(buffers: list[Buffer], old: Plan, document: Document) -> bool:
    """Whether the one function that launches the kernels has both pointers for itself, and no other name for them."""
    names = {buffer.host for buffer in buffers}
    try:
        sites = [site for launch in old.launches() for site in sites_of(document, launch.kernel)]
        functions = {enclosing(node_of(document, site), "function_definition") for site in sites}
    except Inexpressible:
        return False
    function = next(iter(functions)) if len(functions) == 1 else None
    if function is None or in_macro(document, names) or any(descendants(function, "lambda_expression")):
        return False
    body = function.child_by_field_name("body")
    inside = list(_uses(body, names, document)) if body is not None else []
    return sum(map(_declares, inside)) == 2 and all(_is_harmless(use, document) for use in inside)


def _uses(body: Node, names: set[str], document: Document) -> Iterator[Node]:
    return (node for node in descendants(body, *IDENTIFIERS) if node_text(document, node) in names)


def _declares(name: Node) -> bool:
    """Whether a pointer is declared there, alone or with others, with no value or a null."""
    above = name.parent
    if above is None or above.type != "pointer_declarator" or above.parent is None:
        return False
    if above.parent.type == "init_declarator":
        value = above.parent.child_by_field_name("value")
        return value is not None and value.type in ("null", "number_literal")
    return above.parent.type == "declaration"


def _is_harmless(name: Node, document: Document) -> bool:
    if _declares(name):
        return True
    above = name.parent
    if above is not None and above.type in ("pointer_expression", "cast_expression") and above.parent is not None:
        above = above.parent  # cudaMalloc(&x, ...), cudaMalloc((void**)&x, ...)
        above = above.parent if above.type == "cast_expression" else above
    call = above.parent if above is not None and above.type == "argument_list" else None
    if call is None or call.type != "call_expression":
        return False
    called = node_text(document, call)
    function = call.child_by_field_name("function")
    plain = node_text(document, function).split("::")[-1].strip() if function is not None else ""
    address = name.parent is not None and name.parent.type != "argument_list"
    if address:
        return plain.startswith("cudaMalloc")
    return "<<<" in called.partition("(")[0] or plain.startswith(_BY_NAME)
