"""Files that changed on disk: a project's settings, whose rules, targets and workloads hold from then on, and sources,
which are in the index."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer
from cuda_lsp.terminal.hints.walk import CUDA, HEADERS


def register(server: CudaServer) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        from agent.workload.settings import FILE  # takes long to import

        changed = [change.uri.rpartition("/")[2] for change in params.changes]
        if FILE in changed:
            server.look_again()
            server.refresh()
        if any(name != FILE for name in changed):
            server.index.changed()

    def start() -> None:
        if server.session.client.watches_files:
            from agent.workload.settings import FILE

            endings = ",".join(sorted(ending.removeprefix(".") for ending in CUDA | HEADERS))
            globs = (f"**/{FILE}", "**/.gitignore", f"**/*.{{{endings}}}")
            watchers = [types.FileSystemWatcher(glob) for glob in globs]
            wanted = types.Registration("cuda-lsp.files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                                        types.DidChangeWatchedFilesRegistrationOptions(watchers))  # fmt: skip
            server.task(server.client_register_capability_async(types.RegistrationParams([wanted])))

    server.at_start(start)
