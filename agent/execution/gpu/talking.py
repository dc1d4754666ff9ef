"""What is said to a runner, whoever started it."""

from typing import TypeVar

from agent.execution.children import gpu_messages as say
from agent.execution.device import Request
from agent.execution.gpu.jobs import contents, make_job
from agent.execution.process import Child
from agent.execution.wire import Channel

T = TypeVar("T")


def ask(channel: Channel, request: object, answer: type[T]) -> T:
    channel.send(request)
    reply: T = channel.receive(answer)
    return reply


def upload(channel: Channel, job: say.Job, request: Request) -> say.Prepared:
    channel.send(job)
    waiting = {region.name for region in job.regions if region.follows}
    for image in request.images:
        if image.name in waiting:
            for chunk in contents(image):
                channel.send(chunk)
    reply: say.Prepared = channel.receive(say.Prepared)
    return reply


def run_exactly(child: Child, request: Request, seconds: float) -> say.Ran | str:
    """One job in buffers of exactly its sizes, for a tool that looks on; or why it could not be laid out."""
    job = make_job(request, exact=True)
    prepared: say.Prepared = child.converse(lambda channel: upload(channel, job, request), seconds, request.cancelled)
    if prepared.problem:
        return prepared.problem
    ran: say.Ran = child.converse(lambda channel: ask(channel, say.Go(), say.Ran), seconds, request.cancelled)
    return ran
