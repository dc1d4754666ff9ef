"""Ideas in words for a kernel, the most promising first; nothing is run."""

from agent.ideas.idea import Idea, Scope
from agent.ideas.source import Request, propose
from agent.search.events import IdeasFound
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Staged
from cuda_lsp.worker.opening import open_task
from cuda_lsp.worker.tasks import Tell


def run(task: Task, tell: Tell) -> Ended:
    """The ideas, and why each other one of the catalogue does not apply."""
    tell(Staged("reading the workload"))
    opened = open_task(task)
    scope = Scope(task.options.scope)
    request = Request(opened.document, opened.kernel, opened.workload, opened.workload.plan, scope)
    found = propose(request)
    tell(IdeasFound("0", found.ideas, found.considered))
    name = opened.kernel.qualified_name
    if not found.ideas:
        considered = tuple(f"{idea}: {reason}" for idea, reason in found.considered)
        return Ended("nothing applicable", f"no idea of the catalogue applies to {name}", lines=considered)
    count = len(found.ideas)
    message = f"{count} idea{'s' * (count != 1)} for {name}: {'; '.join(idea.title for idea in found.ideas)}"
    return Ended("done", message, lines=tuple(map(_words, found.ideas)), ideas=found.ideas)


def _words(idea: Idea) -> str:
    expected = "; ".join(expectation.words for expectation in idea.expects)
    risk = f" May break: {idea.risk}." if idea.risk else ""
    return f"{idea.title} [{idea.name}, {idea.scope.value}]: {idea.why}. Expects {expected}.{risk}"
