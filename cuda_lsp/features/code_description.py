"""Writes the pages that the codes of hints lead to, when the first document is opened."""

from __future__ import annotations

import threading

from cuda_lsp.rule_pages import write_pages
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot


def register(server: CudaServer) -> None:
    if not server.session.client.describes_codes:
        return
    begun = threading.Event()

    def opened(old: Snapshot | None, new: Snapshot | None) -> None:
        if new is not None and not begun.is_set():
            begun.set()
            threading.Thread(target=write_pages, daemon=True, name="cuda-lsp pages").start()

    server.session.subscribe(opened)
