"""From a kernel alone to a small launch on which it runs: what is tried, and which of it is kept."""

import math
import time
from collections.abc import Iterator, Mapping

from attrs import frozen

from agent.execution.compiler.result import Options
from agent.execution.device import Answer, Fault, Image, Poison, Recipe, Request
from agent.execution.emulator import Emulator
from agent.execution.emulator.flow import dynamic_start
from agent.execution.emulator.reached import blocks_reached, writes_vary
from agent.inference.making.launches import FAR, Trial, trials
from agent.inference.probing.known import Known, known
from agent.inference.probing.launching import MOST_SHARED, choose_block
from agent.inference.probing.outcome import Stopped
from agent.inference.probing.probe import Limits
from agent.inference.probing.subject import Subject, is_whole_number, open_subject
from agent.inference.probing.trial import MOST_POINTERS, Lab, Seen, Span, Three
from agent.inference.probing.writing import symbol_buffers
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload import dtypes
from agent.workload.bind import bind
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression, build, number
from agent.workload.expression import name as name_of
from agent.workload.generators import default_domain, recipe
from agent.workload.plan import Launch, Plan
from agent.workload.workload import MADE_UP, Access, Buffer, Constant, Domain, Origin, Size, Workload

ENOUGH = 0.8
"""The part of the basic blocks that a launch has to reach for no other to be tried."""
_CHECKS = frozenset({"bounds", "races", "initialised", "barriers"})
_PATIENCE = 10.0  # seconds of one run, and no more than a fifth of all
_ROOMS = (1, 4, 16)  # times what was touched at first, until it is enough
_SPARE = 64  # elements behind the last that was touched, at least
_SEED = 0x5EED
_MOST_HALF = 60_000
_BLOCKS = 2  # times that a block is chosen


@frozen
class MadeUp:
    """``reached`` is the part of its basic blocks that the kernel came to, of all ``blocks`` launched; ``varies``
    whether what it wrote is not all the same; ``faults`` are those of that run, races among them."""

    workload: Workload
    reached: float
    varies: bool
    blocks: int
    faults: tuple[Fault, ...]
    tried: int

    @property
    def whole(self) -> bool:
        """Whether nothing better can be asked of a launch."""
        return not self.broken and self.varies and self.reached >= ENOUGH

    @property
    def broken(self) -> bool:
        """Whether the launch does what no program may, but for races, which come of numbers that were made up."""
        return any(breaks(fault) for fault in self.faults)

    @property
    def score(self) -> tuple[bool, bool, float]:
        return (not self.broken, self.varies, self.reached)


def breaks(fault: Fault) -> bool:
    """Whether a launch does what no program may; races, and values of memory that nobody wrote, come of numbers that
    were made up."""
    if fault.benign or "race" in fault.kind:
        return False
    return fault.kind != "uninitialised read" or "shared memory" in fault.message


def make_up(document: Document, kernel: Kernel, options: Options | None = None, limits: Limits | None = None) -> MadeUp:
    """Raises Stopped where the kernel cannot be compiled or passed what it takes, or no launch ends without a fault."""
    limits = limits or Limits(20.0)
    if kernel.damage:
        raise Stopped(f"it cannot be read: {kernel.damage}", kernel.line)
    told = known(document, kernel)
    subject = open_subject(document, kernel, told, options or Options(), limits.cancelled, loose=True)
    if len(subject.pointers) > MOST_POINTERS:
        raise Stopped(f"it takes {len(subject.pointers)} pointers; {MOST_POINTERS} are the most", kernel.line)
    lab = Lab(subject, time.monotonic() + limits.seconds, limits.cancelled, min(_PATIENCE, limits.seconds / 5))
    best, why = _best(lab, told)
    if best is None or best.broken:
        raise why or Stopped(_words(best), kernel.line)
    return best


def _words(best: MadeUp | None) -> str:
    fault = next((fault for fault in best.faults if breaks(fault)), None) if best is not None else None
    said = f": it {fault.message}" if fault is not None else ""
    return f"no launch that was made up runs without a fault{said}"


def _best(lab: Lab, told: Known) -> tuple[MadeUp | None, Stopped | None]:
    """The launch that comes furthest; where there is none, why the first ended."""
    best, why, block, longest, chosen = None, None, told.block, math.inf, 0
    for count, trial in enumerate(trials(lab.subject, told, block or (128, 1, 1)), 1):
        if trial.size >= longest:
            continue
        try:
            if block is None:
                block, chosen = choose_block(lab, trial.numbers, None), chosen + 1
            found = tried(lab, trial, block, count)
        except Stopped as stopped:
            if stopped.kind == "cancelled":
                raise
            why = why or stopped
            if time.monotonic() >= lab.deadline:
                break
            if "did not end" in stopped.reason or "more than" in stopped.reason:
                longest = trial.size
            continue
        except WorkloadError as error:
            why = why or Stopped(str(error), lab.subject.kernel.line)
            continue
        if best is None or found.score > best.score:
            best = found
        if best.whole or time.monotonic() >= lab.deadline:
            break
        if found.broken and told.block is None and chosen < _BLOCKS:
            block = None  # other numbers may show better which block it is written for
    return best, None if best is not None else why


