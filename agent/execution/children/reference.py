"""The process that runs a PyTorch function which the user named: his own Python, at his own word, beside ours.

It works on the CPU in float64. What the function asks for by the names of its parameters it gets: buffers as tensors of
one dimension, sizes and constants as numbers.
"""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.execution.children import reference_messages as say
from agent.execution.children.serve import serve
from agent.execution.wire import Channel

_WARM_CALLS = 3
_MODULE = "cuda_lsp_reference"
"""What the user's file is called as a module: its frames are told by that."""


class Unfit(Exception):
    """What the user wrote cannot be used; the message says why."""


def main() -> None:
    held: list[Any] = []

    def handle(channel: Channel) -> None:
        request = channel.receive(say.Open, say.Call, say.Time)
        if isinstance(request, say.Open):
            made, found = opened(request)
            held[:] = [found]
            channel.send(made)
        elif isinstance(request, say.Time):
            channel.send(timed(held[0], request))
        else:
            channel.send(called(held[0], request))

    serve(handle)


def opened(request: say.Open) -> tuple[say.Opened, Any]:
    """The user's function or module, loaded, and what is to be said about it."""
    try:
        import torch
    except ImportError as error:
        return say.Opened(f"a PyTorch reference needs torch: pip install torch ({error})"), None
    try:
        return say.Opened(version=str(torch.__version__)), _loaded(Path(request.path), request.name, torch)
    except Unfit as unfit:
        return say.Opened(str(unfit)), None
    except BaseException as error:
        return say.Opened(f"{Path(request.path).name} cannot be loaded: {_words(error)}"), None


