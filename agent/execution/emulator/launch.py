"""One launch: parameters, the blocks cut into batches, and the batches' turns."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import field, frozen

from agent.execution.device import Bytes
from agent.execution.emulator import compiled
from agent.execution.emulator.addresses import Array
from agent.execution.emulator.batch import Batch, Meter
from agent.execution.emulator.buffers import Buffer
from agent.execution.emulator.cluster_barrier import Team
from agent.execution.emulator.cluster_shape import Clusters, clusters_of
from agent.execution.emulator.faults import FaultLog
from agent.execution.emulator.flow import Code, Refused, dynamic_start
from agent.execution.emulator.grid import ADDRESS, address_part, open_grid
from agent.execution.emulator.kernel import Kernel
from agent.execution.emulator.known import Known
from agent.execution.emulator.lanes import WARP
from agent.execution.emulator.local import Local
from agent.execution.emulator.memory import Memory
from agent.execution.emulator.parameters import Parameters
from agent.execution.emulator.ptx.instruction import Variable
from agent.execution.emulator.races.clusters import ClusterRecords, ClusterShadow
from agent.execution.emulator.races.global_memory import Ground, Traffic, ground_of
from agent.execution.emulator.races.order import Order
from agent.execution.emulator.races.records import Records
from agent.execution.emulator.races.shared_memory import Shadow
from agent.execution.emulator.reach import Reach
from agent.execution.emulator.shared import Region, Shared
from agent.execution.emulator.texture_objects import handle_of
from agent.execution.emulator.values import Initial, Values
from agent.execution.emulator.watch import Totals, Watch
from agent.workload.binding import Argument, BoundLaunch, PointerArgument, RecordArgument, TextureArgument

if TYPE_CHECKING:
    from agent.execution.emulator.shadows.shadow import TwinRun

LANES = 16_384  # lanes of a batch: registers stay in the cache, and the cost of a Python call is spread thin
MOST_BYTES = 1 << 30  # shared, local and register memory of all batches that are under way
MOST_THREADS = 1024
MOST_TRACKED = 1 << 32  # threads of a launch that are told apart where races are looked for
MOST_SHARED = 1 << 20
# shared memory that the system keeps for itself; cooperative groups use it for tiles of several warps
RESERVED, RESERVED_BYTES = "reserved_smem_offset_1", 1024

_FORMATS = {
    "bool": "<?", "i8": "<b", "u8": "<B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q",
    "f16": "<e", "f32": "<f", "f64": "<d",
}  # fmt: skip


@frozen
class Setting:
    """What all batches of a launch share."""

    kernel: Kernel
    launch: BoundLaunch
    memory: Memory
    faults: FaultLog
    meter: Meter
    checks: frozenset[str]
    parameters: Parameters
    totals: Totals | None = None
    reach: Reach | None = None
    twins: "TwinRun | None" = None
    back_end: str = "numpy"
    compiled: list[str] = field(factory=list)


def parameter_bytes(
    kernel: Kernel, arguments: Sequence[Argument], buffers: Mapping[str, Buffer], memory: Memory
) -> Bytes:
    """The arguments as the kernel's parameter space holds them. Raises Refused where they do not fit."""
    formal = kernel.function.parameters
    if len(formal) != len(arguments):
        raise Refused(f"{kernel.name} takes {len(formal)} arguments, the launch passes {len(arguments)}")
    data, offset = bytearray(), 0
    for parameter, argument in zip(formal, arguments, strict=True):
        offset = -(-offset // parameter.alignment) * parameter.alignment
        data += bytes(offset - len(data)) + _packed(kernel, parameter, argument, buffers, memory)
        offset = len(data)
    return np.frombuffer(bytes(data), np.uint8)


def _packed(
    kernel: Kernel, parameter: Variable, argument: Argument, buffers: Mapping[str, Buffer], memory: Memory
) -> bytes:
    packed = _argument_bytes(kernel, argument, buffers, memory)
    if len(packed) != parameter.nbytes:
        raise Refused(
            f"parameter {parameter.name} of {kernel.name} has {parameter.nbytes} bytes, the argument {len(packed)}"
        )
    return packed


def _argument_bytes(kernel: Kernel, argument: Argument, buffers: Mapping[str, Buffer], memory: Memory) -> bytes:
    if isinstance(argument, TextureArgument):
        return handle_of(memory, buffers, argument.view).to_bytes(8, "little")
    if isinstance(argument, RecordArgument):
        whole = bytearray(argument.nbytes)
        for member in argument.members:
            held = _argument_bytes(kernel, member.held, buffers, memory)
            whole[member.offset : member.offset + len(held)] = held
        return bytes(whole)
    if isinstance(argument, PointerArgument):
        if argument.buffer not in buffers:
            raise Refused(f"the launch of {kernel.name} passes the buffer '{argument.buffer}', which has no contents")
        value = buffers[argument.buffer].address + argument.offset
        return (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")
    return scalar_bytes(argument.dtype, argument.value)


def scalar_bytes(dtype: str, value: int | float) -> bytes:
    """A scalar as it lies in memory; integers wrap. Raises Refused for a type that has no scalar form."""
    if dtype == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF
        return struct.pack("<H", rounded)
    form = _FORMATS.get(dtype)
    if form is None:
        raise Refused(f"an argument of type {dtype} passed by value")
    if dtype[0] in "iu":
        bits = struct.calcsize(form) * 8
        number = int(value) & ((1 << bits) - 1)
        return number.to_bytes(bits // 8, "little")
    if dtype == "bool":
        return struct.pack(form, bool(value))
    with np.errstate(all="ignore"):
        return np.array(value, {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]).tobytes()


def run_launch(setting: Setting, numbers: Array) -> None:
    """Run the blocks of those linear ``numbers``, which are whole clusters in their order. Raises Refused, StepLimit,
    TimeLimit, Cancelled, TooManyFaults."""
    threads, clusters = _threads(setting), launch_clusters(setting)
    if clusters.size > 1 and setting.twins is not None:
        raise Refused(f"a float64 shadow of {setting.kernel.name}, which runs in clusters of {clusters.size} blocks")
    per_batch = max(1, LANES // threads)
    heavy = _block_bytes(setting, threads)
    if heavy > MOST_BYTES:
        raise Refused(f"one block of {setting.kernel.name} needs {heavy} bytes of shared and local memory")
    per_batch = max(1, min(per_batch, (MOST_BYTES // 4) // max(heavy, 1)))
    per_batch = max(per_batch // clusters.size, 1) * clusters.size
    most = max(1, MOST_BYTES // max(heavy * per_batch, 1))
    waiting = [numbers[start : start + per_batch] for start in range(0, len(numbers), per_batch)][::-1]
    active: list[Batch] = []
    open_grid(setting.memory, setting.kernel, len(numbers) == math.prod(setting.launch.grid))
    quick = setting.back_end != "numpy" and clusters.size == 1
    if quick and compiled.attempt(setting, numbers, threads, setting.back_end == "compiled"):
        setting.compiled.append(setting.kernel.name)
        return
    ground = _ground(setting, numbers, threads)
    before, lanes = setting.meter.steps, threads * min(per_batch, len(numbers))
    begun = 0
    turn = 0
    while waiting or active:
        # a batch that only waits gives way: to one that has not begun yet, while memory lasts
        if waiting and (turn >= len(active)) and len(active) < most:
            active.append(_batch(setting, waiting.pop(), threads, ground, begun))
            begun += len(active[-1].numbers)
            turn = len(active) - 1
        turn = turn if turn < len(active) else 0
        others = (batch for batch in active if batch is not active[turn])
        if active[turn].run(alone=not waiting and all(batch.stuck.idle for batch in others)):
            done = active.pop(turn)
            if done.watch is not None:
                done.watch.close()
        else:
            turn += 1
    if quick:
        compiled.toiled(setting, setting.meter.steps - before, lanes)


def launch_clusters(setting: Setting) -> Clusters:
    """Raises Refused for clusters that no card would launch."""
    return clusters_of(setting.kernel.name, setting.kernel.function.cluster, setting.launch.grid)


def _ground(setting: Setting, numbers: Array, threads: int) -> Ground | None:
    if "races" not in setting.checks:
        return None
    if len(numbers) * threads > MOST_TRACKED:
        raise Refused(f"races among {len(numbers) * threads} threads: {MOST_TRACKED} are the most")
    return ground_of(setting.kernel, numbers, threads, bytes(setting.parameters.data))


def _threads(setting: Setting) -> int:
    launch = setting.launch
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if not 1 <= threads <= MOST_THREADS:
        raise Refused(f"a block of {threads} threads: {MOST_THREADS} is the most")
    if min(launch.grid) < 1:
        raise Refused(f"a grid of {launch.grid} blocks")
    if launch.shared > MOST_SHARED:
        raise Refused(f"{launch.shared} bytes of dynamic shared memory")
    return threads


def _block_bytes(setting: Setting, threads: int) -> int:
    code = setting.kernel.code
    shared = dynamic_start(code) + setting.launch.shared + 2 * RESERVED_BYTES
    return shared * 4 + threads * (code.local_bytes * 2 + 8 * min(len(setting.kernel.entries), 512))


def _batch(setting: Setting, numbers: Array, threads: int, ground: Ground | None, first: int) -> Batch:
    kernel, launch = setting.kernel, setting.launch
    track = "initialised" in setting.checks
    shared = Shared(len(numbers), shared_regions(kernel, launch.shared), None)
    clusters = launch_clusters(setting)
    order = Order(len(numbers), threads, ground.clock, clusters.size) if ground is not None else None
    if shared.size and ({"races", "initialised"} & setting.checks):
        grain = 1 if kernel.narrow_shared else 4
        known = Known(len(numbers), shared.size) if track else None
        if clusters.size > 1:
            of_all = ClusterRecords(order, len(numbers), shared.size, grain) if order is not None else None
            shared.shadow = ClusterShadow(of_all, known)
        else:
            records = Records(order, shared.size, grain) if order is not None else None
            shared.shadow = Shadow(records, known)
    return Batch(
        kernel=kernel,
        grid=launch.grid,
        block=launch.block,
        numbers=numbers,
        values=_initial_values(kernel, launch, numbers, threads, setting.parameters.data),
        memory=setting.memory,
        shared=shared,
        local=Local(len(numbers) * threads, kernel.code.local_bytes, track),
        parameters=setting.parameters,
        faults=setting.faults,
        meter=setting.meter,
        checks=setting.checks,
        watch=Watch(setting.totals, len(numbers)) if setting.totals is not None else None,
        order=order,
        traffic=Traffic(ground, order, first) if ground is not None and order is not None else None,
        reach=setting.reach,
        twin=setting.twins.twin(kernel, len(numbers), threads) if setting.twins is not None else None,
        team=Team(clusters, len(numbers), threads) if clusters.size > 1 else None,
    )


def shared_regions(kernel: Kernel, dynamic: int) -> tuple[Region, ...]:
    """The shared variables of a launch, then dynamic memory, then what the system keeps, where the kernel asks for
    it.
    """
    code = kernel.code
    regions = [
        Region(key.rpartition(":")[2], start, start + nbytes) for key, (start, nbytes) in code.shared.items() if nbytes
    ]
    if code.dynamic_names and dynamic:
        start = dynamic_start(code)
        regions.append(Region(code.dynamic_names[0], start, start + dynamic))
    if any(initial.name == RESERVED for initial in kernel.entries):
        start = _reserved_start(code, dynamic)
        regions.append(Region("(reserved)", start, start + RESERVED_BYTES))
    return tuple(regions)


def _reserved_start(code: Code, dynamic: int) -> int:
    return -(-(dynamic_start(code) + dynamic) // 1024) * 1024


def initial_value(setting: Setting, numbers: Array, threads: int, initial: Initial) -> Array:
    """What an entry of the kernel holds when the blocks ``numbers`` start."""
    return _initial_value(setting.kernel, setting.launch, numbers, threads, setting.parameters.data, initial)


def _initial_values(kernel: Kernel, launch: BoundLaunch, numbers: Array, threads: int, parameters: Bytes) -> Values:
    return [_initial_value(kernel, launch, numbers, threads, parameters, initial) for initial in kernel.entries]


def _initial_value(
    kernel: Kernel, launch: BoundLaunch, numbers: Array, threads: int, parameters: Bytes, initial: Initial
) -> Array:
    if initial.literal is not None:
        return initial.literal
    if initial.kind == "zero":
        return np.zeros((1, 1), initial.dtype)
    if initial.kind == "parameter":
        raw = bytes(parameters[initial.offset : initial.offset + initial.width])
        value = int.from_bytes(raw, "little", signed=initial.signed)
        bits = 8 * np.dtype(initial.dtype).itemsize
        return np.array([[initial.dtype(value & ((1 << bits) - 1))]])
    return special(kernel, launch, numbers, threads, initial.name).astype(initial.dtype)


def special(kernel: Kernel, launch: BoundLaunch, numbers: Array, threads: int, name: str) -> Array:
    """A special register as a value of the batch. Raises Refused for one that has no meaning here."""
    if "cluster" in name:
        of_cluster = clusters_of(kernel.name, kernel.function.cluster, launch.grid).special(name, numbers)
        if of_cluster is not None:
            return of_cluster
    register, _, axis = name.partition(".")
    index = "xyz".find(axis) if axis else -1
    thread = np.arange(threads)[None, :]
    if register in ("tid", "ctaid") and index >= 0:
        size = launch.block if register == "tid" else launch.grid
        linear = thread if register == "tid" else numbers[:, None]
        return (linear, linear // size[0], linear // (size[0] * size[1]))[index] % size[index]
    if register in ("ntid", "nctaid") and index >= 0:
        return np.array([[(launch.block if register == "ntid" else launch.grid)[index]]])
    lane = thread % WARP
    if name in _LANE_MASKS:
        return _LANE_MASKS[name](lane.astype(np.int64))
    uniform = {
        "nwarpid": -(-threads // WARP),
        "dynamic_smem_size": launch.shared,
        "total_smem_size": kernel.code.shared_end + launch.shared,
        "gridid": 0,
        RESERVED: _reserved_start(kernel.code, launch.shared),
    }
    if name in ADDRESS:
        return np.array([[address_part(name)]])
    if name in uniform:
        return np.array([[uniform[name]]])
    if name == "laneid":
        return lane
    if name == "warpid":
        return thread // WARP
    raise Refused(f"{kernel.name} reads the special register %{name}")


_LANE_MASKS: dict[str, Callable[[Array], Array]] = {
    "lanemask_eq": lambda lane: 1 << lane,
    "lanemask_lt": lambda lane: (1 << lane) - 1,
    "lanemask_le": lambda lane: (2 << lane) - 1,
    "lanemask_gt": lambda lane: 0xFFFF_FFFF & ~((2 << lane) - 1),
    "lanemask_ge": lambda lane: 0xFFFF_FFFF & ~((1 << lane) - 1),
}
