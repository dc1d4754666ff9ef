"""A launch and the one right after it, which works on what the first wrote, element by element."""

from attrs import frozen

from agent.analysis.accesses import Access
from agent.analysis.facts import Facts, analyse
from agent.analysis.patterns.elementwise import Elementwise, elementwise
from agent.analysis.symbols import Symbol
from agent.ideas.buffers import in_structs
from agent.ideas.fusion.coverage import covers, polynomial, written
from agent.ideas.terms import in_names
from agent.ideas.view import AXES, View, evaluate, fixed_names, launches_kernel
from agent.source.errors import SourceError
from agent.source.kernel import Kernel
from agent.workload.expression import build
from agent.workload.plan import Launch, Repeat, Step


@frozen(eq=False)
class Pair:
    """``store`` is the first kernel's only write to the buffer; ``parameter`` is what the second kernel calls it."""

    first: Launch
    second: Launch
    consumer: Kernel
    facts: Facts
    work: Elementwise
    store: Access
    parameter: Symbol

    @property
    def in_place(self) -> bool:
        """Whether the second kernel writes the same buffer."""
        return any(access.writes and access.root is self.parameter for access in self.work.accesses)


def pair(view: View) -> Pair | str:
    """The kernel's launch and the one after it, or why they stay apart."""
    if len(view.launches) != 1:
        return "the plan does not launch this kernel exactly once"
    first = view.launches[0]
    second = _after(view.request.plan.steps, first)
    if second is None or launches_kernel(second, view.kernel):
        return "no launch of another kernel follows right after this one"
    try:
        consumer = view.document.kernel(second.kernel.split("<")[0])
    except SourceError as error:
        return str(error)
    if consumer.damage is not None or consumer.template or view.kernel.template:
        return f"{consumer.name} or {view.kernel.name} is a template, or cannot be read"
    facts = _facts(view, consumer, second)
    work = elementwise(facts)
    if isinstance(work, str):
        return f"{consumer.name}, launched next, is not elementwise: {work}"
    return _joined(view, first, second, consumer, facts, work)


def _after(steps: tuple[Step, ...], first: Launch) -> Launch | None:
    for at, step in enumerate(steps):
        if isinstance(step, Repeat) and (found := _after(step.body, first)) is not None:
            return found
        if step is first and at + 1 < len(steps):
            following = steps[at + 1]
            return following if isinstance(following, Launch) else None
    return None


def _facts(view: View, consumer: Kernel, launch: Launch) -> Facts:
    fixed = fixed_names(view.request.workload, view.request.plan)
    known = {
        f"blockDim.{axis}": extent
        for axis, expression in zip(AXES, launch.block, strict=True)
        if isinstance(extent := evaluate(expression, fixed), int)
    }
    return analyse(view.document, consumer, known)


def _joined(view: View, first: Launch, second: Launch, consumer: Kernel, facts: Facts, work: Elementwise) -> Pair | str:
    given = {p.name: str(a) for p, a in zip(consumer.parameters, second.arguments, strict=False) if p.pointer_depth}
    own = {p.name: str(a) for p, a in zip(view.kernel.parameters, first.arguments, strict=False) if p.pointer_depth}
    for launch, kernel in ((first, view.kernel), (second, consumer)):
        if in_structs(launch, view):
            return f"{kernel.name} is handed buffers in a struct, and what it does with them is not followed"
    stores = [access for access in view.facts.accesses if access.writes and access.space not in ("local", "shared")]
    for store in stores:
        shared = [
            name for name, buffer in given.items() if store.root is not None and buffer == own.get(store.root.name)
        ]
        if len(shared) != 1 or store.root is None:
            continue
        parameter = next(s for s in facts.symbols.all() if s.name == shared[0] and s.space == "parameter")
        made = Pair(first, second, consumer, facts, work, store, parameter)
        reason = _reason(made, view, stores, given, own)
        return made if reason is None else reason
    return f"{consumer.name} works on nothing that {view.kernel.name} writes"


def _reason(made: Pair, view: View, stores: list[Access], given: dict[str, str], own: dict[str, str]) -> str | None:
    """Why the second launch's work cannot be done as each element is written."""
    root, name = made.store.root, made.consumer.name
    assert root is not None
    others = [access for access in view.facts.accesses if access.root is root and access is not made.store]
    assigned = made.store.node.parent is not None and made.store.node.parent.type == "assignment_expression"
    if others or made.store.reads or made.store.atomic or not assigned:
        return f"{view.kernel.name} does more with {root.name} than write each element once"
    if root.type != made.parameter.type:
        return f"the two kernels see {root.name} as different types"
    output = {str(own.get(access.root.name)) for access in stores if access.root is not None}
    for access in made.work.accesses:
        if access.root is None or access.root is made.parameter:
            continue
        buffer = given[access.root.name]
        if access.writes and buffer in own.values() and not _only_own(buffer, made.store, view, own):
            return f"{name} writes {access.root.name}, which other threads of {view.kernel.name} may not have read yet"
        if not access.writes and buffer in output:
            return (
                f"{name} reads {access.root.name}, which other threads of {view.kernel.name} may not have written yet"
            )
    made_of = written(made.store, made.first, view)
    if isinstance(made_of, str):
        return made_of
    count = _count(made)
    if count is None or count != made_of:
        return f"{name} does not work on exactly the elements that {view.kernel.name} writes"
    return None


def _only_own(buffer: str, store: Access, view: View, own: dict[str, str]) -> bool:
    """Whether the first kernel reads a buffer at the element's own index alone, before it stores, and does not write
    it: then the second kernel's write to that element comes after its last read."""
    inside = [a for a in view.facts.accesses if a.root is not None and own.get(a.root.name) == buffer]
    known = all(access.root is not None or access.space == "constant" for access in view.facts.accesses)
    end = store.node.parent.end_byte if store.node.parent is not None else 0
    return known and all(not a.writes and a.index == store.index and a.node.end_byte <= end for a in inside)


def _count(made: Pair) -> object:
    """How many elements the second launch works on, over the plan's names."""
    second = made.second
    if made.work.count is None:
        return polynomial(build("*", [second.grid[0], second.block[0]]))
    names = {p.name: a for p, a in zip(made.consumer.parameters, second.arguments, strict=False)}
    names |= {"blockDim.x": second.block[0], "gridDim.x": second.grid[0]}
    count = in_names(made.work.count, names)
    if count is None or not covers(second.grid[0], second.block[0], polynomial(count)):
        return None
    return polynomial(count)