def _loaded(path: Path, name: str, torch: Any) -> Any:
    if not path.is_file():
        raise Unfit(f"{path}: no such file")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise Unfit(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        found = found()
    if not callable(found):
        raise Unfit(f"{path.name} has no function or module called {name}")
    return found.double().eval() if isinstance(found, torch.nn.Module) else found


def called(function: Any, request: say.Call) -> say.Called:
    """What it computes; whatever it does, the answer says so."""
    import torch

    try:
        with torch.no_grad():
            tensors = {one.name: _tensor(torch, one) for one in request.tensors}
            known = {**request.numbers, **tensors}
            if isinstance(function, torch.nn.Module):
                _fill(torch, function, tensors)
            answer = function(**_arguments(function, known))
            return say.Called(_outputs(torch, answer, request.outputs))
    except Unfit as unfit:
        return say.Called(problem=str(unfit))
    except BaseException as error:
        return say.Called(problem=_words(error))


def timed(function: Any, request: say.Time) -> say.Times:
    """Its calls on the card, each timed by events behind a read that empties the level-2 cache; whatever it does, the
    answer says so."""
    import torch

    try:
        if not torch.cuda.is_available():
            return say.Times(problem=f"PyTorch {torch.__version__} sees no card")
        with torch.no_grad():
            tensors = {one.name: _tensor(torch, one, wide=False).cuda() for one in request.tensors}
            if isinstance(function, torch.nn.Module):
                _fill(torch, function, tensors)
                function = function.cuda().to(_float_of(torch, tensors))
            arguments = _arguments(function, {**request.numbers, **tensors})
            chosen = torch.compile(function) if request.compiled else function
            for _ in range(_WARM_CALLS):
                chosen(**arguments)
            return say.Times(_calls(torch, lambda: chosen(**arguments), request))
    except Unfit as unfit:
        return say.Times(problem=str(unfit))
    except BaseException as error:
        return say.Times(problem=_words(error))


def _calls(torch: Any, call: Callable[[], Any], request: say.Time) -> tuple[float, ...]:
    held = torch.zeros(max(4, request.flush) // 4, dtype=torch.int32, device="cuda")
    found = []
    for _ in range(request.calls):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        held.sum()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3)
    return tuple(found)


def _float_of(torch: Any, tensors: Mapping[str, Any]) -> Any:
    return next((one.dtype for one in tensors.values() if one.is_floating_point()), torch.float32)


def _tensor(torch: Any, one: say.Tensor, wide: bool = True) -> Any:
    import numpy as np

    if one.dtype == "bf16":
        made = torch.from_numpy(np.frombuffer(one.data, "<i2").copy()).view(torch.bfloat16)
    else:
        made = torch.from_numpy(np.frombuffer(one.data, one.dtype).copy())
    return made.double() if wide and made.is_floating_point() else made


def _fill(torch: Any, module: Any, tensors: Mapping[str, Any]) -> None:
    """A module's parameters and buffers are the workload's of those names, with dots as underscores."""
    for name, held in module.state_dict(keep_vars=True).items():
        given = tensors.get(name.replace(".", "_"))
        if given is None:
            raise Unfit(f"the module's {name} has no buffer: one called {name.replace('.', '_')} would be it")
        if given.numel() != held.numel():
            raise Unfit(f"the module's {name} has {held.numel()} elements, the buffer {given.numel()}")
        held.copy_(given.reshape(held.shape))


def _arguments(function: Callable[..., Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Raises Unfit for a parameter that the workload has no name for."""
    called = function.forward if hasattr(function, "forward") else function
    found = {}
    for name, parameter in inspect.signature(called).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in known:
            found[name] = known[name]
        elif parameter.default is parameter.empty:
            raise Unfit(
                f"its parameter {name} is no buffer, size or constant of the workload: {', '.join(sorted(known))}"
            )
    return found


def _outputs(torch: Any, answer: Any, wanted: tuple[tuple[str, int], ...]) -> tuple[say.Tensor, ...]:
    """A tensor for the one output, several in the order of the workload's outputs, or a dictionary by name."""
    if isinstance(answer, torch.Tensor):
        answer = (answer,)
    if isinstance(answer, tuple | list):
        if len(answer) != len(wanted):
            raise Unfit(f"it gives {len(answer)} results; the workload has {len(wanted)} outputs")
        answer = dict(zip((name for name, _ in wanted), answer, strict=True))
    if not isinstance(answer, Mapping):
        raise Unfit(f"it gives {type(answer).__name__}; a tensor, several, or a dictionary of them is wanted")
    return tuple(_output(torch, answer, name, count) for name, count in wanted if name in answer)


def _output(torch: Any, answer: Mapping[str, Any], name: str, count: int) -> say.Tensor:
    held = answer[name]
    if not isinstance(held, torch.Tensor):
        raise Unfit(f"its result {name} is {type(held).__name__}, not a tensor")
    if held.numel() != count:
        raise Unfit(f"its result {name} has {held.numel()} elements, the buffer {count}")
    flat = held.detach().to(torch.float64).cpu().contiguous().reshape(-1)
    return say.Tensor(name, "<f8", flat.numpy().tobytes())


def _words(error: BaseException) -> str:
    """One line: the place in the user's own files, the kind of error, its message."""
    said = str(error).strip().splitlines()
    return f"{_place(error)}{type(error).__name__}: {said[0] if said else 'no message'}"


def _place(error: BaseException) -> str:
    """The innermost line of the user's file, or of one beside it, that the error came through: what PyTorch's own
    lines say of it tells nobody where to look. Empty where there is none."""
    frames = [(frame, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    first = next((frame for frame, _ in frames if frame.f_globals.get("__name__") == _MODULE), None)
    if first is None:
        return ""
    folder = Path(first.f_code.co_filename).parent
    for frame, number in reversed(frames):
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(folder) and "site-packages" not in file.relative_to(folder).parts:
            within = frame.f_code.co_name
            inside = "" if within.startswith("<") else f" in {within}"
            return f"{file.relative_to(folder).as_posix()}, line {number}{inside}: "
    return ""


if __name__ == "__main__":
    main()
