"""The commands that start work on a kernel. Each answers at once with the job's id, or with null and a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import cattrs
from attrs import evolve
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from agent.source.kernel import Kernel
from cuda_lsp import protocol
from cuda_lsp.asking import with_session
from cuda_lsp.jobs import JobRefused
from cuda_lsp.server import CudaServer
from cuda_lsp.session import Snapshot
from cuda_lsp.worker.asked import Options

KINDS = {
    protocol.SUGGEST: "suggest",
    protocol.OPTIMIZE: "optimize",
    protocol.VERIFY: "verify",
    protocol.BENCHMARK: "benchmark",
    protocol.DESCRIBE: "describe",
    protocol.OWN_IDEA: "idea",
}
# What a lone text means as the second argument.
_LONE = {
    protocol.OPTIMIZE: "scope",
    protocol.SUGGEST: "scope",
    protocol.VERIFY: "against",
    protocol.OWN_IDEA: "idea",
}
_SETTABLE = ("idea", "scope", "only", "seconds", "rounds", "candidates", "lossy", "against", "target", "device",
             "apply")  # fmt: skip
_DEVICES = ("auto", "emulator", "gpu")
_MOST = {"seconds": 3600, "rounds": 10, "candidates": 200}
LONGEST_IDEA = 4000
CANNOT_ASK = (
    "this editor cannot ask for a text: send the command cuda-lsp.tryIdea with the kernel and the idea, as text, for "
    "its two arguments (docs/protocol.md)"
)


def register(server: CudaServer) -> None:
    for command, kind in KINDS.items():
        server.command(command)(_starter(server, command, kind))

    @server.command(protocol.CANCEL)
    def cancel(*arguments: Any) -> bool:
        """Of a job by its id, or of whatever is done to a kernel. True where there was something to cancel."""
        if len(arguments) != 1:
            raise JsonRpcInvalidParams("expected the id of a job, as the command that started it answered, or a kernel")
        if isinstance(arguments[0], str):
            return server.jobs.cancel(arguments[0])
        wanted = protocol.read_reference(arguments[0])
        job = server.jobs.active(wanted.uri, wanted.kernel)
        return job is not None and server.jobs.cancel(job.id)

    @server.command(protocol.FORGET)
    def forget(*arguments: Any) -> bool:
        """Of what the user agreed to be sent to a language model or to be run, or never to be."""
        if arguments:
            raise JsonRpcInvalidParams("expected no arguments")
        server.agreements.forget()
        return True

    def busy(snapshot: Snapshot, kernel: Kernel, command: str) -> str | None:
        job = server.jobs.active(snapshot.uri, kernel.qualified_name) if command in KINDS else None
        return f"a job is already running on {kernel.name} ({job.stage}); cancel it first" if job else None

    server.obstacles.append(busy)

    def left(old: Snapshot | None, new: Snapshot | None) -> None:
        # A closed file is still a file; a closed document that never was one is gone, and so is what it was done for.
        if old is not None and new is None and not old.path:
            server.jobs.leave(old.uri)

    server.session.subscribe(left)


def _starter(server: CudaServer, command: str, kind: str) -> Callable[..., str | None]:
    def start(*arguments: Any) -> str | None:
        if not 1 <= len(arguments) <= 2:
            raise JsonRpcInvalidParams("expected a kernel, and options at most")
        wanted = protocol.read_reference(arguments[0])
        options = read_options(command, arguments[1] if len(arguments) == 2 else None)
        return (
            begin_idea(server, wanted, options)
            if command == protocol.OWN_IDEA
            else begin(server, kind, wanted, options)
        )

    return start


def begin_idea(server: CudaServer, wanted: protocol.KernelReference, options: Options) -> str | None:
    """Begin at once where the words are there; else ask for them, and begin then."""
    if options.idea.strip():
        return begin(server, "idea", wanted, evolve(options, idea=options.idea.strip()))
    if server.session.client.asks_text:
        server.task(_ask_for_words(server, wanted, options))
    else:
        server.say(CANNOT_ASK)
    return None


async def _ask_for_words(server: CudaServer, wanted: protocol.KernelReference, options: Options) -> None:
    text = await server.ask_text(f"Your idea for {wanted.kernel}", "What should change, in your own words")
    if text.strip():
        begin_idea(server, wanted, evolve(options, idea=text.strip()[:LONGEST_IDEA]))


def begin(server: CudaServer, kind: str, wanted: protocol.KernelReference, options: Options) -> str | None:
    """Start a job on a kernel as it stands now, or say why none is started."""
    try:
        if (current := server.session.snapshot(wanted.uri)) is not None:
            current.read()
        snapshot, kernel = protocol.find_kernel(server.session, wanted)
        return start_job(server, kind, snapshot, kernel.qualified_name, options)
    except (JsonRpcContentModified, JobRefused) as problem:
        server.say(str(problem))
        return None


def start_job(server: CudaServer, kind: str, snapshot: Snapshot, kernel: str, options: Options) -> str:
    """With what the session adds to the options; where a language model could be asked, or Python of the user's run,
    that is settled before the work begins. Raises JobRefused."""
    snapshot.read()
    down = tuple((proposal.title, proposal.note) for proposal in server.proposals.rejected(snapshot.uri, kernel))
    options = evolve(with_session(server.session, snapshot, options), rejected=down)
    held = server.agreements.waits(kind, options)
    identifier = server.jobs.start(kind, snapshot, kernel, options, held=held)
    if held:
        server.task(server.agreements.settle(identifier))
    return identifier


def read_options(command: str, told: object) -> Options:
    """The second argument of a command: an object, or for some commands a lone text. Raises JsonRpcInvalidParams."""
    if told is None:
        return Options()
    if isinstance(told, str) and command in _LONE:
        told = {_LONE[command]: told}
    if not isinstance(told, Mapping) or not set(told) <= set(_SETTABLE):
        raise JsonRpcInvalidParams(f"the options of {command} are an object with some of {', '.join(_SETTABLE)}")
    if wrong := [name for name, value in told.items() if not _fits(value, getattr(Options(), name))]:
        raise JsonRpcInvalidParams(f"the option {wrong[0]} of {command} cannot be {told[wrong[0]]!r}")
    from agent.ideas.idea import Scope

    try:
        options: Options = cattrs.structure({**attrs.asdict(Options()), **told}, Options)
    except (cattrs.BaseValidationError, TypeError, ValueError) as error:
        raise JsonRpcInvalidParams(f"the options of {command} cannot be read: {error}") from error
    for name, known in (("scope", [scope.value for scope in Scope]), ("device", _DEVICES)):
        if getattr(options, name) not in known:
            words = ", ".join(known)
            raise JsonRpcInvalidParams(f"the option {name} of {command} is one of {words}, not {told[name]!r}")
    if len(options.idea) > LONGEST_IDEA:
        raise JsonRpcInvalidParams(f"an idea has at most {LONGEST_IDEA} characters")
    if not all(0 < getattr(options, name) <= most for name, most in _MOST.items()):
        most = ", ".join(f"{most} {name}" for name, most in _MOST.items())
        raise JsonRpcInvalidParams(f"the options of {command} are more than 0 and at most {most}")
    return options


def _fits(value: object, default: object) -> bool:
    """Whether a value is of the kind of the default: what is of another must not be taken for something."""
    if isinstance(default, tuple):
        return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)
