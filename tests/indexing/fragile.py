"""The process that holds the index, with a file in the workspace that it does not survive."""

import os

from cuda_lsp.indexing import __main__ as served
from cuda_lsp.indexing import workspace

READ = workspace.read_facts


def read_facts(text: bytes) -> object:
    if b"poison" in text:
        os._exit(3)
    return READ(text)


if __name__ == "__main__":
    workspace.read_facts = read_facts  # type: ignore[assignment]
    served.main()
