"""The verdicts of a search, kept until it is over and then written as proof records."""

import re
from collections.abc import Collection
from pathlib import Path

from attrs import define, field

from agent.evaluation.judge import Judged
from agent.evaluation.prepare import Prepared
from agent.evaluation.record import record, write
from agent.evaluation.setting import FULL
from agent.search.node import Node

_OTHER = re.compile(r"[^\w.-]+")


@define
class Kept:
    """``lossy`` as the search was asked; ``screens``: those are wanted too. The records tell the search's secret
    numbers: none is written before its end."""

    lossy: bool = False
    screens: bool = True
    found: list[tuple[Prepared, Node, Judged]] = field(factory=list)

    def wants(self, prepared: Prepared) -> bool:
        """Whether verdicts at the depth of ``prepared`` are wanted."""
        return self.screens or prepared.setting.depth == FULL

    def keep(self, prepared: Prepared, node: Node, judged: Judged) -> None:
        """Remember a verdict with all that its record is made of."""
        self.found.append((prepared, node, judged))

    def write(self, folder: str | Path, only: Collection[str] | None = None) -> tuple[tuple[str, Path], ...]:
        """A file for each verdict (of the nodes ``only``, where given): the node's identifier and the file, in order.
        Raises Unwritable for the first that cannot be written."""
        written = []
        for prepared, node, judged in self.found:
            if only is None or node.identifier in only:
                path = Path(folder) / file_name(prepared, node.identifier, judged)
                write(record(prepared, node.program, judged, self.lossy), path)
                written.append((node.identifier, path))
        return tuple(written)


def file_name(prepared: Prepared, node: str, judged: Judged) -> str:
    """``softmax-1.2-full-0f3a9c21.json``: kernel, node, depth, and the beginning of the candidate's hash."""
    kernel = _OTHER.sub("_", prepared.workload.kernel)[:60]
    parts = (kernel, node, prepared.setting.depth, judged.verdict.evidence.candidate_hash[:8])
    return "-".join(parts) + ".json"
