"""What reading the host code told although it left something open: taken from the draft that came of it."""

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.directive import partial_sizes
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.expression import Expression, ExpressionError
from agent.workload.plan import Launch
from agent.workload.statements import read_statements
from agent.workload.static import infer
from agent.workload.types import split_name
from agent.workload.workload import Origin

Three = tuple[int, int, int]
_BLANK = "__open__"
_HOLE = re.compile(r"(?<=[\[(,=<\s])\?(?=[\],)>\s;]|$)", re.M)
_READ = ("launch", "size", "const", "local")


@frozen
class Known:
    """``arguments`` are the values of scalar parameters by name, ``written`` those that are numbers in the launch
    itself. ``block`` and ``template`` are the launch's, where it says them."""

    arguments: Mapping[str, int | float] = field(factory=dict)
    written: frozenset[str] = frozenset()
    block: Three | None = None
    template: tuple[str, ...] | None = None


def known(document: Document, kernel: Kernel) -> Known:
    """Sizes that a directive states, and what the launch says; no more than those where none is found."""
    stated: Mapping[str, Any] = partial_sizes(document, kernel) or {}
    told = _of_launch(document, kernel, stated)
    scalars = {parameter.name for parameter in kernel.parameters if not parameter.pointer_depth}
    own = {name: value for name, value in stated.items() if name in scalars}
    return evolve(told, arguments={**told.arguments, **own}, written=told.written - own.keys())


def _of_launch(document: Document, kernel: Kernel, stated: Mapping[str, Any]) -> Known:
    try:
        found = infer(document, kernel, stated)
    except NoWorkload as error:
        return _from_draft(kernel, error.draft)
    launch = next((one for one in found.plan.launches() if split_name(one.kernel)[0] == kernel.qualified_name), None)
    values: dict[str, int | float] = {size.name: size.value for size in found.sizes}
    values |= _values([(constant.name, constant.value) for constant in found.constants], values)
    return _of(kernel, launch, values) if launch is not None else Known()


def _from_draft(kernel: Kernel, draft: str) -> Known:
    lines = [line.removeprefix("//").strip() for line in _HOLE.sub(_BLANK, draft).splitlines()]
    kept = [line for line in lines if line.split(" ")[0] in _READ and not re.match(rf"size .*{_BLANK}", line)]
    try:
        told = read_statements("\n".join(kept), kernel.qualified_name, Origin("launch"), None)
    except WorkloadError:
        return Known()
    launch = next((one for one in told.plan.launches() if split_name(one.kernel)[0] == kernel.qualified_name), None)
    if launch is None:
        return Known()
    values: dict[str, int | float] = {size.name: size.value for size in told.sizes}
    values |= _values([*((one.name, one.value) for one in told.constants), *told.plan.locals], values)
    return _of(kernel, launch, values)


def _values(named: list[tuple[str, Expression]], values: Mapping[str, int | float]) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for name, expression in named:
        if (value := _value(expression, {**values, **found})) is not None:
            found[name] = value
    return found


def _value(expression: Expression, values: Mapping[str, int | float]) -> int | float | None:
    try:
        return expression.evaluate(values)
    except ExpressionError:
        return None


def _of(kernel: Kernel, launch: Launch, values: Mapping[str, int | float]) -> Known:
    arguments: dict[str, int | float] = {}
    written = set()
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=False):
        value = _value(argument, values) if not parameter.pointer_depth else None
        if value is not None:
            arguments[parameter.name] = value
            written |= {parameter.name} if not argument.names else set()
    sides = [_value(side, values) for side in launch.block]
    block = (int(sides[0]), int(sides[1]), int(sides[2])) if None not in sides else None  # type: ignore[arg-type]
    template = split_name(launch.kernel)[1]
    told = bool(template) and _BLANK not in " ".join(template)
    return Known(arguments, frozenset(written), block, template if told else None)
