"""The process that holds the index, with a file in the workspace that it does not survive."""

import os

from cuda_lsp.indexing import __main__ as served
from cuda_lsp.indexing import workspace

READ, PARSE = workspace.read_facts, workspace.parse


def read_facts(text: bytes) -> object:
    if b"poison" in text:
        os._exit(3)
    return READ(text)


def parse(text: bytes, *more: object) -> object:
    if b"poison" in text:
        os._exit(3)
    return PARSE(text, *more)  # type: ignore[arg-type]


if __name__ == "__main__":
    workspace.read_facts = read_facts  # type: ignore[assignment]
    workspace.parse = parse  # type: ignore[assignment]
    served.main()
