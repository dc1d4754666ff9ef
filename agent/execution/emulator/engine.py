"""The emulator as a device: requests in, answers out."""

import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from attrs import define, evolve, field, frozen

from agent.execution.compiler.result import Build
from agent.execution.device import Answer, Bytes, Fault, Image, LaunchCounters, Request, Where
from agent.execution.emulator.addresses import FIRST_BUFFER
from agent.execution.emulator.batch import Cancelled, Meter, StepLimit, TimeLimit
from agent.execution.emulator.buffers import EAGER, EAGER_OF_FEW, Buffer, fill_from, new_buffer
from agent.execution.emulator.cluster_shape import clusters_of
from agent.execution.emulator.faults import FaultLog, TooManyFaults
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.launch import Setting, parameter_bytes, run_launch
from agent.execution.emulator.memory import Memory
from agent.execution.emulator.parameters import Parameters
from agent.execution.emulator.program import Loaded, load
from agent.execution.emulator.reach import Reach
from agent.execution.emulator.watch import Totals, launch_counters
from agent.workload.binding import BoundCopy, BoundFill, BoundLaunch

if TYPE_CHECKING:
    from agent.execution.emulator.shadows.shadow import TwinRun


@define(eq=False)
class Run:
    """One request under way."""

    request: Request
    loaded: Loaded
    buffers: dict[str, Buffer]
    memory: Memory
    faults: FaultLog
    meter: Meter
    counters: list[LaunchCounters] = field(factory=list)
    complete: bool = True
    kernels: dict[str, Kernel] = field(factory=dict)
    reach: Reach | None = None
    twins: "TwinRun | None" = None
    back_end: str = "numpy"
    compiled: list[str] = field(factory=list)


@frozen
class Emulator:
    """Runs device code on the CPU, one instruction at a time for all lanes of many blocks, or, where that pays and
    gives the same, as compiled code (see ``compiled``). ``back_end``: ``auto``, ``numpy``, or ``compiled``
    wherever it can.

    Answers are the same on every machine. Of a buffer too large to be made whole (16 MiB and more), pages that the
    program never touched come back as zeros; ``written`` is all False there.
    """

    back_end: str = "numpy"
    name: ClassVar[str] = "emulated"
    emulated: ClassVar[bool] = True

    def run(self, request: Request) -> Answer:
        """Run the steps of ``request`` in order. Never raises for what the program does or the request says."""
        started = time.monotonic()
        meter = Meter(request.step_cap, started + request.seconds, request.cancelled)
        run: Run | None = None
        status, message = "ok", ""
        try:
            run = _begin(request, meter)
            run.back_end = self.back_end
            with np.errstate(all="ignore"):
                for step in request.steps:
                    _step(run, step)
        except Refused as refused:
            status, message = "refused", str(refused)
        except TooManyFaults:
            message = "ended early: too many faults"
        except StepLimit as limit:
            message = f"more than {request.step_cap} thread-instructions"
            if run is not None:
                _report_limit(run, *limit.args)
        except TimeLimit:
            status, message = "timeout", f"more than {request.seconds:g} seconds"
        except Cancelled:
            status, message = "cancelled", "cancelled"
        except MemoryError:
            status, message = "refused", "there is not enough memory to emulate this"
        except Exception as error:
            # a fault of the emulator must not pass for one of the program, nor reach the user as a traceback
            status, message = "refused", f"the emulator itself failed ({_place(error)}): please report it"
        return _answer(request, run, status, message, time.monotonic() - started, meter.steps)


