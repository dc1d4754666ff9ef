"""The model as an idea source: ideas, then code for each, then repairs with the exact failure."""

import re
from collections.abc import Sequence

from attrs import evolve

from agent.ideas.adviser import Adviser, Failure, NoCode
from agent.ideas.idea import Candidate, Idea
from agent.ideas.model import asking
from agent.ideas.model.answers import SCHEMA, Rewritten, Unusable, read_rewrite
from agent.ideas.model.listing import MOST, NoIdeas, read_ideas, schema
from agent.ideas.request import Proposal, Request
from agent.models.model import Limits, Message, ModelError, Reply, Schema
from agent.models.words import one_line
from agent.source.errors import SourceError

OWN = "user"
OWN_NAME = "own-idea"
REPAIRS = 2
"""Repair turns for one implementation, whatever was wrong with it: a form that cannot be read, or a gate's refusal."""

NO_MODEL = (
    "an idea in your own words needs a language model to turn it into code, and none is set: "
    "name one with --model and --endpoint, or under [model] in .cuda-lsp.toml"
)
_IDEA_TOKENS = 4096
_PATH = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?[/\\][^\s\"'`<>|:,;()]+[/\\]([^\s\"'`<>|:,;()/\\]+)")


def propose(request: Request) -> Proposal:
    """The user's own ideas and the model's, in this order. Whatever goes wrong is a reason among those dropped."""
    adviser = request.adviser
    if adviser is None:
        return Proposal((), ())
    own = _own_ideas(adviser, request)
    if adviser.model is None:
        return Proposal((), (), tuple((idea.title, NO_MODEL) for idea in own))
    most = min(adviser.ideas, MOST)
    if most < 1:
        return Proposal(own, ())
    try:
        ideas, dropped = _ideas(adviser, request, most)
    except (ModelError, NoIdeas, SourceError) as problem:
        return Proposal(own, (), ((f"ideas of {adviser.model.name}", str(problem)),))
    return Proposal((*own, *ideas), (), dropped)


def _own_ideas(adviser: Adviser, request: Request) -> tuple[Idea, ...]:
    tried = {title for title, _ in request.tried}
    return tuple(
        Idea(OWN_NAME, title, one_line(text, 2000), (), "", request.scope, OWN, request.kernel.line)
        for text in adviser.own
        if (title := one_line(text, 100)) and title not in tried
    )


def _ideas(adviser: Adviser, request: Request, most: int) -> tuple[tuple[Idea, ...], tuple[tuple[str, str], ...]]:
    """Asks, and once more where the answer holds no idea."""
    messages = asking.for_ideas(request, most, request.target)
    wanted = schema(request, most)
    tokens = min(_IDEA_TOKENS, adviser.answer_tokens)
    reply = _ask(adviser, messages, wanted, tokens)
    try:
        return read_ideas(reply.text, request, most)
    except NoIdeas as problem:
        messages += [
            Message("assistant", reply.text[:4000]),
            Message("user", f"This cannot be used: {problem}. Answer with the JSON object alone."),
        ]
    return read_ideas(_ask(adviser, messages, wanted, tokens).text, request, most)


def implement(idea: Idea, request: Request) -> tuple[Candidate, ...]:
    """The idea in code. Raises NoCode, also where the repair turns did not bring an answer of the right form."""
    try:
        messages = asking.for_code(idea, request)
    except SourceError as error:
        raise NoCode(str(error)) from None
    return (_written(idea, request, messages, 0),)


def repair(candidate: Candidate, request: Request, failure: Failure) -> Candidate | None:
    """The candidate's newest idea once more, after a gate refused it; ``request`` is the one that it was implemented
    for. None where the repair turns are used up. Raises NoCode."""
    if candidate.repairs >= REPAIRS:
        return None
    idea = candidate.ideas[-1]
    messages = [
        *asking.for_code(idea, request),
        asking.answered(candidate, request),
        asking.for_repair(without_paths(failure)),
    ]
    return _written(idea, request, messages, candidate.repairs + 1)


def without_paths(failure: Failure) -> Failure:
    """File names stay, folders go: where the user keeps things is nobody's business."""

    def plain(text: str) -> str:
        return one_line(_PATH.sub(r"\1", text), 600)

    told = tuple((line, plain(message)) for line, message in failure.diagnostics[:10])
    return evolve(failure, reason=plain(failure.reason), diagnostics=told)


def _written(idea: Idea, request: Request, messages: list[Message], repairs: int) -> Candidate:
    """Asks for code until an answer can be used or the turns are over."""
    adviser = request.adviser
    if adviser is None or adviser.model is None:
        raise NoCode(NO_MODEL)
    while True:
        try:
            reply = _ask(adviser, messages, SCHEMA, adviser.answer_tokens)
        except ModelError as error:
            raise NoCode(str(error)) from None
        try:
            return _candidate(idea, read_rewrite(reply, request), repairs)
        except Unusable as problem:
            if repairs >= REPAIRS or reply.finish == "refusal":
                raise NoCode(f"the model's answer was not taken: {problem}") from None
            failure = Failure("form", str(problem))
            messages = [*messages, Message("assistant", problem.code or reply.text[:8000]), asking.for_repair(failure)]
            repairs += 1


def _candidate(idea: Idea, made: Rewritten, repairs: int) -> Candidate:
    turns = f", repair {repairs}" if repairs else ""
    return Candidate(
        ideas=(idea,),
        variant=f"model{turns}",
        code=made.code,
        plan=made.plan,
        rationale=made.rationale,
        scope=made.scope,
        repairs=repairs,
    )


def _ask(adviser: Adviser, messages: Sequence[Message], wanted: Schema, tokens: int) -> Reply:
    assert adviser.model is not None
    return adviser.model.ask(messages, wanted, Limits(tokens=tokens))
