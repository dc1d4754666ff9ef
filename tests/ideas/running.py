"""Requests from a kernel with a directive, and programs run in the emulator with every check."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.execution.compiler import CompileFailure, Options, build
from agent.execution.device import Image, Poison, Request
from agent.execution.emulator import Emulator
from agent.ideas import source
from agent.ideas.idea import Candidate, Idea, Scope
from agent.source.diff import unified
from agent.source.document import parse
from agent.workload import dtypes
from agent.workload.bind import bind
from agent.workload.directive import read_directive
from agent.workload.program import Program
from agent.workload.workload import Workload

Array = npt.NDArray[Any]
CHECKS = frozenset({"bounds", "races", "initialised", "barriers"})


def ask(text: str, scope: Scope = Scope.PLAN) -> source.Request:
    """The request for the one kernel of ``text``, with the workload of the directive above it."""
    document = parse(text.encode(), "test.cu")
    (kernel,) = document.kernels
    workload = read_directive(document, kernel)
    assert workload is not None
    return source.Request(document, kernel, workload, workload.plan, scope)


def idea_of(request: source.Request, name: str) -> Idea:
    proposal = source.propose(request)
    found = [idea for idea in proposal.ideas if idea.name == name]
    assert found, dict(proposal.considered).get(name)
    return found[0]


def refusal(request: source.Request, name: str) -> str:
    """Why an idea does not apply. Fails where it does."""
    proposal = source.propose(request)
    assert all(idea.name != name for idea in proposal.ideas), f"{name} applies"
    return dict(proposal.considered)[name]


def candidates(request: source.Request, name: str) -> tuple[Candidate, ...]:
    made = source.implement(idea_of(request, name), request)
    assert made
    return made


def rewritten(request: source.Request, candidate: Candidate) -> Program:
    return source.program(request.document, request.kernel, candidate, "candidate")


def after(request: source.Request, candidate: Candidate) -> source.Request:
    """The request of the next round: the candidate is the parent."""
    document = rewritten(request, candidate).document
    kernel = document.kernel(request.kernel.qualified_name)
    return source.Request(document, kernel, request.workload, candidate.plan, request.scope)


def diff(request: source.Request, candidate: Candidate) -> str:
    return unified(request.document, rewritten(request, candidate).document)


def run(program: Program, workload: Workload, inputs: Mapping[str, Array], **sizes: int) -> dict[str, Array]:
    """Every buffer after the run, which must be without any fault. A buffer without an input is poison, zeroed
    scratch apart."""
    built = build(program, Options(arch="sm_90"))
    assert not isinstance(built, CompileFailure), built
    bound = bind(workload, program.plan, sizes, program.document)
    images = []
    for buffer in bound.buffers:
        given = inputs.get(buffer.name)
        if buffer.scratch and buffer.zeroed:
            given = np.zeros(buffer.nbytes, np.uint8)
        contents = Poison() if given is None else np.ascontiguousarray(given).view(np.uint8).reshape(-1)
        images.append(Image(buffer.name, buffer.nbytes, contents))
    names = tuple(buffer.name for buffer in bound.buffers)
    answer = Emulator().run(Request(built, bound.steps, tuple(images), names, CHECKS))
    faults = [fault for fault in answer.faults if not fault.benign]
    assert answer.status == "ok" and not faults, (answer.message, faults)
    types = {buffer.name: dtypes.numpy_dtype(buffer.dtype) for buffer in bound.buffers}
    return {name: np.ascontiguousarray(answer.outputs[name]).view(types[name]) for name in names}
