"""Expressions of a plan as host code at a launch site."""

import re
from collections.abc import Mapping

from attrs import evolve, frozen

from agent.search.host.problem import Inexpressible
from agent.search.host.sites import arguments_of, names_in_scope, statement_of
from agent.source.document import Document
from agent.source.launch import LaunchSite
from agent.workload import dtypes
from agent.workload.bind import environment
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, ExpressionError, build, name, number
from agent.workload.plan import Grid, Launch, Plan
from agent.workload.workload import Workload

_SIMPLE = re.compile(r"[A-Za-z_][\w.]*|\d+|[A-Za-z_]\w*\([^()]*\)")
INT_MAX = 2**31 - 1


@frozen
class Speller:
    """How the plan's names are written at one place of the host code.

    ``same`` are whole arguments that the site writes in its own way (``alpha`` for ``0.2f``). ``told`` are names with
    the text that stands for them (launch arguments, scratch buffers, loop variables); ``seen`` is what the place can
    see under its own name; ``locals`` are those of the plan that it cannot see, ``values`` numbers that do not vary,
    ``declared`` every name's value at the declared sizes.
    """

    place: str
    same: Mapping[Expression, str]
    told: Mapping[str, str]
    seen: frozenset[str]
    locals: Mapping[str, Expression]
    values: Mapping[str, int | float]
    declared: Mapping[str, int | float]

    def text(self, expression: Expression) -> str:
        """Raises Inexpressible where a name cannot be told here."""
        if expression.op == "record" and expression not in self.same:
            raise Inexpressible(f"{self.place} passes a struct, whose new contents are not written into host code")
        return self.same.get(expression) or self._written(expression, wide=False)

    def dims(self, grid: Grid) -> str:
        """``n``, or ``dim3(n, m)``."""
        x, y, z = (self.text(part) for part in grid)
        used = [x] if y == z == "1" else [x, y] if z == "1" else [x, y, z]
        return used[0] if len(used) == 1 else f"dim3({', '.join(used)})"

    def bytes(self, extent: Expression, dtype: str) -> str:
        """The bytes of a buffer; with ``size_t`` arithmetic where ``int`` would overflow near the declared sizes."""
        element = f"sizeof({dtypes.c_name(dtype)})" if not dtypes.is_raw(dtype) else str(dtypes.size_of(dtype))
        try:
            wide = extent.evaluate(self.declared) * 4 > INT_MAX
        except ExpressionError:
            wide = True
        text = self._written(extent, wide)
        return f"{element} * {text}" if _SIMPLE.fullmatch(text) else f"{element} * ({text})"

    def also(self, told: Mapping[str, str]) -> "Speller":
        """The same with further names; a local of the plan among them is no longer told by what it stands for."""
        left = {one: value for one, value in self.locals.items() if one not in told}
        return evolve(self, told={**self.told, **told}, locals=left)

    def _written(self, expression: Expression, wide: bool) -> str:
        spell, whole = self._passed_on(expression.substitute(self.locals))
        plain = _without_calls(whole).simplify()
        marks = {one: f"__name_{index}__" for index, one in enumerate(sorted(plain.names))}
        text = str(plain.substitute({one: name(mark) for one, mark in marks.items()}))
        for one, mark in marks.items():
            told = spell._name(one)
            if wide:
                told = f"(size_t){told}" if _SIMPLE.fullmatch(told) else f"(size_t)({told})"
            elif text != mark and not _SIMPLE.fullmatch(told):
                told = f"({told})"
            text = text.replace(mark, told)
        return text

    def _passed_on(self, expression: Expression) -> tuple["Speller", Expression]:
        """``out_width`` for ``(width - 11) / 4 + 1`` wherever that stands, where it is what the site passes on."""
        names = {one: text for one, text in self.same.items() if one.names and _SIMPLE.fullmatch(text)}
        spell = evolve(self, told={**self.told, **{f"={text}": text for text in names.values()}})
        return spell, _replaced(expression, {one: name(f"={text}") for one, text in names.items()})

    def _name(self, one: str) -> str:
        if one in self.told:
            return self.told[one]
        if one in self.seen:
            return one
        if one in self.values:
            return str(number(self.values[one]))
        raise Inexpressible(f"{self.place} does not know {one}")


def speller(site: LaunchSite, launch: Launch, plan: Plan, old: Plan, workload: Workload, document: Document) -> Speller:
    """How a plan is written at the site of one of the original's launches."""
    seen = names_in_scope(document, statement_of(document, site))
    known = dict(old.locals)
    locals_ = {one: value for one, value in plan.locals if one not in seen or known.get(one) != value}
    sizes = {size.name for size in workload.sizes}
    # What a directive names may be something else in the host code: only what the site passes on is certain there.
    own = seen if workload.origin.kind == "launch" else seen & {macro.name for macro in document.macros}
    try:
        declared = environment(workload, plan)
    except WorkloadError as error:
        raise Inexpressible(str(error)) from None
    return Speller(
        place=f"the launch at line {site.line}",
        same=_same(launch, site),
        told=_told(launch, site, workload, own),
        seen=own,
        locals=_closed(locals_),
        values={one: value for one, value in declared.items() if one not in sizes and one not in dict(plan.locals)},
        declared=declared,
    )


def _same(launch: Launch, site: LaunchSite) -> dict[Expression, str]:
    """Arguments that are more than a name. A whole number may stand for something else elsewhere: it is left out."""
    pairs = zip(launch.arguments, site.arguments, strict=False)
    return {one: text for one, text in pairs if one.op != "name" and not isinstance(one.constant, int)}


def _told(launch: Launch, site: LaunchSite, workload: Workload, seen: frozenset[str]) -> dict[str, str]:
    """Buffers under their host names, where the site sees them, and what the site passes on."""
    hosts = {buffer.name: buffer.host for buffer in workload.buffers if buffer.host in seen}
    return {**hosts, **arguments_of(launch, site)}


def _closed(locals_: Mapping[str, Expression]) -> dict[str, Expression]:
    """Locals over each other, told in what they stand for."""
    closed: dict[str, Expression] = {}
    for one, value in locals_.items():
        closed[one] = value.substitute(closed)
    return closed


def _replaced(expression: Expression, known: Mapping[Expression, Expression]) -> Expression:
    if expression in known:
        return known[expression]
    parts = tuple(_replaced(part, known) for part in expression.operands)
    return Expression(expression.op, parts, expression.value, expression.single) if parts else expression


def _without_calls(expression: Expression) -> Expression:
    """``min`` and ``max`` are no functions of host C++ for mixed types: they become conditions, ``ceil_div`` a
    quotient."""
    parts = tuple(_without_calls(part) for part in expression.operands)
    if expression.op == "call" and expression.value in ("min", "max"):
        left, right = parts
        return build("?", (build("<" if expression.value == "min" else ">", (left, right)), left, right))
    if expression.op == "call" and expression.value == "ceil_div":
        above, unit = parts
        return build("/", (build("-", (build("+", (above, unit)), number(1))), unit))
    return Expression(expression.op, parts, expression.value, expression.single) if parts else expression
