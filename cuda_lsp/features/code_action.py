"""The menu. It is computed from the syntax tree and from what is known already; the work begins when an entry is taken.

What is visible and impossible says why, where the client can show that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import field, frozen
from lsprotocol import types

from agent.source.kernel import Kernel
from agent.source.span import Span
from cuda_lsp import protocol, quick_fixes
from cuda_lsp.client import Client
from cuda_lsp.features.execute_command import CANNOT_ASK
from cuda_lsp.features.hover import at
from cuda_lsp.features.kernel_state import short
from cuda_lsp.reviewing import best
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot

_REWRITE = types.CodeActionKind.RefactorRewrite.value
ASK = f"{_REWRITE}.cuda.ask"
OPTIMIZE = f"{_REWRITE}.cuda.optimize"
CHECK = f"{_REWRITE}.cuda.check"
DESCRIBE = f"{_REWRITE}.cuda.describe"
REVIEW = f"{_REWRITE}.cuda.review"
CODE = f"{_REWRITE}.cuda.code"
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.cuda-lsp"


@frozen
class Entry:
    """One line of the menu: ``title`` has the kernel's name in place of ``{}``."""

    title: str
    kind: str
    command: str
    options: dict[str, Any] = field(factory=dict)


MENU = (
    Entry("Suggest ideas for {}", ASK, protocol.SUGGEST),
    Entry("Try an idea of my own on {}", ASK, protocol.OWN_IDEA),
    Entry("Optimize {}: same signature, same launch", OPTIMIZE, protocol.OPTIMIZE, {"scope": "drop-in"}),
    Entry("Optimize {}: the launch may change", OPTIMIZE, protocol.OPTIMIZE, {"scope": "relaunch"}),
    Entry("Optimize {}: it may become several kernels", OPTIMIZE, protocol.OPTIMIZE, {"scope": "plan"}),
    Entry("Verify my change to {} against the saved file", CHECK, protocol.VERIFY, {"against": "saved"}),
    Entry("Verify my change to {} against HEAD", CHECK, protocol.VERIFY, {"against": "HEAD"}),
    Entry("Benchmark {}", CHECK, protocol.BENCHMARK),
    Entry("Show the PTX of {}", CODE, protocol.SHOW_CODE, {"form": "ptx"}),
    Entry("Show the machine code of {}", CODE, protocol.SHOW_CODE, {"form": "sass"}),
    Entry("Write the workload of {} above it", DESCRIBE, protocol.DESCRIBE),
    Entry("Review the rewrite of {}", REVIEW, protocol.REVIEW),
)


def register(server: CudaServer) -> None:
    client = server.session.client
    kinds: list[types.CodeActionKind | str] = [quick_fixes.KIND, ASK, OPTIMIZE, CHECK, CODE, DESCRIBE, REVIEW, FIX_ALL]
    options = types.CodeActionOptions(code_action_kinds=kinds, resolve_provider=client.resolves_edits)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction | types.Command] | None:
        snapshot = server.session.snapshot(params.text_document.uri)
        if snapshot is None:
            return None
        asked, only = snapshot.lines.span_of(params.range), params.context.only
        kernel = kernel_at(snapshot, asked.start)
        if kernel is None and params.context.trigger_kind != types.CodeActionTriggerKind.Automatic:
            snapshot.read()  # the user asks, and a text known in haste may lack the kernel
            kernel = kernel_at(snapshot, asked.start)
        found: list[types.CodeAction | types.Command] = []
        if wanted(quick_fixes.KIND, only):
            touched = _touched(snapshot, asked, kernel) or server.hints.holders(snapshot, asked)
            found += quick_fixes.quick_fixes(server, snapshot, touched, asked)
        if only is not None and wanted(FIX_ALL, only) and server.offers(protocol.FIX_ALL):
            title = "Verify and apply all safe fixes"
            command = types.Command(title, protocol.FIX_ALL, arguments=[snapshot.uri])
            # where nobody asks for this kind it is not in the menu: to know what there is takes longer than a menu may
            found.append(types.CodeAction(title, FIX_ALL, command=command) if client.literal_actions else command)
        if kernel is None:
            return found or None
        server.facts.want(snapshot, kernel)
        if params.context.trigger_kind == types.CodeActionTriggerKind.Automatic and only is None:
            return found  # the editor only asks whether to light its bulb; over every kernel it would always burn
        return [*found, *_menu(server, snapshot, kernel, only)]


