"""A build made ready once: decoded, module variables placed, each kernel lowered when it is first launched."""

from collections.abc import Mapping

import numpy as np
from attrs import define, field

from agent.execution.compiler.result import Build
from agent.execution.emulator.addresses import FIRST_BUFFER, TAG_BITS, WINDOWS
from agent.execution.emulator.buffers import Buffer, new_buffer
from agent.execution.emulator.flow import Refused
from agent.execution.emulator.kernel import Beside, Kernel, prepare
from agent.execution.emulator.pointers import function_places
from agent.execution.emulator.ptx.decode import PtxError, decode
from agent.execution.emulator.ptx.instruction import Module, Variable

MOST_PROGRAMS = 32


@define(eq=False)
class Loaded:
    """``places`` maps each global or constant variable of the module to its space and address."""

    module: Module
    places: Mapping[str, tuple[str, int]]
    kernels: dict[tuple[str, bool], Kernel] = field(factory=dict)

    def kernel(self, name: str, shadow: bool = False) -> Kernel:
        """With a float64 shadow beside each step, where asked for. Raises Refused."""
        found = self.kernels.get((name, shadow))
        if found is None:
            function = self.module.functions.get(name)
            if function is None or not function.entry:
                raise Refused(f"there is no kernel {name} in the compiled program")
            beside = _with_shadow() if shadow else None
            found = self.kernels[name, shadow] = prepare(self.module, function, self.places, beside)
        return found

    def variables(self) -> dict[str, Buffer]:
        """New buffers for the module's variables, with their initial contents."""
        buffers = {}
        for name, (space, address) in self.places.items():
            variable = self.module.variables[name]
            buffer = new_buffer(name, address >> TAG_BITS, variable.nbytes, writable=space == "global")
            self._initialise(buffer, variable)
            buffers[name] = buffer
        return buffers

    def _initialise(self, buffer: Buffer, variable: Variable) -> None:
        if variable.initial is not None:
            buffer.data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for offset, symbol in variable.relocations.items():
            space, address = {**function_places(self.module), **self.places}.get(symbol.name, ("", 0))
            if not space:
                raise Refused(f"the initialiser of {variable.name} refers to {symbol.name}")
            value = WINDOWS.get(space, 0) + address + symbol.offset
            buffer.data[offset : offset + 8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)


def _with_shadow() -> Beside:
    from agent.execution.emulator.shadows.steps import Lines, shadowed

    lines = Lines()
    return lambda lowering, step: shadowed(lowering, step, lines)


_loaded: dict[str, Loaded] = {}


def load(build: Build) -> Loaded:
    """The program of ``build``, from memory where it was seen before. Raises Refused where it cannot be decoded."""
    found = _loaded.pop(build.key, None)
    if found is None:
        try:
            module = decode(build.ptx)
        except PtxError as error:
            raise Refused(f"the PTX cannot be decoded: {error}") from None
        found = Loaded(module, _places(module))
    while len(_loaded) >= MOST_PROGRAMS:
        _loaded.pop(next(iter(_loaded)))
    _loaded[build.key] = found
    return found


def _places(module: Module) -> dict[str, tuple[str, int]]:
    names = [variable.name for variable in module.variables.values() if variable.space in ("global", "const")]
    return {
        name: (module.variables[name].space, (FIRST_BUFFER + index) << TAG_BITS) for index, name in enumerate(names)
    }
