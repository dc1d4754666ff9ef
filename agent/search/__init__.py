"""Rounds, branching and budget: from ideas and verdicts to at most three proposals."""
