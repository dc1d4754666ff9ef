"""A directive with blanks, for the user to complete."""

from agent.workload.directive import format_directive
from agent.workload.workload import Workload


def draft_text(workload: Workload, open_sizes: tuple[str, ...] = (), open_numbers: frozenset[str] = frozenset()) -> str:
    """The directive of a workload in which what is not known is written ``?``. Of ``open_sizes`` those in
    ``open_numbers`` are constants: nothing is as large as they are."""
    first, *rest = format_directive(workload).replace("__open__", "?").splitlines(keepends=True)
    asked = (f"//   {'const   ' if name in open_numbers else 'size    '} {name} = ?\n" for name in open_sizes)
    return "".join([first, *asked, *rest])
