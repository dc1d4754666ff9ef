"""What a file and the headers of its program say to its kernels."""

from functools import lru_cache

from agent.analysis.file import FileFacts, file_facts
from agent.source.document import Document, parse
from agent.workload.joined.headers import with_headers


def program_facts(document: Document) -> FileFacts:
    """The facts of a file with its local headers in their places, branches of ``#if`` that are not compiled left out:
    its kernels use what stands there as their own. Those of the file alone where it has no such header."""
    whole = with_headers(document)
    return file_facts(document) if whole == document.text else _joined(whole)


@lru_cache(maxsize=16)
def _joined(whole: bytes) -> FileFacts:
    return file_facts(parse(whole))
