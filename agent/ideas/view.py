"""What a catalogue idea looks at: the kernel's facts, its launches, and what is fixed about them."""

from collections.abc import Mapping

from attrs import frozen

from agent.analysis.accesses import Access
from agent.analysis.facts import Facts, analyse
from agent.analysis.program import program_facts
from agent.ideas.request import Request
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.workload.dtypes import from_c_type, size_of
from agent.workload.expression import Expression, ExpressionError
from agent.workload.plan import Launch, Plan
from agent.workload.workload import Workload

AXES = ("x", "y", "z")


@frozen(eq=False)
class View:
    """``launches`` are the plan's launches of this kernel. ``block`` holds the block's extents where every launch has
    the same number, at every size, and None where not. ``sizes`` maps names of the workload to their declared
    values."""

    request: Request
    facts: Facts
    launches: tuple[Launch, ...]
    block: tuple[int | None, int | None, int | None]
    sizes: Mapping[str, int | float]

    @property
    def document(self) -> Document:
        return self.request.document

    @property
    def kernel(self) -> Kernel:
        return self.request.kernel

    @property
    def threads(self) -> int | None:
        """Threads in a block, if fixed."""
        x, y, z = self.block
        return None if x is None or y is None or z is None else x * y * z

    def parameters(self, launch: Launch) -> Mapping[str, int]:
        """The integer parameters' values at the declared sizes, for one launch."""
        found: dict[str, int] = {}
        for parameter, argument in zip(self.kernel.parameters, launch.arguments, strict=False):
            value = evaluate(argument, self.sizes)
            if parameter.pointer_depth == 0 and isinstance(value, int):
                found[parameter.name] = value
        return found

    def element_bytes(self, access: Access) -> int | None:
        """Bytes of one element of what an access touches; None where its type is not known."""
        dtype = from_c_type(access.element) if access.element else None
        if dtype is None and access.root is not None and access.root.space == "parameter":
            dtype = self._buffer_type(access.root.name)
        return None if dtype is None else size_of(dtype)

    def _buffer_type(self, parameter: str) -> str | None:
        """The element type of the buffer that the first launch hands to a parameter (for templates and typedefs)."""
        names = [one.name for one in self.kernel.parameters]
        if not self.launches or parameter not in names:
            return None
        given = self.launches[0].arguments[names.index(parameter)].names
        buffers = self.request.workload.buffers
        return next((buffer.dtype for buffer in buffers if buffer.name in given), None)


def view(request: Request) -> View:
    """Look at a kernel. Its launches are those whose kernel name, without namespace and template arguments, is its
    own."""
    launches = tuple(launch for launch in request.plan.launches() if launches_kernel(launch, request.kernel))
    fixed = fixed_names(request.workload, request.plan)
    block = _same_block(launches, fixed)
    known = {f"blockDim.{axis}": extent for axis, extent in zip(AXES, block, strict=True) if extent is not None}
    facts = analyse(request.document, request.kernel, known, program_facts(request.document))
    return View(request, facts, launches, block, declared_names(request.workload, request.plan))


def launches_kernel(launch: Launch, kernel: Kernel) -> bool:
    return launch.kernel.split("<")[0].split("::")[-1].strip() == kernel.name


def fixed_names(workload: Workload, plan: Plan) -> Mapping[str, int | float]:
    """Names whose value is the same at every size."""
    names: dict[str, int | float] = {}
    for constant in workload.constants:
        _add(names, constant.name, constant.value)
    for name, expression in plan.locals:
        _add(names, name, expression)
    return names


def declared_names(workload: Workload, plan: Plan) -> Mapping[str, int | float]:
    """Every name with its value at the declared sizes."""
    names: dict[str, int | float] = {size.name: size.value for size in workload.sizes}
    for constant in workload.constants:
        _add(names, constant.name, constant.value)
    for name, expression in plan.locals:
        _add(names, name, expression)
    return names


def evaluate(expression: Expression, names: Mapping[str, int | float]) -> int | float | None:
    """Its value, or None where a name is missing or there is no value."""
    try:
        return expression.evaluate(names)
    except ExpressionError:
        return None


def _add(names: dict[str, int | float], name: str, expression: Expression) -> None:
    if (value := evaluate(expression, names)) is not None:
        names[name] = value


def _same_block(
    launches: tuple[Launch, ...], fixed: Mapping[str, int | float]
) -> tuple[int | None, int | None, int | None]:
    found: list[int | None] = []
    for axis in range(3):
        extents = {evaluate(launch.block[axis], fixed) for launch in launches}
        extent = next(iter(extents)) if len(extents) == 1 else None
        found.append(extent if isinstance(extent, int) else None)
    return found[0], found[1], found[2]
