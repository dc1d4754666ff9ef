"""KernelBench's own evaluator in a process of its own, from a checkout that is named and never copied.

``python -m tests.gpu.kernelbench CHECKOUT build|judge REFERENCE CANDIDATE FOLDER [PRECISION]``: two files, and the
folder that keeps what is compiled. ``build`` compiles, as its cache builder does; ``judge`` calls
``eval_kernel_against_ref`` as its batch script does (five correctness trials, a hundred timed calls) and prints one
line of JSON. PRECISION is PyTorch's name of the type that inputs are cast to, where it is not the evaluator's own.

Its package imports clients of language models when it is imported, which its evaluator never calls: where they are not
installed, empty modules stand in for them. Everything else that it needs must be there.
"""

import contextlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

CLIENTS = {"dotenv": ("load_dotenv",), "openai": ("OpenAI",), "litellm": ("completion",)}
NEEDED = ("torch", "numpy", "pydantic", "requests", "tqdm", "ninja")
TRIALS, CALLS = 5, 100


def missing() -> tuple[str, ...]:
    """What its evaluator needs and is not installed here."""
    return tuple(name for name in NEEDED if importlib.util.find_spec(name) is None)


def main(checkout: str, what: str, reference: str, candidate: str, folder: str, precision: str = "") -> None:
    os.environ["TORCH_EXTENSIONS_DIR"] = os.environ["CUPY_CACHE_DIR"] = folder
    text = Path(candidate).read_text(encoding="utf-8")
    begun = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        if what == "build":
            exec(compile(text, candidate, "exec"), {})
            told: dict[str, Any] = {}
        else:
            told = _judge(checkout, Path(reference).read_text(encoding="utf-8"), text, folder, precision)
    print(json.dumps({**told, "seconds": time.perf_counter() - begun}))


def _judge(checkout: str, reference: str, candidate: str, folder: str, precision: str) -> dict[str, Any]:
    sys.path.insert(0, str(Path(checkout) / "src"))
    _stand_in()
    import torch
    from kernelbench.eval import eval_kernel_against_ref

    begun = time.perf_counter()
    found = eval_kernel_against_ref(
        reference,
        candidate,
        num_correct_trials=TRIALS,
        num_perf_trials=CALLS,
        measure_performance=True,
        build_dir=folder,
        device=torch.device("cuda:0"),
        **({"precision": getattr(torch, precision)} if precision else {}),
    )
    if found is None:
        return {"compiled": False, "correct": False, "why": "it asks to be called again"}
    why = {name: str(value)[:200] for name, value in found.metadata.items() if name not in ("hardware", "device")}
    return {
        "compiled": found.compiled,
        "correct": found.correctness,
        "runtime": found.runtime,
        "inside": time.perf_counter() - begun,
        "why": why,
    }


def _stand_in() -> None:
    for name, members in CLIENTS.items():
        if importlib.util.find_spec(name) is None:
            module = ModuleType(name)
            for member in members:
                setattr(module, member, lambda *words, **more: None)
            sys.modules[name] = module


if __name__ == "__main__":
    main(*sys.argv[1:])
