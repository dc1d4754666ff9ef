"""Our own kernels: made contents, poison, flush, blocker, digests. Compiled once for each card, kept in the cache."""

from functools import cache
from pathlib import Path

from attrs import frozen

from agent.execution.compiler.result import Build, CompileFailure, Options
from agent.execution.compiler.slices import compile_slice

_FOLDER = Path(__file__).parent / "kernels"
KERNELS = ("make", "nudge", "widen", "sweep", "stain", "copy", "hold", "digest", "idle")


@frozen
class _Text:
    text: str
    names: tuple[str, ...] = KERNELS
    headers: tuple[tuple[str, str], ...] = ()
    symbols: tuple[str, ...] = ()
    path: str = "support.cu"


def text() -> str:
    """The source of all of them."""
    return "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("making.cu", "timing.cu"))


@cache
def support(arch: str) -> Build | CompileFailure:
    """Without contraction, so that contents are NumPy's to the bit."""
    return compile_slice(_Text(text()), Options(arch=arch, fmad=False))
