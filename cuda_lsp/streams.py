"""Serving one client over a pair of streams."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO

from pygls.io_ import StdoutWriter, run_async

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

_CHUNK = 1 << 16
# a header is short; a line without an end must not fill the memory
_LONGEST_LINE = 1 << 20

log = logging.getLogger(__name__)


def serve(server: CudaServer, stdin: BinaryIO, stdout: BinaryIO, stop: threading.Event) -> None:
    """Answer what comes in until it ends or ``stop`` is set, as ``LanguageServer.start_io`` does; but that hands each
    line of a message from thread to thread, which on a busy machine takes longer than the answer."""
    server.protocol.set_writer(StdoutWriter(stdout))
    try:
        asyncio.run(_serve(server, stdin, stop))
    except BrokenPipeError:
        log.warning("the client is gone")
    except (KeyboardInterrupt, SystemExit):
        pass


async def _serve(server: CudaServer, stdin: BinaryIO, stop: threading.Event) -> None:
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    pump = threading.Thread(target=_pump, args=(stdin, reader, asyncio.get_running_loop()), daemon=True)
    pump.start()
    try:
        await run_async(
            stop_event=stop, reader=reader, protocol=server.protocol, error_handler=server.report_server_error
        )
    except (asyncio.IncompleteReadError, ValueError) as error:
        log.warning("the client's last message has no end: %s", error)


def _pump(stdin: BinaryIO, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Hand on what comes in, in whatever pieces. Below the buffer of ``stdin``: the interpreter cannot end while a
    thread waits in there."""
    source = getattr(stdin, "raw", stdin)
    try:
        while chunk := source.read(_CHUNK):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)
    except (RuntimeError, OSError, ValueError):  # the loop or the stream was closed meanwhile
        log.debug("%s is read no further", getattr(sys.stdin, "name", "standard input"))
