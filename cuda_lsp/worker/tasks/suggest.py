"""Ideas in words for a kernel, the most promising first; nothing is run."""

from agent.ideas.idea import Idea, Scope
from agent.ideas.source import Request, propose
from agent.models.budget import Metered
from agent.search.events import IdeaDropped, IdeasFound
from agent.search.search import model_used
from cuda_lsp.terminal.opening import open_target
from cuda_lsp.worker.advising import Heard, adviser_of, credited, origin
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import open_task
from cuda_lsp.worker.tasks import Tell


def run(task: Task, tell: Tell) -> Ended:
    """The ideas, and why each other one of the catalogue does not apply."""
    tell(Staged("reading the workload"))
    opened = open_task(task)
    adviser = adviser_of(task, opened, tell)
    heard = Heard(tell, adviser)
    request = Request(
        opened.document,
        opened.kernel,
        opened.workload,
        opened.workload.plan,
        Scope(task.options.scope),
        target=open_target(task.options.target or None, opened.settings).name,
        adviser=adviser,
    )
    found = propose(request)
    heard(IdeasFound("0", found.ideas, found.considered))
    for title, reason in found.dropped:
        heard(IdeaDropped(title, reason))
    if adviser is not None and isinstance(adviser.model, Metered):
        heard(model_used(adviser.model))
    name = opened.kernel.qualified_name
    if not found.ideas:
        considered = tuple(f"{idea}: {reason}" for idea, reason in found.considered)
        none = f"no idea of the catalogue applies to {name}"
        return Ended("nothing applicable", none, lines=(*considered, *heard.lines), trouble=heard.trouble)
    count = len(found.ideas)
    titles = "; ".join(credited(idea.title, (idea,), adviser) for idea in found.ideas)
    message = f"{count} idea{'s' * (count != 1)} for {name}: {titles}"
    lines = (*(_words(idea, origin((idea,), adviser)) for idea in found.ideas), *heard.lines)
    return Ended("done", message, lines=lines, ideas=found.ideas, trouble=heard.trouble)


def _words(idea: Idea, whose: str) -> str:
    expected = "; ".join(expectation.words for expectation in idea.expects) or "no counter to move"
    risk = f" May break: {idea.risk}." if idea.risk else ""
    kind = f"{idea.name}, {idea.scope.value}" + (f", {whose}" if whose else "")
    return f"{idea.title} [{kind}]: {idea.why}. Expects {expected}.{risk}"
