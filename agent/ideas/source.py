"""One interface for whoever has ideas: the catalogue, a language model, or the user."""

import itertools
from collections.abc import Mapping

from agent.ideas import expert
from agent.ideas.adviser import Failure, NoCode
from agent.ideas.idea import Candidate, Idea
from agent.ideas.model import advise
from agent.ideas.request import Proposal, Request
from agent.ideas.rewriting import splice_code
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.program import Program

__all__ = ["Failure", "NoCode", "Proposal", "Request", "implement", "program", "propose", "repair", "retune"]


def propose(request: Request) -> Proposal:
    """Ideas for a kernel, and what was considered and why it does not apply: the user's own first, then the
    catalogue's and the model's in turn, the most promising of each first."""
    known, advised = expert.propose(request), advise.propose(request)
    own = [idea for idea in advised.ideas if idea.source == advise.OWN]
    further = [idea for idea in advised.ideas if idea.source != advise.OWN]
    turns = itertools.chain.from_iterable(itertools.zip_longest(known.ideas, further))
    return Proposal((*own, *(idea for idea in turns if idea)), known.considered, advised.dropped)


def implement(idea: Idea, request: Request) -> tuple[Candidate, ...]:
    """The idea in code: several candidates where there are several ways. Their ``code`` and ``plan`` are relative to
    the request's document and plan, and their ``ideas`` hold this idea alone. Raises NoCode for an idea in words that
    came to no code."""
    return expert.implement(idea, request) if idea.source == expert.SOURCE else advise.implement(idea, request)


def repair(candidate: Candidate, request: Request, failure: Failure) -> Candidate | None:
    """The candidate mended by whoever wrote it, told the exact failure; ``request`` is the one that it was implemented
    for. None where nobody mends it (the catalogue's code is as it is) or the turns for it are used up. Raises NoCode.

    A search calls it after each verdict that is not right, and judges what comes back like any other candidate."""
    return None if candidate.ideas[-1].source == expert.SOURCE else advise.repair(candidate, request, failure)


def retune(candidate: Candidate, request: Request, values: Mapping[str, int]) -> Candidate | None:
    """The same implementation of the candidate's newest idea with other values for its tunables; ``request`` is the one
    that it was implemented for. None where there is no such thing."""
    return expert.retune(candidate, request, values) if candidate.ideas[-1].source == expert.SOURCE else None


def program(document: Document, kernel: Kernel, candidate: Candidate, label: str) -> Program:
    """The candidate as a program: its code in place of the kernel's definition, helpers above the kernel's own
    comment."""
    return Program(splice_code(document, kernel, candidate.code), candidate.plan, label)
