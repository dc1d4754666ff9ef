"""Whether all that is wanted of a program that is still running has been recorded."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agent.inference.capture import naming
from agent.inference.capture.errors import CaptureError
from agent.inference.capture.log import read_capture
from agent.inference.capture.running import Wanted
from agent.source.document import Document
from agent.source.kernel import Kernel


def complete(place: Path, wanted: Wanted, documents: Sequence[tuple[Document, Sequence[Kernel]]]) -> Callable[[], bool]:
    """Whether a launch was recorded of each kernel that ``wanted`` names, and of each that stands beside its document;
    with what it left where that is recorded too. Reads the logs in ``place`` anew each time."""

    def enough() -> bool:
        try:
            launches = read_capture(place).launches
        except CaptureError:
            return False
        done = [one for one in launches if one.after or not one.arguments or not wanted.after]
        names = {naming.spoken(one).partition("<")[0].rpartition("::")[2] for one in done}
        return names >= set(wanted.kernels) and all(
            any(naming.kernel_of(one, document) == kernel for one in done)
            for document, kernels in documents
            for kernel in kernels
        )

    return enough
