"""A project's settings file that changed: its rules, targets and workloads hold from then on."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer


def register(server: CudaServer) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        server.look_again()
        server.refresh()

    def start() -> None:
        if server.session.client.watches_files:
            from agent.workload.settings import FILE

            watcher = types.FileSystemWatcher(f"**/{FILE}")
            wanted = types.Registration("cuda-lsp.files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                                        types.DidChangeWatchedFilesRegistrationOptions([watcher]))  # fmt: skip
            server.task(server.client_register_capability_async(types.RegistrationParams([wanted])))

    server.at_start(start)
