"""Steps of a plan as statements of host code."""

import re
from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from agent.search.host.problem import Inexpressible
from agent.search.host.relaunch import attribute, needs_attribute
from agent.search.host.sites import checked
from agent.search.host.spelling import Speller
from agent.workload import dtypes
from agent.workload.expression import name as name_of
from agent.workload.plan import Copy, Fill, Grid, Launch, Plan, Repeat, Scratch, Step, Swap
from agent.workload.workload import Buffer, Workload


@frozen
class Names:
    """``scratch`` gives each new scratch buffer its host name; ``stream`` is the launch's stream, if it names one;
    ``check`` the macro or function that the file puts around its allocations. ``grids`` and ``blocks`` are the shapes
    that a kernel's launches had, in the user's own words: other kernels may count on their numbers."""

    scratch: dict[str, str]
    stream: str | None
    standard_swap: bool
    check: str = ""
    grids: Mapping[tuple[str, Grid], str] = field(factory=dict)
    blocks: Mapping[tuple[str, Grid], str] = field(factory=dict)

    def checked(self, call: str) -> str:
        """A call of the runtime in the file's own error check, where it has one."""
        return checked(call, self.check)


@define
class _Writer:
    spell: Speller
    names: Names
    plan: Plan
    workload: Workload
    unit: str
    lines: list[str] = field(factory=list)

    def step(self, step: Step, indent: str, spell: Speller) -> None:
        if isinstance(step, Launch):
            self._launch(step, indent, spell)
        elif isinstance(step, Swap):
            self._swap(step, indent, spell)
        elif isinstance(step, Repeat):
            self._repeat(step, indent, spell)
        else:
            self._move(step, indent, spell)

    def _launch(self, launch: Launch, indent: str, spell: Speller) -> None:
        shared = spell.text(launch.shared)
        if needs_attribute(launch, spell):
            self.lines.append(indent + self.names.checked(attribute(launch, shared)))
        stream = self.names.stream
        rest = f", {shared}, {stream}" if stream else f", {shared}" if shared != "0" else ""
        arguments = ", ".join(spell.text(argument) for argument in launch.arguments)
        grid = self.names.grids.get((launch.kernel, launch.grid)) or spell.dims(launch.grid)
        block = self.names.blocks.get((launch.kernel, launch.block)) or spell.dims(launch.block)
        head = f"{launch.kernel}<<<{grid}, {block}{rest}>>>"
        line = f"{indent}{head}({arguments});"
        if len(line) > 120:
            line = f"{indent}{head}(\n{indent}{self.unit}{arguments});"
        self.lines.append(line)

    def _swap(self, step: Swap, indent: str, spell: Speller) -> None:
        first, second = (spell.also(self.names.scratch).text(name_of(one)) for one in (step.first, step.second))
        if not self.names.standard_swap:
            raise Inexpressible("the rewrite exchanges two pointers, and the file does not use std::swap")
        self.lines.append(f"{indent}std::swap({first}, {second});")

    def _repeat(self, step: Repeat, indent: str, spell: Speller) -> None:
        variable = step.variable or "turn"
        inner = spell.also({variable: variable})
        if step.count is not None:
            head = f"int {variable} = 0; {variable} < {spell.text(step.count)}; ++{variable}"
        else:
            assert step.start is not None and step.update is not None and step.condition is not None
            start, condition = spell.text(step.start), inner.text(step.condition)
            head = f"int {variable} = {start}; {condition}; {_stepped(variable, inner.text(step.update))}"
        self.lines.append(f"{indent}for ({head}) {{")
        for part in step.body:
            self.step(part, indent + self.unit, inner)
        self.lines.append(indent + "}")

    def _move(self, step: Fill | Copy, indent: str, spell: Speller) -> None:
        name = step.buffer if isinstance(step, Fill) else step.target
        held = _held(name, self.plan, self.workload)
        size = spell.bytes(held.extent, held.dtype)
        stream = self.names.stream or "0"
        if isinstance(step, Fill):
            call = f"cudaMemsetAsync({spell.text(name_of(name))}, {step.byte & 255}, {size}, {stream})"
            self.lines.append(indent + self.names.checked(call))
        else:
            ends = f"{spell.text(name_of(step.target))}, {spell.text(name_of(step.source))}"
            call = f"cudaMemcpyAsync({ends}, {size}, cudaMemcpyDeviceToDevice, {stream})"
            self.lines.append(indent + self.names.checked(call))


def statements(
    steps: Sequence[Step], spell: Speller, names: Names, plan: Plan, workload: Workload, indent: str, unit: str
) -> list[str]:
    """The steps as lines of host code; new scratch that has to be zeroed is cleared first."""
    inner = spell.also(names.scratch)
    writer = _Writer(inner, names, plan, workload, unit)
    for scratch in plan.scratch:
        if scratch.zeroed and scratch.name in names.scratch:
            writer.step(Fill(scratch.name, 0), indent, inner)
    for step in steps:
        writer.step(step, indent, inner)
    return writer.lines


def allocation(scratch: Scratch, names: Names, spell: Speller, indent: str) -> list[str]:
    """A declaration and a cudaMalloc; bytes as in the plan."""
    kind, name = dtypes.c_name(scratch.dtype), names.scratch[scratch.name]
    return [
        f"{indent}{kind}* {name} = nullptr;",
        indent + names.checked(f"cudaMalloc(&{name}, {spell.bytes(scratch.extent, scratch.dtype)})"),
    ]


def _stepped(variable: str, value: str) -> str:
    """``d *= 2`` for ``d = d * 2``, as people write it."""
    own = re.fullmatch(rf"{re.escape(variable)} ([-+*/]) (\w+)", value)
    if own is None:
        return f"{variable} = {value}"
    return f"{own[1] * 2}{variable}" if own[1] in "+-" and own[2] == "1" else f"{variable} {own[1]}= {own[2]}"


def _held(name: str, plan: Plan, workload: Workload) -> Scratch | Buffer:
    held: tuple[Scratch | Buffer, ...] = (*plan.scratch, *workload.buffers)
    return next(one for one in held if one.name == name)