def kernel_at(snapshot: Snapshot, offset: int) -> Kernel | None:
    """The kernel that the cursor is in, or whose launch it is on."""
    found = next(iter(snapshot.document.kernels.touching(offset, offset)), None)
    if found is not None:
        return found
    launched = at(snapshot, offset)
    return launched[0] if launched else None


def _touched(snapshot: Snapshot, asked: Span, kernel: Kernel | None) -> list[Kernel]:
    """The kernels in a selection, and the one that is launched there."""
    inside = snapshot.document.kernels.touching(asked.start, asked.end)
    return inside if kernel is None or kernel in inside else [kernel, *inside]


def _menu(
    server: CudaServer, snapshot: Snapshot, kernel: Kernel, only: list[Any] | Any
) -> Iterator[types.CodeAction | types.Command]:
    reference = protocol.as_argument(protocol.reference(snapshot, kernel))
    for entry in MENU:
        if not wanted(entry.kind, only):
            continue
        action = _action(server, snapshot, kernel, entry, reference)
        if action is not None:
            # a client from before code action literals gets the commands alone
            yield action if server.session.client.literal_actions or action.command is None else action.command


def wanted(kind: str, only: Any) -> bool:
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
    if lazily and _to_probe(server, snapshot, kernel) and server.offers(entry.command):
        lazily = False  # the kernel is run for it, which takes a job
    if not lazily and not server.offers(entry.command):
        return None
    reason = obstacle(server, snapshot, kernel, entry)
    title = _title(server, snapshot, kernel, entry)
    if reason is not None:
        return _disabled(client, title, entry, reason, reference)
    if lazily:
        return types.CodeAction(title, entry.kind, data=reference)
    more = {REVIEW: [], CODE: [entry.options.get("form")]}.get(entry.kind, [entry.options])
    arguments: list[Any] = [reference, *more]
    command = types.Command(title, entry.command, arguments=arguments)
    return types.CodeAction(title, entry.kind, command=command)


def _title(server: CudaServer, snapshot: Snapshot, kernel: Kernel, entry: Entry) -> str:
    title = entry.title.format(kernel.name)
    if entry.kind == REVIEW and (found := best(server.proposals.all(snapshot.uri), kernel.qualified_name)) is not None:
        return f"{title}: {short(found)}"
    if entry.kind == DESCRIBE and _to_probe(server, snapshot, kernel):
        return f"Probe {kernel.name} and write a draft of its workload above it"
    return title


def _to_probe(server: CudaServer, snapshot: Snapshot, kernel: Kernel) -> bool:
    """Whether reading the file leaves questions, so that only running the kernel may tell more."""
    known = server.facts.of(snapshot, kernel)
    return known is not None and known.facts.draft


def _disabled(
    client: Client, title: str, entry: Entry, reason: str, reference: dict[str, Any]
) -> types.CodeAction | None:
    """``data`` says which command it would have been, and of which kernel."""
    if not (client.disabled_actions and client.literal_actions):
        return None
    told = {**reference, "command": entry.command}
    return types.CodeAction(title, entry.kind, disabled=types.CodeActionDisabled(reason), data=told)


def obstacle(server: CudaServer, snapshot: Snapshot, kernel: Kernel, entry: Entry) -> str | None:
    """Why an entry cannot be taken now, in words; None where nothing speaks against it as far as is known."""
    if entry.kind == REVIEW:
        found = best(server.proposals.all(snapshot.uri), kernel.qualified_name)
        return None if found else f"no rewrite of {kernel.name} was proposed yet: optimize it first"
    if kernel.damage:
        return f"{kernel.name} has {kernel.damage}"
    if entry.command == protocol.OWN_IDEA and not server.session.client.asks_text:
        return CANNOT_ASK
    if entry.options.get("against") and not snapshot.path:
        return "this document was never saved: there is nothing to compare with"
    known = server.facts.of(snapshot, kernel)
    if known is not None and known.fresh:
        drafted = entry.kind == DESCRIBE and known.facts.draft
        if known.facts.questions and entry.kind not in (ASK, CODE) and not drafted:
            return f"no workload is known for {kernel.name}: {known.facts.questions}"
        if known.facts.problem and entry.kind != DESCRIBE:
            return f"{kernel.name} does not compile: {known.facts.problem}"
        if entry.kind == DESCRIBE and known.facts.origin.startswith("directive"):
            return f"the workload of {kernel.name} is written down already ({known.facts.origin})"
    return next((reason for ask in server.obstacles if (reason := ask(snapshot, kernel, entry.command))), None)
