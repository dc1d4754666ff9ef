"""Workloads in one line, for people."""

from agent.workload.directive import domain_text
from agent.workload.texture_words import texture_text
from agent.workload.workload import MADE_UP, PROBED, Access, Buffer, Workload


def arguments(workload: Workload) -> str:
    """``x f32[rows*cols] in, y f32[rows*cols] out; rows=4096 cols=65536``, textures behind the buffers."""
    buffers = ", ".join(_buffer(buffer) for buffer in workload.buffers)
    numbers = [f"{size.name}={size.value}" for size in workload.sizes]
    numbers += [f"{constant.name}={constant.value}" for constant in workload.constants]
    shown = ", ".join(" ".join(texture_text(texture).split()) for texture in workload.textures)
    return "; ".join(part for part in (buffers, shown, " ".join(numbers)) if part)


def _buffer(buffer: Buffer) -> str:
    extent = str(buffer.extent).replace(" ", "")
    stated = buffer.domain.given and buffer.access is not Access.OUT
    domain = f" {domain_text(buffer.domain)}" if stated else ""
    probed = f"{PROBED} " if buffer.probed else ""
    return f"{buffer.name} {buffer.dtype}[{extent}] {probed}{buffer.access.value}{domain}"


def origin(workload: Workload) -> str:
    """``launch at line 61, extents from cudaMalloc``, ``directive at line 12``, ``.cuda-lsp.toml``, ``made up: ..``; of
    what was read off host code what was taken for granted there, too."""
    told = workload.origin
    if told.kind == "settings":
        return told.detail
    if told.kind == MADE_UP:
        return "made up: nothing states what this kernel runs on"
    line = f" at line {told.line}{f' of {told.file}' if told.file else ''}" if told.line else ""
    if told.kind != "launch":
        return f"{told.kind}{line}"
    ways = dict.fromkeys(buffer.origin.detail for buffer in workload.buffers if buffer.origin.kind == "allocation")
    extents = f", extents from {' and '.join(ways)}" if ways else ""
    defaults = sorted({size.name for size in workload.sizes if size.origin.kind == "argv default"})
    values = f", {', '.join(defaults)} by default of the command line" if defaults else ""
    runs = sorted({size.name for size in workload.sizes if size.origin.kind == "run line"})
    where = next((size.origin.detail for size in workload.sizes if size.origin.kind == "run line"), "")
    values += f", {', '.join(runs)} as {where} runs it" if runs else ""
    return "; ".join((f"launch{line}{extents}{values}", *workload.notes))


def sizes(names: dict[str, int]) -> str:
    """``rows=64 cols=4099``."""
    return " ".join(f"{name}={value}" for name, value in names.items())
