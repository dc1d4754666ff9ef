"""Which language models the user allowed to be told of code, and which not.

The answers are kept in the user's own state folder: no project can answer in the user's place. One holds for an
endpoint, or for an endpoint in one project, by the folder of the file that names it; the narrower one counts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import platformdirs


def project_of(settings: Path | None) -> str:
    """How answers call the project of a settings file: by its folder. Empty where there is none."""
    return str(settings.resolve().parent) if settings else ""


def answer(endpoint: str, project: str = "") -> bool | None:
    """What the user said for good; None where nothing was said."""
    told = _read()
    said = told["projects"].get(project, {}).get(endpoint)
    return said if said is not None else (True if endpoint in told["endpoints"] else None)


def agreed(endpoint: str, project: str = "") -> bool:
    """Whether the user allowed it for good."""
    return answer(endpoint, project) is True


def remember(endpoint: str, project: str = "", yes: bool = True) -> str:
    """Keep an answer: for a project or, without one, for the endpoint wherever it is named. Gives the reason where that
    cannot be written down, else an empty text."""
    told = _read()
    if project:
        told["projects"].setdefault(project, {})[endpoint] = yes
    else:
        told["endpoints"] = sorted({*told["endpoints"], endpoint})
    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(told) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        return f"{path} cannot be written ({error.strerror}): you will be asked again"
    return ""


def forget() -> str:
    """Take every answer back. Gives the reason where that cannot be done, else an empty text."""
    try:
        _file().unlink(missing_ok=True)
    except OSError as error:
        return f"{_file()} cannot be removed ({error.strerror}); remove it yourself"
    return ""


def _file() -> Path:
    return Path(platformdirs.user_state_dir("cuda-lsp", appauthor=False)) / "consent.json"


def _read() -> dict[str, Any]:
    """Whatever stands in the file, what is of the wrong form left out: in doubt the user is asked."""
    try:
        told = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        told = {}
    told = told if isinstance(told, dict) else {}
    endpoints, projects = told.get("endpoints"), told.get("projects")
    return {
        "endpoints": [one for one in endpoints if isinstance(one, str)] if isinstance(endpoints, list) else [],
        "projects": {project: _answers(said) for project, said in projects.items()}
        if isinstance(projects, dict)
        else {},
    }


def _answers(said: object) -> dict[str, bool]:
    return {one: yes for one, yes in said.items() if isinstance(yes, bool)} if isinstance(said, dict) else {}
