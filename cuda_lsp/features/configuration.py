"""Settings: asked for after the start and whenever they change; what is wrong in them is said once."""

from __future__ import annotations

from lsprotocol import types

from cuda_lsp.server import CudaServer
from cuda_lsp.settings import SECTION, Settings, read


def register(server: CudaServer) -> None:
    client = server.session.client
    told: set[str] = set()
    base = Settings()

    def apply(settings: object) -> None:
        before = server.session.settings
        server.session.settings, complaints = read(settings, base)
        for complaint in complaints:
            if complaint not in told:
                told.add(complaint)
                server.say(complaint)
        if server.session.settings != before:
            server.facts.again()
            server.refresh()

    async def pull() -> None:
        asked = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        answer = await server.workspace_configuration_async(asked)
        if answer:
            apply(answer[0])

    def start() -> None:
        nonlocal base
        apply(server.session.told_at_start)
        base = server.session.settings  # what is told later comes on top
        if client.watches_configuration:
            wanted = types.Registration("cuda-lsp.settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                                        types.DidChangeConfigurationRegistrationOptions(section=SECTION))  # fmt: skip
            server.task(server.client_register_capability_async(types.RegistrationParams([wanted])))
        if client.configuration:
            server.task(pull())

    server.at_start(start)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        """A client that can be asked is asked: what it sends along is often empty."""
        if client.configuration:
            server.task(pull())
        elif isinstance(params.settings, dict) and SECTION in params.settings:
            apply(params.settings)
