"""What cuda-lsp adds to the Language Server Protocol. All of it is documented in docs/protocol.md.

Commands take a :class:`KernelReference` first where they are about a kernel.
"""

from __future__ import annotations

import hashlib
from typing import Any

import attrs
import cattrs
from attrs import frozen
from pygls.exceptions import JsonRpcContentModified, JsonRpcInvalidParams

from agent.source.document import Document
from agent.source.kernel import Kernel
from cuda_lsp.session import Session, Snapshot, ordinals

SUGGEST = "cuda-lsp.suggestIdeas"
OPTIMIZE = "cuda-lsp.optimize"
VERIFY = "cuda-lsp.verify"
BENCHMARK = "cuda-lsp.benchmark"
DESCRIBE = "cuda-lsp.describeWorkload"
OWN_IDEA = "cuda-lsp.tryIdea"
REVIEW = "cuda-lsp.review"
ACCEPT = "cuda-lsp.accept"
REJECT = "cuda-lsp.reject"
FIX = "cuda-lsp.fix"
FIX_ALL = "cuda-lsp.fixAll"
SHOW_CODE = "cuda-lsp.showCode"
CANCEL = "cuda-lsp.cancel"
FORGET = "cuda-lsp.forgetConsent"
SHOW_KERNEL = "cuda-lsp.showKernel"
SHOW_HINTS = "cuda-lsp.showHints"

ASK_TEXT_REQUEST = "cuda-lsp/askText"
"""To clients that announced ``experimental.cudaLsp.askText``: let the user type a text."""

REVIEW_NOTIFICATION = "cuda-lsp/review"
"""To clients that announced ``experimental.cudaLsp.review``: show this review."""


@frozen
class KernelReference:
    """Which kernel a command or an action is about. ``ordinal`` tells apart kernels of one name, ``hash`` is of the
    bytes of its definition: where it no longer fits, the kernel was edited since."""

    uri: str
    version: int
    kernel: str
    ordinal: int
    hash: str


def reference(snapshot: Snapshot, kernel: Kernel) -> KernelReference:
    """The reference of ``kernel``, which stands in ``snapshot``."""
    ordinal = snapshot.once(ordinals)[kernel.span.start]
    return KernelReference(
        snapshot.uri, snapshot.version, kernel.qualified_name, ordinal, kernel_hash(snapshot.document, kernel)
    )


def kernel_hash(document: Document, kernel: Kernel) -> str:
    return hashlib.sha256(document.text[kernel.span.start : kernel.span.end]).hexdigest()[:16]


def as_argument(value: KernelReference) -> dict[str, Any]:
    """As it is sent: plain JSON."""
    return attrs.asdict(value)


def read_arguments(arguments: tuple[Any, ...]) -> KernelReference:
    """Of a command that takes a kernel and nothing else. Raises JsonRpcInvalidParams."""
    if len(arguments) != 1:
        raise JsonRpcInvalidParams("expected one argument: a kernel")
    return read_reference(arguments[0])


def read_reference(argument: object) -> KernelReference:
    """From what a client sent. Raises JsonRpcInvalidParams."""
    try:
        return cattrs.structure(argument, KernelReference)
    except (cattrs.BaseValidationError, TypeError, ValueError) as error:
        raise JsonRpcInvalidParams(
            "expected a kernel as {uri, version, kernel, ordinal, hash}, as lenses and code actions carry it"
        ) from error


def find_kernel(session: Session, wanted: KernelReference) -> tuple[Snapshot, Kernel]:
    """The kernel as it stands now, wherever it moved to.

    Raises JsonRpcContentModified where it was edited, is gone, or its document is closed.
    """
    snapshot = session.snapshot(wanted.uri)
    if snapshot is None:
        raise JsonRpcContentModified(f"{wanted.uri} is not open")
    named = [kernel for kernel in snapshot.document.kernels if kernel.qualified_name == wanted.kernel]
    alike = [kernel for kernel in named if kernel_hash(snapshot.document, kernel) == wanted.hash]
    if len(alike) == 1:
        return snapshot, alike[0]
    if wanted.ordinal < len(named) and named[wanted.ordinal] in alike:
        return snapshot, named[wanted.ordinal]
    raise JsonRpcContentModified(f"{wanted.kernel} was edited since this was offered; ask again")
