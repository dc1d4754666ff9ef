"""Calls through a pointer: which functions one may lead to, and at which address each stands."""

from collections.abc import Iterator

from agent.execution.emulator.addresses import FUNCTIONS, TAG_BITS
from agent.execution.emulator.ptx.instruction import Address, Function, Instruction, Module, Operand, Symbol, Vector

_STEP = 16


def function_places(module: Module) -> dict[str, tuple[str, int]]:
    """Space and address of each function with a body. Nothing can be read there."""
    return {
        name: ("function", (FUNCTIONS << TAG_BITS) + _STEP * (number + 1))
        for number, name in enumerate(module.functions)
    }


def callees(module: Module, caller: Function, instruction: Instruction) -> list[Function]:
    """The functions whose address somebody takes and whose parameters are as large as what the call passes."""
    arguments = instruction.sources[1]
    assert isinstance(arguments, Vector)
    wanted = (_sizes(caller, instruction.destinations), _sizes(caller, arguments.elements))
    return [
        function
        for name in sorted(_taken(module))
        if not (function := module.functions[name]).entry
        and ([one.nbytes for one in function.returns], [one.nbytes for one in function.parameters]) == wanted
    ]


def _sizes(caller: Function, operands: tuple[Operand | None, ...]) -> list[int]:
    sizes = {variable.name: variable.nbytes for variable in caller.variables}
    return [sizes.get(operand.name, 0) if isinstance(operand, Symbol) else 0 for operand in operands]


def _taken(module: Module) -> set[str]:
    """Names of functions that stand anywhere but as what is called."""
    found = {symbol.name for variable in module.variables.values() for symbol in variable.relocations.values()}
    for function in module.functions.values():
        for instruction in function.instructions:
            operands = instruction.sources[1:] if instruction.base == "call" else instruction.sources
            found.update(_named(operands))
    return found & set(module.functions)


def _named(operands: tuple[Operand | None, ...]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Vector):
            yield from _named(operand.elements)
        elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
            yield operand.base.name
