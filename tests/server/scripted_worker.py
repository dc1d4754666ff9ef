"""A worker that speaks the real protocol and does what the task's ``only`` says, word by word.

``stage:TEXT``, ``model`` (a stage with the name of the model that it may ask), ``sleep:SECONDS``, ``die``,
``die-once:FILE``, ``child:FILE`` (starts a process that sleeps, in a session of its own, and writes its id),
``noise`` (prints to standard output), ``rewrite`` and ``rewrites:N`` (rewrites of the kernel), ``launch`` (one that
changes its launches too), ``by-hand`` (one that nobody can apply but the user), ``replace`` (one that puts other host
code in their place), ``fresh`` and ``fresh:launch`` (the first two, and no two alike), ``end:REASON``.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from attrs import evolve

from agent.execution.children.serve import serve
from agent.execution.wire import Channel
from agent.source.document import parse
from cuda_lsp.worker.asked import Task
from cuda_lsp.worker.messages import Ended, Rewrite, Staged
from tests.server.rewrites import relaunched, replaced, rewritten


def handle(channel: Channel) -> None:
    task: Task = channel.receive(Task)
    found: list[Rewrite] = []
    reason = "done"
    for word in task.options.only:
        name, _, rest = word.partition(":")
        if name == "stage":
            channel.send(Staged(rest))
        elif name == "model":
            channel.send(Staged(f"may ask {task.options.model.name if task.options.model else 'nobody'}"))
        elif name == "sleep":
            time.sleep(float(rest))
        elif name == "die" or (name == "die-once" and not Path(rest).exists()):
            if rest:
                Path(rest).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "child":
            sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
            child = subprocess.Popen(sleeper, start_new_session=True)
            Path(rest).write_text(str(child.pid))
        elif name == "noise":
            print("this must not reach the pipe", flush=True)
        elif name in ("rewrite", "rewrites"):
            document = parse(task.text, task.path)
            found += [rewritten(document, task.kernel, number) for number in range(int(rest or 1))]
        elif name == "launch":
            found.append(relaunched(parse(task.text, task.path), task.kernel))
        elif name == "by-hand":
            made = rewritten(parse(task.text, task.path), task.kernel)
            found.append(evolve(made, anchors=None, by_hand="no launch is in this file"))
        elif name == "replace":
            found.append(replaced(parse(task.text, task.path), task.kernel))
        elif name == "fresh":
            make = relaunched if rest else rewritten
            found.append(make(parse(task.text, task.path), task.kernel, time.time_ns()))
        elif name == "end":
            reason = rest
    channel.send(Ended(reason, f"{reason}: {task.kernel}", tuple(found)))


if __name__ == "__main__":
    serve(handle)
