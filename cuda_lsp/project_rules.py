"""What ``[hints]`` of a project's ``.cuda-lsp.toml`` says, in the editor too: it holds where the editor's own settings
say nothing, so that both see what ``cuda-lsp hints`` reports in CI."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import evolve

from cuda_lsp.session import Session, Snapshot
from cuda_lsp.settings import Settings

_FILE = ".cuda-lsp.toml"
"""As agent.workload.settings has it, which takes long to import; most documents lie below no such file."""


def learn(session: Session, snapshots: tuple[Snapshot, ...]) -> tuple[bool, tuple[str, ...]]:
    """Read what projects say about documents: whether other rules hold for one now, and what is wrong, in words. Where
    something is wrong, what held before goes on to hold."""
    news, complaints = False, dict[str, None]()
    for snapshot in snapshots:
        before = session.ruling(snapshot.uri)
        try:
            session.rules[snapshot.uri] = now = _ruling(session.settings, snapshot.path)
            news |= now != before
        except ValueError as error:
            complaints[str(error)] = None
    return news, tuple(complaints)


def _ruling(settings: Settings, path: str) -> Settings:
    """The settings for the rules in the file ``path``. Raises SettingsError (a ValueError)."""
    path = os.path.abspath(path) if path else ""  # noqa: PTH100 (links stay links)
    folder = Path(path).parent
    if not path or not any((above / _FILE).is_file() for above in (folder, *folder.parents)):
        return settings
    from agent.workload.settings import read_settings
    from cuda_lsp.terminal.hints.exclude import excluded_within
    from cuda_lsp.terminal.hints.project import project_of

    found = read_settings(folder)
    if found.path is None or not found.hints:
        return settings
    project = project_of(found.path, found.hints)
    if excluded_within(path, False, project.left_out):
        return evolve(settings, select=(), ignore=("ALL",))
    return evolve(
        settings,
        select=settings.select or project.settings.select,
        ignore=settings.ignore or project.settings.ignore,
        severities={**project.settings.severities, **settings.severities},
    )
