"""How far each coordinate runs: from guards, from remainders, and from the launch where the kernel does not say."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from agent.analysis.affine import Poly, number
from agent.analysis.loops import Loop
from agent.analysis.patterns.coordinates import AXES, Coordinate, quotient
from agent.ideas.product.conditions import Conjunct
from agent.ideas.product.frame import Frame
from agent.ideas.product.spelling import expressed, spelled, without_factor
from agent.ideas.view import View, declared_names, evaluate
from agent.workload.expression import Expression, ExpressionError, build
from agent.workload.expression import number as numeral
from agent.workload.plan import Launch

OFFSETS = (0, 1, 2, 5, 16, 97)
"""What is added to each size (times its multiple) where a fact about a launch is tried at other sizes."""


@frozen(eq=False)
class Extent:
    """``text`` in the kernel (None where it cannot be written there), ``launched`` over the workload's names, one for
    each launch."""

    text: str | None
    launched: tuple[Expression, ...]


Found = tuple[Mapping[Coordinate, Extent], tuple[Conjunct, ...]]


def extents(
    view: View, framed: Frame, guards: Iterable[Conjunct], blocked: tuple[Coordinate, ...]
) -> Found | str:  # fmt: skip
    """Every digit's extent, and the guards that say something else. ``blocked`` are digits whose extent the kernel
    itself must know."""
    bounds: dict[Coordinate, tuple[Poly, str]] = {}
    rest: list[Conjunct] = []
    for one in guards:
        bound = _bound(one, framed)
        if bound is None:
            rest.append(one)
        elif bound[0] not in bounds:
            bounds[bound[0]] = bound[1], bound[2]
        elif bounds[bound[0]][0] != bound[1]:
            return f"{bound[0].name} has two bounds"
    samples = sampled(view)
    known: dict[Coordinate, Extent] = {}
    for axis in AXES:
        digits = [one for one in framed.places.digits if one.axis == axis]
        reason = _axis(view, axis, digits, bounds, known, samples)
        if reason is not None:
            return reason
    for digit in blocked:
        if known[digit].text is None:
            return f"the kernel does not know how far {digit.name} runs"
    return known, tuple(rest)


def _bound(one: Conjunct, framed: Frame) -> tuple[Coordinate, Poly, str] | None:
    """(digit, bound, spelling) where a guard bounds the highest digit of an axis."""
    if one.bounded is None or one.bound is None:
        return None
    digits = framed.places.of(one.bounded)
    top = next((digit for digit in digits if digit.extent is None), None)
    if top is None or not all(digit.axis == top.axis for digit in digits):
        return None
    if top.symbol is one.bounded:
        return top, one.bound, one.bound_text
    share = quotient(one.bound, top.low)
    return None if share is None else (top, share, "")


def _axis(
    view: View,
    axis: str,
    digits: list[Coordinate],
    bounds: Mapping[Coordinate, tuple[Poly, str]],
    known: dict[Coordinate, Extent],
    samples: list[Mapping[str, int | float]],
) -> str | None:
    at = AXES.index(axis)
    threads = not digits or digits[0].threads
    places = [_places(launch, at, threads) for launch in view.launches]
    if digits and not threads and view.block[at] != 1:
        return f"the threads of a block along {axis} all do the same work"
    if not digits:
        alone = all(evaluate(one, names) == 1 for one in places for names in samples)
        return None if alone else f"threads that differ along {axis} only do the same work"
    arguments = [given(view, launch) for launch in view.launches]
    lower: list[Expression] = [numeral(1) for _ in view.launches]
    for digit in digits:
        poly = digit.extent if digit.extent is not None else bounds.get(digit, (None, ""))[0]
        if poly is None:
            found = _from_launch(view, digit, places, lower, samples)
        else:
            launched = [expressed(poly, names) for names in arguments]
            if any(one is None for one in launched):
                return f"how far {digit.name} runs cannot be told from the launch's arguments"
            written = bounds[digit][1] if digit.extent is None and digit in bounds else ""
            found = Extent(_text(written, poly, view), tuple(one for one in launched if one is not None))
        known[digit] = found
        lower = [build("*", [one, two]) for one, two in zip(lower, found.launched, strict=True)]
    exact = digits[-1] not in bounds
    for place, total in zip(places, lower, strict=True):
        for names in samples:
            have, need = evaluate(place, names), evaluate(total, names)
            if have is None or need is None or (have != need if exact else have < need):
                return f"the launch does not hand out each value of {digits[-1].name} once"
    return None


def _text(written: str, poly: Poly, view: View) -> str | None:
    """How a bound is spelled: as the user did, where the words mean the same in the whole kernel."""
    if written.isidentifier():
        parameters = {one.name for one in view.kernel.parameters}
        if written in parameters or not any(symbol.name == written for symbol in view.facts.symbols.all()):
            return written
    return spelled(poly, view.facts)


def _from_launch(
    view: View,
    digit: Coordinate,
    places: list[Expression],
    lower: list[Expression],
    samples: list[Mapping[str, int | float]],
) -> Extent:
    """The extent that the grid gives to the highest digit; in the kernel's words where a parameter always equals it."""
    launched = tuple(without_factor(place, below) for place, below in zip(places, lower, strict=True))
    arguments = [given(view, launch) for launch in view.launches]
    for parameter in view.kernel.parameters:
        if parameter.pointer_depth or not all(parameter.name in one for one in arguments):
            continue
        symbol = next((one for one in view.facts.symbols.all() if one.name == parameter.name), None)
        if symbol is None or not symbol.fixed:
            continue
        values = [one[parameter.name] for one in arguments]
        if all(
            _alike(value, extent, names) for value, extent in zip(values, launched, strict=True) for names in samples
        ):
            return Extent(parameter.name, tuple(values))
    return Extent(None, launched)


