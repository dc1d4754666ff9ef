"""What a verdict rests on, as one key: when it changes, the verdict says nothing any more."""

import hashlib
from pathlib import Path

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.slicing import device_slice
from agent.workload.directive import format_directive
from agent.workload.find import find_workload
from agent.workload.settings import Settings, read_settings, settings_of
from agent.workload.workload import Workload


def proof_key(document: Document, kernel: Kernel, workload: Workload, settings: Settings) -> str:
    """A hash of the device code that the kernel needs, of its workload and of the compiler flags. Where things stand
    in the file does not enter. Raises SourceError where the code cannot be found."""
    code = device_slice(document, [kernel.qualified_name])
    texts = (code.text, *(text for header in code.headers for text in header))
    parts = [line for text in texts for line in _lines(text)]
    parts += [format_directive(workload), *settings.flags]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def current_key(document: Document, kernel: Kernel, settings: Settings) -> str:
    """The key of the text as it is now. Raises SourceError, NoWorkload, WorkloadError."""
    return proof_key(document, kernel, find_workload(document, kernel, settings), settings)


def project_settings(path: str, folder: str = "") -> Settings:
    """The settings of a file's project, or of ``folder``'s where the text was never saved. Raises SettingsError."""
    if path:
        return settings_of(path)
    return read_settings(Path(folder)) if folder else Settings()


def _lines(text: str) -> list[str]:
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#line")]