def tried(lab: Lab, trial: Trial, block: Three, count: int) -> MadeUp:
    """One launch: what it touches on buffers without ends, then again on buffers of that length. Raises Stopped,
    WorkloadError."""
    subject = lab.subject
    most = MOST_SHARED if subject.dynamic_shared else 0
    seen = lab.run(trial.numbers, trial.grid, block, most, trial.contents)
    shared = max(seen.shared - dynamic_start(subject.code.code), 0) if most else 0
    for room in _ROOMS:
        workload = _workload(subject, trial, block, shared, seen, room)
        bound = bind(workload, workload.plan, None, subject.document)
        answer = _run(lab, bound)
        # data that decides where a kernel goes is not the same as in the first run
        if not any(fault.kind.startswith("out-of-bounds") and "buffer" in fault.message for fault in answer.faults):
            break
    written = [one for one in bound.buffers if one.access is not Access.IN]
    return MadeUp(
        workload,
        blocks_reached(subject.build, answer.counters),
        any(writes_vary(answer, one.name, one.dtype) for one in written),
        math.prod(trial.grid),
        answer.faults,
        count,
    )


def _run(lab: Lab, bound: Bound) -> Answer:
    lab.look()
    images = tuple(Image(one.name, one.nbytes, _contents(one), symbol=one.symbol) for one in bound.buffers)
    answer = Emulator().run(
        Request(
            lab.subject.build, bound.steps, images, tuple(image.name for image in images), _CHECKS,
            seconds=lab.patience, count=True, cancelled=lab.cancelled,
        )
    )  # fmt: skip
    if answer.status not in ("ok", "fault"):
        raise Stopped(answer.message, kind="cancelled" if answer.status == "cancelled" else "kernel")
    return answer


def _contents(buffer: BoundBuffer) -> Recipe | Poison:
    if buffer.access is Access.OUT:
        return Poison()
    return Recipe(buffer.nbytes, recipe(buffer, "uniform", _SEED))


# The workload -------------------------------------------------------------------------------------------------------


def _workload(subject: Subject, trial: Trial, block: Three, shared: int, seen: Seen, room: int) -> Workload:
    origin = Origin(MADE_UP, subject.kernel.line)
    buffers = tuple(
        _buffer(one.name, one.dtype, seen.spans.get(one.name), trial, room, origin) for one in subject.pointers
    )
    x, y, z = map(number, trial.grid)
    bx, by, bz = map(number, block)
    launch = Launch(subject.name, (x, y, z), (bx, by, bz), number(shared), tuple(_arguments(subject, seen)))
    single = {one.name for one in subject.scalars if one.dtype in ("f32", "f16", "bf16")}
    # what is a size is called one, so that it is said at which sizes lines were counted
    sizes = {name: value for name, value in trial.numbers.items() if isinstance(value, int) and value > 1}
    constants = tuple(
        Constant(name, number(value, name in single and isinstance(value, float)), origin)
        for name, value in trial.numbers.items()
        if name not in sizes
    )
    notes = tuple(filter(None, ("nobody states what this kernel runs on: all of it is made up", subject.stands_in)))
    return Workload(
        subject.kernel.qualified_name, tuple(Size(name, value, origin) for name, value in sizes.items()), constants,
        (*buffers, *symbol_buffers(subject, origin)), Plan((launch,)), origin=origin, notes=notes,
    )  # fmt: skip


def _buffer(name: str, dtype: str, span: Span | None, trial: Trial, room: int, origin: Origin) -> Buffer:
    size = dtypes.size_of(dtype)
    count = -(-(span.high - min(span.low, 0)) // size) if span is not None else 0
    access = Access.IN
    if span is not None and span.writes:
        access = Access.INOUT if span.fresh or span.reads else Access.OUT
    count = -(-max(count * room, 1) // _SPARE) * _SPARE + _SPARE
    return Buffer(name, dtype, number(count), access, _domain(dtype, trial), origin)


def _domain(dtype: str, trial: Trial) -> Domain:
    if dtypes.is_raw(dtype):
        return Domain("bytes")
    scalar = dtypes.base(dtype)[0]
    if scalar == "bool":
        return default_domain(dtype)
    if is_whole_number(scalar):
        return Domain("integers", number(trial.contents.low), number(trial.contents.high))
    if trial.floats == "normal":
        return default_domain(dtype)
    far = dtypes.is_float(scalar) and trial.floats == "far"
    high = min(FAR, _MOST_HALF) if scalar == "f16" else FAR
    return Domain("uniform", number(-high if far else 0), number(high if far else 1))


def _arguments(subject: Subject, seen: Seen) -> Iterator[Expression]:
    before: Mapping[str, int] = {name: max(-span.low, 0) for name, span in seen.spans.items()}
    sizes = {one.name: dtypes.size_of(one.dtype) for one in subject.pointers}
    for parameter in subject.kernel.parameters:
        name = parameter.name
        skipped = -(-before.get(name, 0) // sizes[name]) if name in sizes else 0
        yield build("+", (name_of(name), number(skipped))) if skipped else name_of(name)
