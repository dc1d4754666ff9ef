"""Facts about a kernel in the words that lenses and hovers show."""

from __future__ import annotations

from collections.abc import Iterator

from agent.source.document import Document
from agent.source.indirect import launched_at
from agent.source.kernel import Kernel
from cuda_lsp.facts.facts import Cost, Facts
from cuda_lsp.facts.store import Known


def in_short(known: Known | None) -> str | None:
    """``42 registers, 1.0 KB shared, occupancy 75 % (registers) on sm_90``; None while nothing is known."""
    if known is None:
        return None
    more = "" if known.fresh else " ..."
    if known.facts.costs:
        return cost(known.facts.costs[0]) + more
    if any(message.severity == "error" for message in known.facts.messages):
        return "does not compile" + more
    return known.facts.problem.split("\n")[0] + more if known.facts.problem else None


def cost(found: Cost) -> str:
    parts = [f"{found.resources.registers} registers"]
    if found.resources.spill_stores:
        parts.append(f"{found.resources.spill_stores} B spilled")
    if found.shared:
        parts.append(f"{size(found.shared)} shared")
    if found.occupancy and found.occupancy.blocks_per_sm:
        parts.append(f"occupancy {found.occupancy.ratio * 100:.0f} % ({found.occupancy.limiter})")
    elif found.occupancy:
        parts.append(f"cannot be launched: too much {found.occupancy.limiter}")
    return f"{', '.join(parts)} on {found.arch}"


def size(count: int) -> str:
    """Bytes as programmers count shared memory: 1.0 KB is 1024 B."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KB"


def signature(document: Document, kernel: Kernel) -> str:
    return " ".join(document.slice_text(kernel.signature).split())


def at_length(document: Document, kernel: Kernel, known: Known | None) -> Iterator[str]:
    """One line for each thing that is known, without mark-up."""
    if kernel.damage:
        yield f"cannot be rewritten: {kernel.damage}"
    launches = launched_at(document, kernel.name)
    yield f"launched at line {', '.join(map(str, launches))}" if launches else "not launched in this file"
    if known is None:
        yield "not compiled yet"
        return
    if not known.fresh:
        yield "the following is from before the last edit"
    yield from _facts(known.facts)


def _facts(facts: Facts) -> Iterator[str]:
    yield from map(cost, facts.costs)
    if facts.block is not None:
        yield f"{facts.block} threads a block at the first launch"
    if facts.workload:
        yield f"workload: {facts.workload} (from: {facts.origin})"
    elif facts.questions:
        yield f"no workload: {facts.questions}"
    if facts.built:
        yield f"flags of the build: {facts.built}"
    if facts.problem:
        yield facts.problem
