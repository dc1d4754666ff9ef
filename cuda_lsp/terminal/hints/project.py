"""Which rules run on a file, how they are shown and what is left out: the command line over ``.cuda-lsp.toml``."""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from attrs import evolve, frozen

from agent.workload.settings import SettingsError, read_settings
from cuda_lsp.ruling import unknown
from cuda_lsp.settings import Settings, read
from cuda_lsp.terminal.hints.exclude import SKIPPED, Pattern, excluded, excluded_within, patterns

_RULES = ("select", "ignore", "severities")
"""Keys of ``[hints]`` that mean what the editor's settings of the same names mean."""


@frozen
class Project:
    """What holds in one folder."""

    settings: Settings
    left_out: tuple[Pattern, ...] = ()


Projects = Callable[[str], Project]
"""What holds in a folder. Raises SettingsError, naming the file and the key."""


def projects(select: Sequence[str], ignore: Sequence[str]) -> Projects:
    """What the settings files say, with the rules of the command line in place of theirs where it names some."""

    @lru_cache(maxsize=256)
    def of(folder: str) -> Project:
        found = read_settings(Path(folder))
        project = Project(Settings()) if found.path is None else project_of(found.path, found.hints)
        settings = project.settings
        told = evolve(settings, select=tuple(select) or settings.select, ignore=tuple(ignore) or settings.ignore)
        return evolve(project, settings=told)

    return of


def project_of(path: Path, hints: dict[str, object] | object) -> Project:
    """The table ``[hints]`` of a settings file. Raises SettingsError."""
    table = hints if isinstance(hints, dict) else {}
    for key in table:
        if key not in (*_RULES, "exclude"):
            raise SettingsError(f"{path}: unknown key `hints.{key}`; known are {', '.join(_RULES)}, exclude")
    settings, complaints = read({key: table[key] for key in _RULES if key in table}, Settings())
    wrong = (*complaints, *unknown(settings))
    if wrong:
        raise SettingsError(f"{path}: [hints]: {wrong[0]}")
    globs = table.get("exclude", [])
    if not isinstance(globs, list) or not all(isinstance(glob, str) for glob in globs):
        raise SettingsError(f'{path}: `hints.exclude`: expected a list of texts, as in ["gen/"]')
    try:
        return Project(settings, patterns(globs, str(path.parent)))
    except ValueError as error:
        raise SettingsError(f"{path}: `hints.exclude`: {error}") from None


def exclusion(project: Projects, stated: tuple[Pattern, ...]) -> Callable[[str, bool, bool], bool]:
    """Whether a path is left out: by the usual patterns, the project's and those of the command line, of which the
    last that meets it counts. What was named is not held against the usual ones."""
    usual = patterns(SKIPPED, os.sep)

    def excludes(path: str, is_folder: bool, named: bool) -> bool:
        try:
            told = project(os.path.dirname(path)).left_out  # noqa: PTH120
        except SettingsError:
            told = ()  # said where a file of that folder is looked at
        if named:
            return excluded_within(path, is_folder, (*told, *stated))
        return excluded(path, is_folder, (*usual, *told, *stated))

    return excludes