def _alike(one: Expression, two: Expression, names: Mapping[str, int | float]) -> bool:
    left, right = evaluate(one, names), evaluate(two, names)
    return isinstance(left, int) and left == right


def _places(launch: Launch, at: int, threads: bool) -> Expression:
    """How many places a launch has along an axis."""
    return build("*", [launch.grid[at], launch.block[at]]) if threads else launch.grid[at]


def given(view: View, launch: Launch) -> Mapping[str, Expression]:
    """The arguments of a launch by parameter, and the file's constants."""
    found = {name: numeral(value) for name, value in view.facts.symbols.constants.items()}
    for parameter, argument in zip(view.kernel.parameters, launch.arguments, strict=False):
        if parameter.pointer_depth == 0:
            found[parameter.name] = argument
    found.update(template_values(view, launch))
    for at, axis in enumerate(AXES):
        found[f"blockDim.{axis}"] = launch.block[at]
    return found


def template_values(view: View, launch: Launch) -> Iterator[tuple[str, Expression]]:
    """The values of template parameters that a launch spells out."""
    listed = launch.kernel.partition("<")[2].rpartition(">")[0]
    for parameter, written in zip(view.kernel.template, listed.split(","), strict=False):
        try:
            if parameter.kind == "value" and written.strip():
                yield parameter.name, Expression.parse(written)
        except ExpressionError:
            continue


def sampled(view: View) -> list[Mapping[str, int | float]]:
    """Names with their values at the declared sizes and at others."""
    workload, plan = view.request.workload, view.request.plan
    found = []
    for turn, offset in enumerate(OFFSETS):
        sizes = tuple(
            evolve(size, value=size.value + size.multiple * (offset * (at + 1) if turn else 0))
            for at, size in enumerate(workload.sizes)
        )
        found.append(declared_names(evolve(workload, sizes=sizes), plan))
        small = tuple(
            evolve(size, value=max(size.minimum, size.multiple * (turn + at + 1)))
            for at, size in enumerate(workload.sizes)
        )
        if turn:
            found.append(declared_names(evolve(workload, sizes=small), plan))
    return found


def parameter_trips(loop: Loop, view: View) -> int:
    """How often a loop runs at the declared sizes; 0 where that is not known."""
    span = loop.bound - loop.start + number(loop.relation == "<=")
    for launch in view.launches:
        trips = span.evaluate(view.parameters(launch))
        if trips is not None:
            return max(0, trips)
    return 0