def _place(error: Exception) -> str:
    """Where in our own code, for a report; what the error says means nothing to a user."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def _begin(request: Request, meter: Meter) -> Run:
    loaded = load(request.build)
    variables = loaded.variables()
    buffers: dict[str, Buffer] = {}
    memory = Memory(check_initialised="initialised" in request.checks)
    tag = FIRST_BUFFER + len(variables)
    for buffer in variables.values():
        memory.buffers[buffer.tag] = buffer
    for image in request.images:
        if image.alias is not None:
            continue
        if image.symbol:
            buffer = variables[_symbol(request.build, image.name, variables)]
        else:
            buffer = new_buffer(image.name, tag, image.nbytes, image.offset)
            memory.buffers[tag] = buffer
            tag += 1
        fill_from(buffer, image, EAGER if request.blocks is None else EAGER_OF_FEW)
        buffers[image.name] = buffer
    for image in request.images:
        if image.alias is not None:
            buffers[image.name] = _aliased(request.images, buffers, image)
    for name in request.outputs:
        if name not in buffers:
            raise Refused(f"the output '{name}' is no buffer of the request")
        buffers[name].watch()
    if memory.check_initialised:
        for buffer in buffers.values():
            if buffer.poisoned:
                buffer.watch()
    reach = Reach() if request.reach else None
    twins = _twins() if request.shadow else None
    return Run(request, loaded, buffers, memory, FaultLog(), meter, reach=reach, twins=twins)


def _twins() -> "TwinRun":
    from agent.execution.emulator.shadows.shadow import TwinRun

    return TwinRun()


def _aliased(images: tuple[Image, ...], buffers: Mapping[str, Buffer], image: Image) -> Buffer:
    name, seen = image.alias, {image.name}
    by_name = {one.name: one for one in images}
    while name is not None and name not in buffers:
        if name in seen or name not in by_name:
            raise Refused(f"the buffer '{image.name}' is an alias of '{image.alias}', which does not exist")
        seen.add(name)
        name = by_name[name].alias
    assert name is not None
    return buffers[name]


def _symbol(build: Build, name: str, variables: Mapping[str, Buffer]) -> str:
    mangled = build.symbols.get(name, name)
    if mangled not in variables:
        raise Refused(f"the compiled program has no variable '{name}'")
    return mangled


def _step(run: Run, step: BoundLaunch | BoundFill | BoundCopy) -> None:
    if isinstance(step, BoundLaunch):
        _launch(run, step)
        return
    target = _buffer(run, step.buffer if isinstance(step, BoundFill) else step.target)
    source: Buffer | None = None
    if isinstance(step, BoundFill):
        data: Bytes | int = step.byte & 0xFF
    else:
        source = _buffer(run, step.source)
        if source.nbytes != target.nbytes:
            raise Refused(f"a copy from '{source.name}' to '{target.name}', which differ in size")
        source.ensure_all()
        data = source.contents()
    target.present = None
    target.data[target.start : target.stop] = data
    if target.written is not None:
        target.written[target.start : target.stop] = 1
    if run.twins is not None:
        run.twins.filled(target, source)


def _buffer(run: Run, name: str) -> Buffer:
    if name not in run.buffers:
        raise Refused(f"the buffer '{name}' has no contents")
    return run.buffers[name]


def _launch(run: Run, launch: BoundLaunch) -> None:
    request = run.request
    kernel = run.loaded.kernel(request.build.entries.get(launch.kernel, launch.kernel), request.shadow)
    run.kernels[kernel.name] = kernel
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    numbers = np.arange(total)
    if request.blocks is not None:
        chosen = sorted({number for number in request.blocks(total) if 0 <= number < total})
        numbers = np.array(chosen, np.int64)
    # the blocks of a cluster run together or not at all
    numbers = clusters_of(kernel.name, kernel.function.cluster, launch.grid).order(numbers)
    parameters = Parameters(parameter_bytes(kernel, launch.arguments, run.buffers, run.memory))
    if not run.complete:
        # what the blocks left out would have written is missing, which is no fault of this launch
        run.memory.check_initialised = False
    run.complete = run.complete and len(numbers) == total
    totals = Totals(kernel) if request.count else None
    setting = Setting(
        kernel, launch, run.memory, run.faults, run.meter, request.checks, parameters, totals, run.reach,
        run.twins, run.back_end, run.compiled,
    )  # fmt: skip
    run_launch(setting, numbers)
    if totals is not None:
        run.counters.append(launch_counters(totals, launch.kernel, launch.grid, launch.block, len(numbers)))


def _report_limit(run: Run, kernel: str, where: Where, waiting: str) -> None:
    text = f"still running after {run.request.step_cap} thread-instructions{waiting}"
    with suppress(TooManyFaults):
        run.faults.record("step limit", kernel, lambda: where, lambda: text, 1, (where.file, where.line))


def _answer(request: Request, run: Run | None, status: str, message: str, seconds: float, steps: int) -> Answer:
    if run is None:
        return Answer(status, {}, None, (), (), message, seconds, steps, False)
    faults: tuple[Fault, ...] = tuple(_named(run, fault) for fault in run.faults.faults())
    if status == "ok" and any(not fault.benign for fault in faults):
        status = "fault"
    outputs, written = {}, {}
    for name in request.outputs:
        buffer = run.buffers[name]
        outputs[name] = buffer.contents()
        assert buffer.written is not None
        written[name] = buffer.written[buffer.start : buffer.stop].view(bool)
    complete = run.complete and not message
    rounded = tuple(sorted({opcode for kernel in run.kernels.values() for opcode in kernel.inexact}))
    answer = Answer(
        status, outputs, written, faults, tuple(run.counters), message, seconds, steps, complete, inexact=rounded,
        compiled=tuple(sorted(set(run.compiled))),
    )  # fmt: skip
    if run.twins is not None:
        names = {mangled: name for name, mangled in request.build.entries.items()}
        answer = evolve(answer, shadows=run.twins.shadows({one: run.buffers[one] for one in request.outputs}, names))
    return answer if run.reach is None else evolve(answer, reached=run.reach.reached(), shared_reached=run.reach.shared)


def _named(run: Run, fault: Fault) -> Fault:
    """The fault with the kernel's name as the user wrote it."""
    names = {mangled: name for name, mangled in run.request.build.entries.items()}
    return evolve(fault, kernel=names.get(fault.kernel, fault.kernel))
