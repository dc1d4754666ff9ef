"""Settings: asked for after the start and whenever they change; what is wrong in them is said once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from cuda_lsp.ruling import unknown
from cuda_lsp.server import CudaServer
from cuda_lsp.settings import SECTION, Settings, read

log = logging.getLogger(__name__)


def register(server: CudaServer) -> None:
    client = server.session.client
    told: set[str] = set()
    base = Settings()

    def apply(settings: object) -> None:
        before = server.session.settings
        server.session.settings, complaints = read(settings, base)
        now = server.session.settings
        complain(complaints)
        if now == before:
            return
        if (now.select, now.ignore, now.severities) != (before.select, before.ignore, before.severities):
            server.hints.again()
            server.task(name_unknown_rules(now))
        if now.index != before.index:
            server.index.switched()
        server.look_again()
        server.refresh()

    def complain(complaints: Iterable[str]) -> None:
        for complaint in complaints:
            if complaint not in told:
                told.add(complaint)
                server.say(complaint)

    async def name_unknown_rules(settings: Settings) -> None:
        complain(await asyncio.to_thread(unknown, settings))

    async def pull() -> None:
        asked = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        try:
            answer = await server.workspace_configuration_async(asked)
        except JsonRpcException as error:
            log.warning("the client does not tell its settings: %s", error)
            return
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
