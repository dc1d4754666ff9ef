"""A page for each rule in the user's cache folder: an editor can open what the code of a hint stands for, offline."""

from __future__ import annotations

import logging
import os
import tempfile
from functools import cache
from pathlib import Path

import platformdirs
from pygls.uris import from_fs_path

import cuda_lsp

log = logging.getLogger(__name__)


def folder() -> Path:
    """One for each version: several servers may run."""
    return Path(platformdirs.user_cache_dir("cuda-lsp", appauthor=False)) / f"rules-{cuda_lsp.__version__}"


@cache
def address(rule: str) -> str:
    """The URI of a rule's page, written or not."""
    return from_fs_path(str(folder() / f"{rule}.md")) or ""


def write_pages() -> None:
    """Write the pages that are not there as they should be. Slow; a folder that cannot be written is logged."""
    from agent.analysis.rules import rules
    from agent.analysis.rules.pages import section

    try:
        folder().mkdir(parents=True, exist_ok=True)
        for rule in rules():
            file, text = folder() / f"{rule.id}.md", section(rule).removeprefix("#")
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                _replace(file, text)
    except OSError as error:
        log.warning("the pages of the rules cannot be written: %s", error)


def _replace(file: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as sink:
        sink.write(text)
    Path(name).replace(file)
