"""A program: a document and a plan over its kernels. Original and rewrite are both programs."""

from attrs import frozen

from agent.source.document import Document
from agent.workload.plan import Plan


@frozen
class Program:
    """``plan`` launches kernels that ``document`` defines. ``label`` names it in messages (``candidate 3``)."""

    document: Document
    plan: Plan
    label: str
