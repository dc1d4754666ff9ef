"""What a job is doing, in words, from the events of its worker."""

from agent.search import events
from cuda_lsp.worker.messages import Message, Staged


def stage(event: Message) -> tuple[str, int, int] | None:
    """``(words, done, total)``, with zeros where how much is left is not known; None where nothing changes."""
    match event:
        case Staged(text, done, total):
            return text, done, total
        case events.Started():
            return "finding the workload", 0, 0
        case events.WorkloadFound():
            return "checking the original's contract", 0, 0
        case events.ContractFound():
            return "counting traffic", 0, 0
        case events.HeadroomFound():
            return "looking for ideas", 0, 0
        case events.IdeasFound(parent, ideas):
            return f"{len(ideas)} idea{'s' * (len(ideas) != 1)}{'' if parent == '0' else f' on top of {parent}'}", 0, 0
        case events.RoundStarted(number, candidates):
            return f"round {number}: judging {candidates} candidates", 0, 0
        case events.CandidateJudged():
            state = event.verdict.correctness.state if event.verdict else event.note
            return f"round {event.round}: {event.identifier} {state}", 0, 0
        case events.RoundEnded():
            return "confirming what would be shown", 0, 0
    return None
