"""Which rules run: by id or by prefix (``M`` selects M1, M2, ...)."""

from attrs import frozen

from agent.analysis.rules.registry import Rule


@frozen
class Selection:
    """``select`` names the rules that run (empty: those that run by default), ``ignore`` those that do not. Where both
    name a rule, the longer name wins, and ``ignore`` among equals. ``ALL`` stands for every rule."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def admits(self, rule: Rule) -> bool:
        wanted = max((_weight(name, rule.id) for name in self.select), default=0 if rule.default else -1)
        unwanted = max((_weight(name, rule.id) for name in self.ignore), default=-1)
        return wanted >= 0 and wanted > unwanted


EVERYTHING = Selection(select=("ALL",))


def _weight(name: str, identity: str) -> int:
    """How closely a name meets a rule: -1 not at all, 0 by ``ALL``, else its length. Digits are not cut: M1 is not
    M12."""
    name = name.strip().upper()
    if name == "ALL":
        return 0
    if name == identity or (name.isalpha() and identity.startswith(name)):
        return len(name)
    return -1
