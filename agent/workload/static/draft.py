"""A directive with blanks, for the user to complete."""

from agent.workload.directive import format_directive
from agent.workload.workload import Workload


def draft_text(workload: Workload) -> str:
    """The directive of a workload in which what is not known is written ``?``."""
    return format_directive(workload).replace("__open__", "?")
