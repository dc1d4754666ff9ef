"""What is known of a node, in words and numbers: for whoever is asked to improve it."""

from collections.abc import Iterator

from agent.evaluation.measures.room import room
from agent.evaluation.prepare import Prepared
from agent.search.node import Node


def facts(node: Node, prepared: Prepared) -> tuple[str, ...]:
    """A sentence each: contract, distance to the floor, what limits it, resources, what was reached so far."""
    return tuple(_facts(node, prepared))


def _facts(node: Node, prepared: Prepared) -> Iterator[str]:
    yield f"the original's contract, which a rewrite must keep: {prepared.contract.summary}"
    found = room(prepared)
    setting = prepared.setting
    card = setting.device.name if found.measured else setting.target.name
    if found.ratio is not None:
        yield (
            f"the original takes {found.ratio:.2f}x of its {found.floor} on {card}, {found.how} "
            f"({found.counted:.3g} bytes of DRAM traffic counted, {found.needed:.3g} needed; {found.note})"
        )
    if node.verdict is None:
        for name, used in prepared.build.resources.items():
            yield f"{name} uses {used.registers} registers a thread and {used.static_shared} bytes of shared memory"
        return
    speed = node.verdict.speed
    if speed.ratio is not None:
        limit = f", limited by {speed.candidate_limit}" if speed.candidate_limit else ""
        yield f"the code here is a rewrite already: {speed.ratio:.2f}x of the original's speed, {speed.state}{limit}"
    for name, (_, now) in node.verdict.evidence.resources.items():
        if now is not None:
            yield f"{name} uses {now.registers} registers a thread and {now.static_shared} bytes of shared memory"


def counters(node: Node, prepared: Prepared) -> tuple[tuple[str, float], ...]:
    """What was counted of a node, as names and values of the whole grid; none where it could not be counted."""
    if node.verdict is not None:
        return tuple((name, now) for name, (_, now) in node.verdict.evidence.counters.items())
    found = prepared.original_estimate
    return () if isinstance(found, str) else (("DRAM bytes", found.dram_bytes), *found.counts.items())
