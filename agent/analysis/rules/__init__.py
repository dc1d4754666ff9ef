"""Hints: one file per rule in ``catalog/``, run over one kernel and its launches.

``check(document, kernel)`` gives the findings; ``rules()`` lists the rules. Every rule is silent on what it does not
know.
"""

from agent.analysis.rules.checking import check
from agent.analysis.rules.finding import Cost, Finding, Related, Severity
from agent.analysis.rules.registry import Rule, rules
from agent.analysis.rules.selection import EVERYTHING, Selection

__all__ = ["EVERYTHING", "Cost", "Finding", "Related", "Rule", "Selection", "Severity", "check", "rules"]
