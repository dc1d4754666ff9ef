"""``python -m tests.benchmarks [NAME...]``: every benchmark of this folder, or those named. Prints; asserts nothing.
What begins with ``--`` is for the benchmarks themselves."""

import importlib
import pkgutil
import platform
import sys
from pathlib import Path

from tests import benchmarks


def main(names: list[str]) -> None:
    known = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    unknown = sorted(set(names) - set(known))
    if unknown:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are {', '.join(known)}")
    print(f"{_processor()}, Python {platform.python_version()}")
    for name in names or known:
        print()
        importlib.import_module(f"{benchmarks.__name__}.{name}").main()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.machine()


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("--")])
