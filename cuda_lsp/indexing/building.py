"""When the index is built, and how that is shown."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.uris import to_fs_path

from cuda_lsp.indexing.client import Indexer
from cuda_lsp.indexing.messages import Answer, Progress, Question
from cuda_lsp.session import Snapshot

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

TOKEN = "cuda-lsp/index"
MANY = 300
"""Files that are to be read anew, from which on that is worth a progress display."""
SOON = 0.3
"""Seconds: what changes on disk changes in heaps (a checkout)."""
FIRST = 0.1
"""Seconds: the first document is read and answered for first."""
STALE = 10.0
"""Seconds after which a question has the folders looked through again, where the client does not watch them."""
_LISTED = 20

log = logging.getLogger(__name__)


class Building:
    """The index of one connection's workspace. Everything here happens on the event loop."""

    def __init__(self, server: CudaServer) -> None:
        self._server = server
        self.indexer = Indexer(lambda progress: server.later(self._heard, progress))
        self.state = Progress(0, 0, 0, False, False)
        """How far it is."""
        self._looked = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._shown: str = ""
        server.session.subscribe(self._opened)

    # --- when ------------------------------------------------------------------------------------------------------

    def ask(self, question: Question, snapshots: tuple[Snapshot, ...]) -> asyncio.Future[Answer]:
        """Answered from what is known by then; there is nothing to wait for."""
        if not self._server.session.settings.index:
            nothing: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            nothing.set_result(Answer())
            return nothing
        answer = self.indexer.ask(question, snapshots)
        never = not self._looked
        watched = self._server.session.client.watches_files
        if never or (not watched and time.monotonic() - self._looked > STALE):
            self.look()
        return answer

    def changed(self) -> None:
        """Something changed on disk, or which folders there are."""
        if self._looked:
            self._soon()

    def switched(self) -> None:
        """The setting was changed."""
        if self._server.session.settings.index:
            self.look()
        else:
            self.indexer.rest()

    def look(self) -> None:
        """Look through the workspace's folders."""
        self._timer = None
        if not self._server.session.settings.index:
            return
        paths = (to_fs_path(uri) for uri in self._server.session.folders if uri.startswith("file:"))
        folders = tuple(path for path in paths if path)
        if folders or self._looked:
            self._looked = time.monotonic()
            self.indexer.look(folders)

    def end(self) -> None:
        self.indexer.end()

    def _opened(self, old: Snapshot | None, new: Snapshot | None) -> None:
        """With the first document; before that nobody asks, and a server may be started for nothing."""
        if old is None and new is not None and not self._looked:
            self._soon(FIRST)

    def _soon(self, seconds: float = SOON) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.look)

    # --- how that is shown -----------------------------------------------------------------------------------------

    def _heard(self, progress: Progress) -> None:
        self.state = progress
        if progress.left:
            self._say_left(progress.left)
        if not self._shown and progress.walked and progress.to_read - progress.read >= MANY:
            self._shown = "asked"
            if self._server.session.client.progress:
                self._server.task(self._show())
        elif self._shown == "begun":
            self._report(progress)

    def _say_left(self, left: tuple[str, ...]) -> None:
        more = [f"and {len(left) - _LISTED} more"] if len(left) > _LISTED else []
        words = "not in the index: " + "; ".join([*left[:_LISTED], *more])
        # to the client only: our own log names no files
        self._server.window_log_message(types.LogMessageParams(types.MessageType.Info, f"cuda-lsp: {words}"))

    async def _show(self) -> None:
        """Only the first time that there is much to read."""
        try:
            await self._server.protocol.send_request_async(
                types.WINDOW_WORK_DONE_PROGRESS_CREATE, types.WorkDoneProgressCreateParams(TOKEN)
            )
        except Exception as error:
            log.warning("the client shows no progress: %s", error)
            return
        self._server.cancels[TOKEN] = self._cancel
        self._shown = "begun"
        told = _words(self.state), _percentage(self.state)
        self._send(
            types.WorkDoneProgressBegin("Reading CUDA files", cancellable=True, message=told[0], percentage=told[1])
        )
        self._report(self.state)

    def _report(self, progress: Progress) -> None:
        if progress.ended:
            self._close("done")
        else:
            self._send(
                types.WorkDoneProgressReport(
                    cancellable=True, message=_words(progress), percentage=_percentage(progress)
                )
            )

    def _cancel(self) -> None:
        """What is read by now stays; the next change on disk, or the next start, goes on with it."""
        self.indexer.stop_building()
        self._close("cancelled")

    def _close(self, how: str) -> None:
        self._shown = "ended"
        self._server.cancels.pop(TOKEN, None)
        self._send(types.WorkDoneProgressEnd(message=how))

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(TOKEN, value))


def _words(progress: Progress) -> str:
    return f"{progress.read} of {progress.to_read} files"


def _percentage(progress: Progress) -> int:
    return 100 * progress.read // progress.to_read if progress.to_read else 100
