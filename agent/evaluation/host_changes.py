"""What a rewrite changes of the file's host code and no plan shows: it is never run here, so the verdict names it."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.lexing import without_comments, word_set
from agent.source.nodes import LOOPS, descendants, walk
from agent.source.nodes import field as child
from agent.workload.plan import Fill, Plan, Repeat, Step
from agent.workload.program import Program
from agent.workload.workload import Workload

NAMED = 4
"""Statements that are named; of more it is said how many there are."""
LONGEST = 90
LONG = 1500
"""Statements: to find out which of more have moved takes too long."""

_CALL = re.compile(r"([A-Za-z_]\w*)\s*(?:<[\w\s,:*]*>)?\s*\(")
_SIMPLE = frozenset({"expression_statement", "declaration"})
_HEADS = LOOPS | {"if_statement", "switch_statement"}
_LAUNCH = re.compile(r"<<<|\bcu(?:da)?Launch\w*Kernel\w*\s*\(|\bcudaLaunchKernelEx")
_PRINTS = re.compile(r"^(?:std::)?(?:cout|cerr|clog)\b")
_LEAVES = re.compile(r"\b(?:return|exit|abort|throw|goto)\b")
_CHECKS = re.compile(r"cudaSuccess|\b(?:err|status|rc)\w*\b", re.IGNORECASE)
_CLEARS = re.compile(r"^\W*(?:\w+\()?cudaMemset(?:Async)?\s*\(\s*(\w+)\s*,")
_WORD = re.compile(r"[A-Za-z_]\w*")
_STORES = re.compile(r"^[^=(]*[\])]\s*(?:[-+*/%&|^]|<<|>>)?=[^=]|^\*")

# What the plan is read off, or what changes nothing that a launch reads or leaves.
_SHOWN = word_set(
    "cudaMalloc cudaMallocAsync cudaMallocManaged cudaMallocPitch cudaFree cudaFreeAsync cudaFuncSetAttribute "
    "cudaFuncSetCacheConfig cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize "
    "cudaStreamDestroy cudaStreamWaitEvent cudaEventCreate "
    "cudaEventCreateWithFlags cudaEventRecord cudaEventElapsedTime cudaEventDestroy cudaGetLastError "
    "cudaPeekAtLastError cudaGetErrorString cudaGetErrorName cudaGetDevice cudaSetDevice cudaGetDeviceProperties "
    "cudaDeviceGetAttribute cudaOccupancyMaxPotentialBlockSize cudaOccupancyMaxActiveBlocksPerMultiprocessor"
)
_PLAIN = word_set(
    "if while for switch return sizeof alignof decltype static_cast reinterpret_cast const_cast dim3 min max ceil "
    "floor int unsigned long short char bool float double size_t data size printf fprintf puts fputs perror now count"
)
_ORDERS = word_set(
    "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaStreamWaitEvent cudaEventRecord cudaSetDevice"
)


@frozen
class _Statement:
    """A statement of a host function, or the head of one (``if``, a loop), on one line. ``launches``: it, or something
    that it is the head of, does; ``leaves``: something below it leaves what it stands in."""

    text: str
    line: int
    kind: str
    launches: bool
    leaves: bool


def host_changes(original: Program, candidate: Program, workload: Workload) -> tuple[str, ...]:
    """In words, the statements of the rewrite's host functions that are new, and those of the original's that are gone,
    unless they are what the plan was read off. Nothing for a candidate whose host code is the original's."""
    if _bodies(original.document) == _bodies(candidate.document):
        return ()
    gone, new = _apart(list(_statements(original.document)), list(_statements(candidate.document)))
    names = {size.name for size in workload.sizes} | {constant.name for constant in workload.constants}
    own = [{name for name, _ in _functions(side.document)} for side in (original, candidate)]
    told = [one for one in new if _matters(one, own[1], names, candidate.plan)]
    lost = [one for one in gone if _was_needed(one, own[0], original.plan)]
    return (
        *_said("host code that changed and is not a part of the plan", told),
        *_said("host code of the original that is gone", lost),
    )


def _bodies(document: Document) -> list[bytes]:
    return [document.text[body.start_byte : body.end_byte] for _, body in _functions(document)]


