"""Whether an entry's fault shows at all where an evaluator looks: at its one size, on normal contents, in the output.

Told by the emulator, which runs the original and the rewrite on the same contents: what then differs by less than the
evaluator's tolerance, it cannot tell apart however often it looks. What the emulator does not have (threads of a warp
out of step, memory that holds old answers) may make a card show more, or less.
"""

import numpy as np
import numpy.typing as npt

from agent.execution.compiler import Build, Options, build
from agent.execution.device import Answer, Image, Poison, Request
from agent.execution.emulator import Emulator
from agent.workload import dtypes
from agent.workload.bind import bind
from agent.workload.binding import Bound, BoundBuffer
from agent.workload.program import Program
from agent.workload.workload import Access, Workload
from tests.attacks.entry import Attack, Control, candidate
from tests.attacks.originals import ORIGINALS
from tests.evaluation.kernels import original
from tests.gpu.modules import NotExpressible

TOLERANCES = {"f32": 1e-4, "f16": 1e-2, "bf16": 1e-2}
"""KernelBench's, absolute and relative alike: ``get_tolerance_for_precision`` of its eval.py."""
TRIALS = 2
COMPILER = b"__CUDACC_RTC__"
"""What a text asks that is another one for NVRTC than for nvcc."""
SHOWS, HIDDEN, FAULT, NOT_RUN = "shows", "hidden", "fault", "not run"

Array = npt.NDArray[np.generic]


def seen(entry: Attack | Control) -> str:
    """``shows``: the output differs by more than the tolerance; ``hidden``: it does not, nor is there any other fault;
    ``fault``: an access out of bounds, or no end; ``not run``: the emulator does not have what it does, or it is
    another program for another compiler."""
    (program, workload), rewritten = original(ORIGINALS[entry.of]), candidate(entry)
    if COMPILER in rewritten.document.text:
        return NOT_RUN
    found = {_trial(program, rewritten, workload, seed) for seed in range(TRIALS)}
    return next(word for word in (NOT_RUN, SHOWS, FAULT, HIDDEN) if word in found)


def _trial(program: Program, rewritten: Program, workload: Workload, seed: int) -> str:
    ours, theirs = (_run(one, workload, seed) for one in (program, rewritten))
    if ours is None or theirs is None or ours[0].status != "ok":
        return NOT_RUN
    (right, bound), (answer, _) = ours, theirs
    if answer.status not in ("ok", "fault", "timeout"):
        return NOT_RUN
    if answer.status != "ok" or answer.faults:
        return FAULT
    output = next(buffer for buffer in bound.buffers if buffer.access is not Access.IN)
    tolerance = TOLERANCES[next(buffer.dtype for buffer in bound.buffers if buffer.access is Access.IN)]
    wanted, given = (numbers(np.asarray(one.outputs[output.name]), output.dtype) for one in (right, answer))
    return HIDDEN if np.allclose(given, wanted, rtol=tolerance, atol=tolerance) else SHOWS


def _run(program: Program, workload: Workload, seed: int) -> tuple[Answer, Bound] | None:
    built = build(program, Options(flags=workload.flags, arch="sm_90"))
    if not isinstance(built, Build):
        return None
    bound = bind(workload, program.plan, None, program.document)
    random = np.random.default_rng(seed)
    images = tuple(Image(one.name, one.nbytes, contents(one, random)) for one in bound.buffers)
    names = tuple(one.name for one in bound.buffers if one.access is not Access.IN and not one.scratch)
    return Emulator().run(Request(built, bound.steps, images, names, step_cap=50_000_000, seconds=30.0)), bound


def contents(buffer: BoundBuffer, random: np.random.Generator) -> npt.NDArray[np.uint8] | Poison:
    """As such an evaluator has them before a call. Raises NotExpressible."""
    if buffer.zeroed or (buffer.access is Access.INOUT and buffer.domain.kind == "zeros"):
        return np.zeros(buffer.nbytes, np.uint8)
    if buffer.access is not Access.IN or buffer.scratch:
        return Poison()
    if buffer.domain.kind == "normal":
        drawn = random.standard_normal(buffer.count)
    elif buffer.domain.kind == "uniform" and buffer.low is not None and buffer.high is not None:
        drawn = random.uniform(buffer.low, buffer.high, buffer.count)
    else:
        raise NotExpressible(f"{buffer.name} holds contents of the kind {buffer.domain.kind}")
    if buffer.dtype == "bf16":
        return (drawn.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return drawn.astype(dtypes.numpy_dtype(buffer.dtype)).view(np.uint8)


def numbers(raw: npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[np.float64]:
    """What the bytes of such elements say."""
    if dtype == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return raw.view(dtypes.numpy_dtype(dtype)).astype(np.float64)
