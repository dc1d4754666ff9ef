"""What the user's settings say about the rules: which run, and how what they find is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_lsp.settings import OFF, Settings

if TYPE_CHECKING:
    from agent.analysis.rules import Selection

# Importing the rules takes longer than a server may take to start, so that it happens where they are first needed.


def selection(settings: Settings) -> Selection:
    """The rules that run. A severity of ``off`` ignores."""
    from agent.analysis.rules import Selection

    off = tuple(name for name, severity in settings.severities.items() if severity == OFF)
    return Selection(tuple(settings.select), (*settings.ignore, *off))


def severity(settings: Settings, rule: str, usual: str) -> str:
    """How a rule's findings are shown: by the longest name that meets it, else as ``usual``."""
    found = {name: shown for name, shown in settings.severities.items() if shown != OFF and _meets(name, rule)}
    return found[max(found, key=_length)] if found else usual


def unknown(settings: Settings) -> tuple[str, ...]:
    """The names in the settings that meet no rule, in words."""
    from agent.analysis.rules import rules

    told = dict.fromkeys((*settings.select, *settings.ignore, *settings.severities))
    names = [name for name in told if not any(_meets(name, rule.id) for rule in rules())]
    return tuple(f"{name!r} is no rule: there are {', '.join(rule.id for rule in rules())} and ALL" for name in names)


def _meets(name: str, rule: str) -> bool:
    """As agent.analysis.rules.selection has it: an id, the letter of a family, or ALL."""
    name = name.strip().upper()
    return name in ("ALL", rule) or (name.isalpha() and rule.startswith(name))


def _length(name: str) -> int:
    return 0 if name.strip().upper() == "ALL" else len(name.strip())
