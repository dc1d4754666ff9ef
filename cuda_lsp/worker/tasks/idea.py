"""An idea in the user's own words, turned into code by a language model and judged like any other."""

from attrs import evolve

from agent.ideas.model.advise import OWN_NAME
from agent.search import events
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Message
from cuda_lsp.worker.tasks import Tell, optimize


def run(task: Task, tell: Tell) -> Ended:
    """As a search for this idea alone; where it came to nothing, the message says why. Raises CommandError."""
    if task.options.model is None:
        raise CommandError(Exit.INPUT, "no language model may be asked")
    reasons: list[str] = []

    def listen(message: Message) -> None:
        reasons.extend(_reasons(message))
        tell(message)

    alone = evolve(task, options=evolve(task.options, only=(OWN_NAME,), rounds=1))
    ended = optimize.run(alone, listen)
    if ended.rewrites:
        return ended
    why = "; ".join(dict.fromkeys(reasons)) or ended.message
    whose = "the idea" if task.options.suggested else "your idea"
    return evolve(ended, message=f"{whose} came to nothing: {why}")


def _reasons(message: Message) -> list[str]:
    if isinstance(message, events.IdeaDropped):
        return [message.reason]
    if isinstance(message, events.CandidateJudged):
        state = message.verdict.correctness if message.verdict else None
        return [f"{state.state}: {state.reason}" if state and state.reason else message.note or "not faster"]
    return []
