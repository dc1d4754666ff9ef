"""What is said to a runner, whoever started it."""

from typing import TypeVar

from agent.execution.children import gpu_messages as say
from agent.execution.device import Request
from agent.execution.gpu.jobs import contents
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
