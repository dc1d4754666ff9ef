"""What the session adds to what a worker is asked: the card, and the folder of the document."""

from __future__ import annotations

from attrs import evolve
from pygls.uris import to_fs_path

from cuda_lsp.session import Session, Snapshot
from cuda_lsp.worker.asked import Options


def with_session(session: Session, snapshot: Snapshot, options: Options) -> Options:
    """``options`` with the card of the settings where they name none, and the document's workspace folder."""
    folder = session.folder_of(snapshot)
    if folder is None and not snapshot.path:
        folder = next(iter(session.folders), None)
    path = (to_fs_path(folder) or "") if folder else ""
    return evolve(options, target=options.target or session.settings.target, folder=path)