def _apart(before: list[_Statement], after: list[_Statement]) -> tuple[list[_Statement], list[_Statement]]:
    """The statements that are gone, and those that are new; in long programs not those that only moved."""
    old, new = [one.text for one in before], [one.text for one in after]
    if max(len(old), len(new)) > LONG:
        known = frozenset(old), frozenset(new)
        return [one for one in before if one.text not in known[1]], [one for one in after if one.text not in known[0]]
    changes = [one for one in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if one[0] != "equal"]
    return (
        [one for _, start, end, _, _ in changes for one in before[start:end]],
        [one for _, _, _, start, end in changes for one in after[start:end]],
    )


def _said(what: str, statements: list[_Statement]) -> Iterator[str]:
    if statements:
        shown = [f"line {one.line} `{_short(one.text)}`" for one in statements[:NAMED]]
        more = [f"{len(statements) - NAMED} more"] if len(statements) > NAMED else []
        yield f"{what} ({', '.join([*shown, *more])})"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _matters(one: _Statement, own: set[str], names: set[str], plan: Plan) -> bool:
    """Whether a new statement does what the plan does not show."""
    if one.kind in LOOPS:
        return not (one.launches and _repeats(plan))
    if one.kind in _HEADS:
        by_size = not names.isdisjoint(_WORD.findall(one.text))
        return _CHECKS.search(one.text) is None and (not by_size if one.launches else one.leaves)
    if one.launches or _PRINTS.match(one.text):
        return False
    strange = _calls(one.text) - _SHOWN - _PLAIN - own
    cleared = _CLEARS.match(one.text)
    if cleared is not None and cleared[1] in _cleared(plan):
        return False
    return bool(strange) or _sets(one.text, names) or _STORES.match(one.text) is not None


def _was_needed(one: _Statement, own: set[str], plan: Plan) -> bool:
    """Of what is gone, allocations and launches are shown by the plan, and numbers by what is launched."""
    if one.kind in LOOPS:
        return not (one.launches and _repeats(plan))
    if one.kind in _HEADS or one.launches or _PRINTS.match(one.text):
        return False
    calls = _calls(one.text)
    return bool(calls - _SHOWN - _PLAIN - own or calls & _ORDERS) or _STORES.match(one.text) is not None


def _repeats(plan: Plan) -> bool:
    return any(isinstance(step, Repeat) for step in plan.steps)


def _calls(text: str) -> set[str]:
    return {name for name in _CALL.findall(text) if not name.isupper()}


def _sets(text: str, names: set[str]) -> bool:
    """Whether a statement gives a number of the workload its value."""
    found = re.findall(r"([A-Za-z_]\w*)\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)", text)
    return any(name in names for name in found)


def _cleared(plan: Plan) -> Iterator[str]:
    """What the plan clears itself."""
    yield from (scratch.name for scratch in plan.scratch if scratch.zeroed)
    yield from (step.buffer for step in _steps(plan.steps) if isinstance(step, Fill))


def _steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, Repeat):
            yield from _steps(step.body)


def _functions(document: Document) -> Iterator[tuple[str, Node]]:
    """The functions of the host, by their bare names."""
    for function in descendants(document.tree.root_node, "function_definition"):
        body = child(function, "body")
        head = document.blanked[function.start_byte : body.start_byte if body is not None else function.end_byte]
        if body is not None and b"__global__" not in head and b"__device__" not in head:
            name = re.findall(rb"([A-Za-z_~]\w*)\s*\(", head)
            yield (name[0].decode() if name else "", body)


def _statements(document: Document) -> Iterator[_Statement]:
    for _, body in _functions(document):
        for node in walk(body):
            below = node.parent is not None and node.parent.type in LOOPS and child(node.parent, "body") != node
            if node.type in _HEADS or (node.type in _SIMPLE and not below):
                yield _statement(node, document)


def _statement(node: Node, document: Document) -> _Statement:
    body = child(node, "consequence") or child(node, "body") if node.type in _HEADS else None
    text, whole = (
        " ".join(without_comments(document.text[node.start_byte : end]).decode("utf-8", "replace").split())
        for end in (body.start_byte if body is not None else node.end_byte, node.end_byte)
    )
    launches, leaves = (pattern.search(whole) is not None for pattern in (_LAUNCH, _LEAVES))
    return _Statement(text.removesuffix(";"), node.start_point.row + 1, node.type, launches, leaves)
