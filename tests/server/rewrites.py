"""Rewrites as a worker would send them, without the minutes that proving them takes."""

from agent.evaluation.verdict import Correctness, Evidence, GateResult, Precision, Speed, Verdict
from agent.source.diff import unified
from agent.source.document import Document, parse
from agent.source.edits import Edit, apply_edits
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.source.line_ends import line_end
from agent.source.span import Span
from agent.workload.errors import WorkloadError
from cuda_lsp.proposals.anchors import anchor, locate
from cuda_lsp.proposals.proof import current_key, project_settings
from cuda_lsp.worker.messages import Rewrite

VERDICT = Verdict(
    Correctness("right", "emulated", "", ("normal",), ("n=7",), "n=7", "2 blocks at n=4096"),
    Precision("same", 1e-7, 1e-7, "original promoted to float64"),
    Speed("estimated", 1.5, target="H200", original_seconds=2e-6, candidate_seconds=float("inf")),
    (GateResult("source", "passed", "parses", 0.1),),
    Evidence("a", "b", "NVRTC", (), "sm_90", "emulated", "in bounds", (1, 2), ("zeros",), (), {"max": 1.0},
             {"DRAM bytes": (2.0, 1.0)}, {"k": (None, None)}, ("nothing",), "cuda-lsp"),
)  # fmt: skip


def rewritten(document: Document, name: str, number: int = 0) -> Rewrite:
    """The kernel with a comment more at the start of its body, and a helper above it and above its own comment."""
    kernel = document.kernel(name)
    inside, above = kernel.body.start + 1, _above(document, kernel)
    end = line_end(document.text)
    edits = [
        Edit(Span(above, above), f"// helper {number}".encode() + end),
        Edit(Span(inside, inside), f" /* faster {number} */".encode()),
    ]
    return _rewrite(document, name, parse(apply_edits(document.text, edits), document.path))


def _above(document: Document, kernel: Kernel) -> int:
    """Where the line comments that stand directly above a kernel begin."""
    at = document.line(kernel.span.start) - 1
    lines = document.text.split(b"\n")
    while at > 0 and lines[at - 1].lstrip().startswith(b"//"):
        at -= 1
    return min(document.line_starts[at], kernel.span.start)


def relaunched(document: Document, name: str, number: int = 0) -> Rewrite:
    """The same with every launch of the kernel in blocks of 128."""
    spliced = parse(applied(rewritten(document, name, number), document), document.path)
    sites = [site for site in spliced.launches if site.kernel == document.kernel(name).name]
    edits = [Edit(site.block_span, b"128") for site in sites]
    return _rewrite(document, name, parse(apply_edits(spliced.text, edits), document.path))


def replaced(document: Document, name: str, number: int = 0) -> Rewrite:
    """The same with each launch in two halves and memory between them: other launches, and host code around them."""
    spliced = parse(applied(rewritten(document, name, number), document), document.path)
    end = line_end(document.text)
    edits = []
    for site in (site for site in spliced.launches if site.kernel == document.kernel(name).name):
        launch = spliced.text[site.span.start : site.span.end]
        halves = (b"float* part = nullptr;", b"cudaMalloc(&part, 64);", launch + b";", launch + b";", b"cudaFree(part)")
        edits.append(Edit(site.span, (end + b"    ").join(halves)))
    return _rewrite(document, name, parse(apply_edits(spliced.text, edits), document.path))


def applied(rewrite: Rewrite, document: Document) -> bytes:
    """The document with a rewrite of it."""
    assert rewrite.anchors is not None
    edits = locate(rewrite.anchors, document)
    assert edits is not None
    return apply_edits(document.text, edits)


def _rewrite(document: Document, name: str, new: Document) -> Rewrite:
    kernel = document.kernel(name)
    anchors = anchor(document, kernel, new)
    return Rewrite(
        f"faster {kernel.name}",
        ("catalogue-idea",),
        "a",
        "because",
        VERDICT,
        anchors,
        key(document, name),
        unified(document, new),
        "" if anchors else "by hand",
        3,
    )


def key(document: Document, name: str) -> str:
    """What a verdict rests on; empty where the text has no workload."""
    try:
        return current_key(document, document.kernel(name), project_settings(document.path))
    except (SourceError, WorkloadError):
        return ""
