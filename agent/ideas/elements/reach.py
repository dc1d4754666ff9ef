"""How far a launch reaches: whether its threads cover a bound, and a grid that covers it with more work a thread."""

import random
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from agent.analysis.syntax import bare, descendants, text
from agent.ideas.view import View, evaluate
from agent.workload.expression import Expression, ExpressionError, build, number
from agent.workload.plan import Launch

SAMPLES = 160


def in_launch_names(view: View, launch: Launch, node: Node) -> Expression | None:
    """An expression over a kernel's parameters and constants as one over the workload's names; None where it holds
    anything else."""
    symbols = view.facts.symbols
    given: dict[str, Expression] = {}
    for one in descendants(node, "identifier"):
        symbol = symbols.resolve(one)
        if symbol is None:
            constant = symbols.constants.get(text(one))
            if constant is None:
                return None
            given[text(one)] = number(constant)
        elif symbol.fixed and symbol.space == "parameter" and not symbol.pointer:
            place = [parameter.name for parameter in view.kernel.parameters].index(symbol.name)
            given[symbol.name] = launch.arguments[place]
        elif symbol.fixed and symbol.space == "local" and symbol.init is not None and not symbol.is_memory:
            inner = in_launch_names(view, launch, symbol.init)
            if inner is None:
                return None
            given[symbol.name] = inner
        else:
            return None
    inner_node = bare(node)
    try:
        return Expression.parse(text(inner_node)).substitute(given)
    except ExpressionError:
        return None


def samples(view: View) -> Iterator[Mapping[str, int | float]]:
    """Values of the workload's names at many sizes: the declared ones, all small ones, and some at random."""
    workload, plan = view.request.workload, view.request.plan
    yield view.sizes
    generator = random.Random(len(workload.sizes))
    for sample in range(SAMPLES):
        names: dict[str, int | float] = {}
        for size in workload.sizes:
            wanted = 1 + sample if sample < SAMPLES // 2 else generator.randint(1, max(64, size.value))
            names[size.name] = max(size.minimum, -(-wanted // size.multiple) * size.multiple)
        for constant in workload.constants:
            if (value := evaluate(constant.value, names)) is not None:
                names[constant.name] = value
        for name, expression in plan.locals:
            if (value := evaluate(expression, names)) is not None:
                names[name] = value
        yield names


def covers(view: View, launch: Launch, axis: int, bound: Expression) -> bool:
    """Whether the threads of the launch along an axis are at least as many as ``bound``, at every size tried."""
    return all(_reach(launch, axis, names) >= _value(bound, names, 1 << 62) for names in samples(view))


def exact(view: View, launch: Launch, axis: int, bound: Expression) -> bool:
    """Whether there are exactly so many threads, at every size tried."""
    return all(_reach(launch, axis, names) == _value(bound, names, -2) for names in samples(view))


def _reach(launch: Launch, axis: int, names: Mapping[str, int | float]) -> int:
    return _value(launch.grid[axis], names, -1) * abs(_value(launch.block[axis], names, 1))


def _value(expression: Expression, names: Mapping[str, int | float], otherwise: int) -> int:
    found = evaluate(expression, names)
    return found if isinstance(found, int) else otherwise


def blocks_for(bound: Expression, each: int) -> Expression:
    """``(bound + each - 1) / each``."""
    if isinstance(bound.constant, int):
        return number(-(-bound.constant // each))
    return Expression("/", (build("+", (bound, number(each - 1))), number(each)))
