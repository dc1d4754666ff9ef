"""A directive with blanks, for the user to complete."""

from agent.workload.directive import format_directive
from agent.workload.workload import Workload


def draft_text(workload: Workload, open_sizes: tuple[str, ...] = ()) -> str:
    """The directive of a workload in which what is not known is written ``?``."""
    first, *rest = format_directive(workload).replace("__open__", "?").splitlines(keepends=True)
    return "".join([first, *(f"//   size     {name} = ?\n" for name in open_sizes), *rest])
