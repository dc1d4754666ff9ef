"""Who is next: documents take turns, and within a document jobs go in the order in which they were asked for."""

from collections.abc import Sequence

from attrs import define, field

from cuda_lsp.jobs.job import Job


@define
class Turns:
    """Remembers when each document was last served."""

    _served: dict[str, int] = field(factory=dict)
    _count: int = 0

    def next(self, waiting: Sequence[Job], running: Sequence[Job]) -> Job:
        """Of ``waiting`` (oldest first, not empty): the oldest of the document that has the fewest jobs running and,
        of those, was served longest ago."""
        busy = [job.uri for job in running]
        chosen = min(waiting, key=lambda job: (busy.count(job.uri), self._served.get(job.uri, 0)))
        self._count += 1
        # Documents without a job need no memory: a newcomer is served first in any case.
        self._served = {uri: at for uri, at in self._served.items() if uri in {job.uri for job in waiting}}
        self._served[chosen.uri] = self._count
        return chosen
