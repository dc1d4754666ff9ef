"""One interface for whoever has ideas: the catalogue here, a language model elsewhere, or the user."""

from collections.abc import Mapping

from agent.ideas import expert
from agent.ideas.idea import Candidate, Idea
from agent.ideas.request import Proposal, Request
from agent.ideas.rewriting import splice_code
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.program import Program

__all__ = ["Proposal", "Request", "implement", "program", "propose", "retune"]


def propose(request: Request) -> Proposal:
    """Ideas for a kernel, the most promising first, and what was considered and why it does not apply."""
    return expert.propose(request)


def implement(idea: Idea, request: Request) -> tuple[Candidate, ...]:
    """The idea in code: several candidates where there are several ways. Their ``code`` and ``plan`` are relative to
    the request's document and plan, and their ``ideas`` hold this idea alone."""
    return expert.implement(idea, request) if idea.source == expert.SOURCE else ()


def retune(candidate: Candidate, request: Request, values: Mapping[str, int]) -> Candidate | None:
    """The same implementation of the candidate's newest idea with other values for its tunables; ``request`` is the one
    that it was implemented for. None where there is no such thing."""
    return expert.retune(candidate, request, values) if candidate.ideas[-1].source == expert.SOURCE else None


def program(document: Document, kernel: Kernel, candidate: Candidate, label: str) -> Program:
    """The candidate as a program: its code in place of the kernel's definition, helpers above the kernel's own
    comment."""
    return Program(splice_code(document, kernel, candidate.code), candidate.plan, label)
