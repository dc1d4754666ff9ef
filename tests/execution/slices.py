"""Hand-made device slices, for tests of what stands above the slicer's door."""

from attrs import frozen


@frozen
class HandSlice:
    text: str
    names: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    symbols: tuple[str, ...] = ()
    path: str = "kernel.cu"
