"""The menu. It is computed from the syntax tree and from what is known already; the work begins when an entry is taken.

What is visible and impossible says why, where the client can show that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import field, frozen
from lsprotocol import types

from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.client import Client
from cuda_lsp.features.hover import at
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

_REWRITE = types.CodeActionKind.RefactorRewrite.value
ASK = f"{_REWRITE}.cuda.ask"
OPTIMIZE = f"{_REWRITE}.cuda.optimize"
CHECK = f"{_REWRITE}.cuda.check"
DESCRIBE = f"{_REWRITE}.cuda.describe"


@frozen
class Entry:
    """One line of the menu: ``title`` has the kernel's name in place of ``{}``."""

    title: str
    kind: str
    command: str
    options: dict[str, Any] = field(factory=dict)


MENU = (
    Entry("Suggest ideas for {}", ASK, protocol.SUGGEST),
    Entry("Optimize {}: same signature, same launch", OPTIMIZE, protocol.OPTIMIZE, {"scope": "drop-in"}),
    Entry("Optimize {}: the launch may change", OPTIMIZE, protocol.OPTIMIZE, {"scope": "relaunch"}),
    Entry("Optimize {}: it may become several kernels", OPTIMIZE, protocol.OPTIMIZE, {"scope": "plan"}),
    Entry("Verify my change to {} against the saved file", CHECK, protocol.VERIFY, {"against": "saved"}),
    Entry("Verify my change to {} against HEAD", CHECK, protocol.VERIFY, {"against": "HEAD"}),
    Entry("Benchmark {}", CHECK, protocol.BENCHMARK),
    Entry("Write the workload of {} above it", DESCRIBE, protocol.DESCRIBE),
)


def register(server: CudaServer) -> None:
    client = server.session.client
    kinds: list[types.CodeActionKind | str] = [ASK, OPTIMIZE, CHECK, DESCRIBE]
    options = types.CodeActionOptions(code_action_kinds=kinds, resolve_provider=client.resolves_edits)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return None
        kernel = kernel_at(snapshot, snapshot.lines.offset_of(params.range.start))
        if kernel is None:
            return None
        server.facts.want(snapshot, kernel)
        if params.context.trigger_kind == types.CodeActionTriggerKind.Automatic and params.context.only is None:
            return None  # the editor only asks whether to light its bulb; over every kernel it would always burn
        return list(_menu(server, snapshot, kernel, params.context.only))


def kernel_at(snapshot: Snapshot, offset: int) -> Kernel | None:
    """The kernel that the cursor is in, or whose launch it is on."""
    inside = (kernel for kernel in snapshot.document.kernels if kernel.span.start <= offset <= kernel.span.end)
    found = next(inside, None)
    if found is not None:
        return found
    launched = at(snapshot, offset)
    return launched[0] if launched else None


def _menu(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, only: list[Any] | Any
) -> Iterator[types.CodeAction | types.Command]:
    reference = protocol.as_argument(protocol.reference(snapshot, kernel))
    for entry in MENU:
        if not _wanted(entry.kind, only):
            continue
        action = _action(server, snapshot, kernel, entry, reference)
        if action is not None:
            # a client from before code action literals gets the commands alone
            yield action if server.session.client.literal_actions or action.command is None else action.command


def _wanted(kind: str, only: Any) -> bool:
    """Kinds are a hierarchy: ``refactor`` asks for ``refactor.rewrite.cuda`` too. An empty list asks for nothing."""
    if only is None:
        return True
    asked = [getattr(one, "value", one) for one in only]
    return any(one == "" or kind == one or kind.startswith(f"{one}.") for one in asked)


def _action(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, entry: Entry, reference: dict[str, Any]
) -> types.CodeAction | None:
    client = server.session.client
    lazily = entry.kind == DESCRIBE and client.resolves_edits and client.literal_actions
    if not lazily and not server.offers(entry.command):
        return None
    title = entry.title.format(kernel.name)
    reason = obstacle(server, snapshot, kernel, entry)
    if reason is not None:
        return _disabled(client, title, entry.kind, reason)
    if lazily:
        return types.CodeAction(title, entry.kind, data=reference)
    command = types.Command(title, entry.command, arguments=[reference, entry.options])
    return types.CodeAction(title, entry.kind, command=command)


def _disabled(client: Client, title: str, kind: str, reason: str) -> types.CodeAction | None:
    if not (client.disabled_actions and client.literal_actions):
        return None
    return types.CodeAction(title, kind, disabled=types.CodeActionDisabled(reason))


def obstacle(server: CudaServer, snapshot: Snapshot, kernel: Kernel, entry: Entry) -> str | None:
    """Why an entry cannot be taken now, in words; None where nothing speaks against it as far as is known."""
    if kernel.damage:
        return f"{kernel.name} has {kernel.damage}"
    if entry.options.get("against") and not snapshot.path:
        return "this document was never saved: there is nothing to compare with"
    known = server.facts.of(snapshot, kernel)
    if known is not None and known.fresh:
        if known.facts.questions and entry.kind != ASK:
            return f"no workload is known for {kernel.name}: {known.facts.questions}"
        if known.facts.problem and entry.kind != DESCRIBE:
            return f"{kernel.name} does not compile: {known.facts.problem}"
        if entry.kind == DESCRIBE and known.facts.origin.startswith("directive"):
            return f"the workload of {kernel.name} is written down already ({known.facts.origin})"
    return next((reason for ask in server.obstacles if (reason := ask(snapshot, kernel, entry.command))), None)
