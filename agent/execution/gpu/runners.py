"""The runner processes of one card: a warm one that waits, and one for each program that was run lately."""

import contextlib
import threading
from collections import OrderedDict

from agent.execution.children import gpu_messages as say
from agent.execution.process import Child, ChildDied, ChildTimeout

MODULE = "agent.execution.children.runner"
START_SECONDS = 60.0
IDLE_SECONDS = 20.0

KEPT = 3
"""Programs whose runners are kept at least: an original, its float64 twin, the candidate at hand."""


class Runners:
    """Never two programs of users in one process: a runner belongs to the build that it ran first, and what it holds
    is loaded and laid out anew for each run. All are let go after :data:`IDLE_SECONDS` without use."""

    def __init__(self, kept: int = KEPT) -> None:
        """``kept``: how many programs' runners may wait for their next run at once."""
        self._most = kept
        self._lock = threading.Lock()
        self._warm: Child | None = None
        self._coming: list[Child] = []
        self._ready: list[Child] = []
        self._kept: OrderedDict[str, Child] = OrderedDict()
        self._timer: threading.Timer | None = None

    def of(self, key: str) -> tuple[Child, bool]:
        """The runner of this build, or a fresh one; and whether it is fresh (its first message is then still to be
        read). It is the caller's until it is given to :meth:`keep` or closed."""
        self._busy()
        with self._lock:
            kept = self._kept.pop(key, None)
        if kept is not None and kept.usable:
            return kept, False
        if kept is not None:
            kept.close()
        return self._take()

    def fresh(self) -> Child:
        """One that ran nothing and has its context."""
        self._arrived()
        child, silent = self._take()
        if silent:
            child.converse(lambda channel: channel.receive(say.Card), START_SECONDS)
        return child

    def keep(self, key: str, child: Child) -> None:
        """Take a runner back that ended well, for further runs of the same build."""
        with self._lock:
            old = [self._kept.pop(key)] if key in self._kept else []
            self._kept[key] = child
            while len(self._kept) > self._most:
                old.append(self._kept.popitem(last=False)[1])
        for gone in old:
            gone.close()

    def begin(self, count: int) -> None:
        """Start so many at once, where nothing is timed yet: they come while something else is done."""
        self._busy()
        with self._lock:
            missing = count - len(self._ready) - len(self._coming)
            self._coming += [_start() for _ in range(missing)]

    def ready(self, count: int) -> None:
        """Start so many at once and wait until each has its context: nothing is begun while others time."""
        self.begin(count)
        self._arrived()

    def _arrived(self) -> None:
        """Wait for those that are on their way."""
        self._busy()
        with self._lock:
            coming, self._coming = self._coming, []
        for child in coming:
            with contextlib.suppress(ChildDied, ChildTimeout):
                card: say.Card = child.converse(lambda channel: channel.receive(say.Card), START_SECONDS)
                if card.missing:
                    child.close()
                    continue
                with self._lock:
                    self._ready.append(child)

    def rest(self) -> None:
        """Nothing is wanted for now: one waits for the next job, for a while."""
        with self._lock:
            if self._warm is None and not self._ready and not self._coming:
                self._warm = _start()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(IDLE_SECONDS, self.close)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Let all of them go, and their memory on the card."""
        with self._lock:
            gone = [*self._coming, *self._ready, *self._kept.values(), *([self._warm] if self._warm else [])]
            self._warm, self._ready, self._coming = None, [], []
            self._kept.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for child in gone:
            child.close()

    def release(self) -> None:
        """Let those go that hold programs: who times is alone on the card."""
        with self._lock:
            gone = list(self._kept.values())
            self._kept.clear()
        for child in gone:
            child.close()

    @property
    def count(self) -> int:
        """How many wait here, each with a context on the card."""
        with self._lock:
            return len(self._coming) + len(self._ready) + len(self._kept) + (self._warm is not None)

    def _take(self) -> tuple[Child, bool]:
        """One that ran nothing, the one that has been there longest; and whether its first message is still unread."""
        while True:
            with self._lock:
                if self._ready:
                    child, silent = self._ready.pop(0), False
                elif self._warm is not None:
                    child, silent, self._warm = self._warm, True, None
                elif self._coming:
                    child, silent = self._coming.pop(0), True
                else:
                    return _start(), True
            if child.usable:
                return child, silent
            child.close()

    def _busy(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


def _start() -> Child:
    """A runner that is told to make its context at once; its answer is read when it is needed."""
    child = Child(MODULE)
    child.post(say.Warm())
    return child
