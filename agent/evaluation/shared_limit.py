"""Whether the host code of a rewrite's file allows its launches the shared memory that they ask for."""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from agent.source.document import Document
from agent.source.lexing import scan
from agent.workload.bind import FREE_SHARED
from agent.workload.binding import Bound, BoundLaunch
from agent.workload.expression import ExpressionError
from agent.workload.program import Program
from agent.workload.static.assemble import launches
from agent.workload.static.inference import trace_all
from agent.workload.static.state import Facts
from agent.workload.static.values import ANY, LaunchItem, Scalar, Unknown
from agent.workload.types import split_name

_RAISED = re.compile(rb"FuncSetAttribute\s*\([^;]*?MAX_?DYNAMIC_?SHARED", re.IGNORECASE)
_MAIN = re.compile(rb"\bint\s+main\s*\(")


@frozen
class Ungranted:
    """A launch that needs a higher limit than the host is seen to set. ``fails``: it is sure that nobody sets it."""

    words: str
    fails: bool


def ungranted(original: Program, candidate: Program, bound: Bound, static: Mapping[str, int]) -> Ungranted | None:
    """The first launch of the plan, at the sizes of ``bound``, that fails in the user's program for want of
    ``cudaFuncSetAttribute``, or of which that cannot be told; None where all are allowed what they ask for. ``static``
    are the bytes of shared memory that each kernel declares by itself.

    A candidate of a search is judged before its launches are edited: these are not looked at, the call is written with
    them.
    """
    asking = [step for step in bound.steps if isinstance(step, BoundLaunch) and step.shared]
    beyond = {one.kernel: one.shared for one in asking if one.shared + static.get(one.kernel, 0) > FREE_SHARED}
    if not beyond:
        return None
    facts = trace_all(candidate.document)
    if not any(any(_launched(facts, _bare(launch.kernel))) for launch in original.plan.launches()):
        told = ", ".join(_asked(kernel, shared) for kernel, shared in beyond.items())
        return None if _raised(candidate.document) else Ungranted(told, False)
    for kernel in beyond:
        bare = _bare(kernel)
        short = _short(facts, bare, static.get(kernel, 0))
        if short is not None:
            return _found(short, static.get(kernel, 0), original, candidate, facts)
    return None


def _found(item: LaunchItem, static: int, original: Program, candidate: Program, facts: Facts) -> Ungranted:
    """A launch without the call; it may stand where this file does not show it, or be missing in the original too."""
    document, shared = candidate.document, _bytes(item.shared, facts) or 0
    before = trace_all(original.document)
    own = _short(before, item.kernel, static) is not None
    unseen = _raised(document) and not any(one.kernel in (item.kernel, ANY.kernel) for one in facts.granted)
    elsewhere = item.granted is None and (unseen or _MAIN.search(scan(document.text).code) is None)
    if own or elsewhere:
        return Ungranted(_asked(item.kernel, shared), False)
    call = f"cudaFuncSetAttribute({item.kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {shared})"
    beside = f" beside {static} of its own" if static else ""
    raised = "" if item.granted is None else f"; it was raised to {_bytes(item.granted, facts)}"
    return Ungranted(
        f"the launch of `{item.kernel}` at line {item.line} fails on a card: it asks for {shared} bytes of dynamic "
        f"shared memory{beside}, and {FREE_SHARED} are allowed in all unless the limit is raised{raised}; put "
        f"`{call};` before it",
        True,
    )


def _asked(kernel: str, shared: int) -> str:
    return f"that the host lets {kernel} have {shared} bytes of dynamic shared memory (cudaFuncSetAttribute)"


def _launched(facts: Facts, kernel: str) -> Iterator[LaunchItem]:
    return (item for item in launches(tuple(facts.items)) if item.kernel == kernel)


def _short(facts: Facts, kernel: str, static: int) -> LaunchItem | None:
    """The first launch of a kernel that asks for more than it is allowed, as far as both are known."""
    for item in _launched(facts, kernel):
        shared = _bytes(item.shared, facts)
        if shared is None or shared + static <= FREE_SHARED:
            continue
        granted = None if item.granted is None else _bytes(item.granted, facts)
        if item.granted is None or (granted is not None and granted < shared):
            return item
    return None


def _bytes(value: Scalar | Unknown, facts: Facts) -> int | None:
    try:
        return int(value.expression.evaluate(facts.values())) if isinstance(value, Scalar) else None
    except ExpressionError:
        return None


def _raised(document: Document) -> bool:
    """Whether some code of the file raises the limit, where it is not followed."""
    return _RAISED.search(scan(document.text).code) is not None


def _bare(kernel: str) -> str:
    return split_name(kernel)[0].split("::")[-1]
