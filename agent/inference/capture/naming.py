"""Which kernel of a file a recorded launch is of, and by what name it is launched."""

import re

from agent.inference.capture.launches import Launch
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.types import split_name

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::")
_STATIC = re.compile(r"__nv_static_\d+__\w*?_(?=_Z)")


def spoken(launch: Launch) -> str:
    """The launch's kernel as a program would name it, template arguments included: ``ns::scan<float, 256>``."""
    text = _ANONYMOUS.sub("", _STATIC.sub("", launch.readable))
    end = _outside(text, "(")
    head = text[: end if end >= 0 else len(text)].strip()
    # what stands before the last space outside brackets is the type that a template returns
    start = _outside(head, " ", last=True)
    return head[start + 1 :]


def _outside(text: str, char: str, last: bool = False) -> int:
    """Where ``char`` first (or last) stands outside angle brackets; -1 where it does not."""
    depth, found = 0, -1
    for at, one in enumerate(text):
        depth += (one == "<") - (one == ">")
        if one == char and depth == 0 and (last or found < 0):
            found = at
    return found


def kernel_of(launch: Launch, document: Document) -> Kernel | None:
    """The kernel of ``document`` that was launched: of its name, with as many parameters. None where there is none."""
    name = split_name(spoken(launch))[0]
    same = [kernel for kernel in document.kernels if _ends_alike(kernel.qualified_name, name)]
    if launch.layout == "unknown" or not launch.arguments:
        return same[0] if same else None
    return next((kernel for kernel in same if len(kernel.parameters) == len(launch.arguments)), None)


def _ends_alike(written: str, spoken: str) -> bool:
    """A file may be an included piece of a namespace, or leave an unnamed one out."""
    first, second = (name.removeprefix("::").split("::") for name in (written, spoken))
    count = min(len(first), len(second))
    return first[-count:] == second[-count:]


def launch_name(launch: Launch, kernel: Kernel) -> str:
    """The name expression that a plan launches the kernel by."""
    arguments = split_name(spoken(launch))[1]
    return kernel.qualified_name + (f"<{', '.join(arguments)}>" if arguments else "")
