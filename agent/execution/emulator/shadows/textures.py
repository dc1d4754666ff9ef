"""The shadow of texture fetches: what the place that was meant would give, with weights that are not rounded."""

from typing import TYPE_CHECKING

import numpy as np

from agent.execution.emulator.addresses import Array
from agent.execution.emulator.shadows.bits import units_of
from agent.execution.emulator.shadows.cells import PARTED, Flags, joined, marked, number, read
from agent.execution.emulator.shadows.memory import After, Follow, astray, with_marks
from agent.execution.emulator.shadows.shadow import Twin
from agent.execution.emulator.steps.texture import Fetch, axes_of, fetch_of, weighted
from agent.execution.emulator.values import Lowering, Step, Values

if TYPE_CHECKING:
    from agent.execution.emulator.batch import Batch


def fetches(lowering: Lowering, step: Step) -> Follow:
    """``tex``. Of whole numbers, of fetches by index, and where lanes read different objects, what is read is its own
    shadow; a place that would have been another one is marked."""
    form = fetch_of(lowering)
    by_float = form.kind == "f32" and form.by == "f32"

    def follow(values: Values, batch: "Batch", twin: Twin) -> After:
        places, flags = [], twin.astray(batch.lanes)
        for at, entry in enumerate(form.places):
            if not by_float or (form.layered and at == 0):
                places.append(values[entry])
                flags = joined(flags, astray(twin, batch, entry, values))
            else:
                place, marks = read(twin.get(batch.lanes, entry), "f32", values[entry])
                places.append(place)
                flags = joined(flags, marks)
        found, parted = _exactly(form, lowering, values, batch, places) if by_float else (None, None)
        marks = joined(flags, parted)

        def after() -> None:
            for k, out in enumerate(form.outs):
                if out is not None:
                    cells = None if found is None else number("f32", found[k], marks)
                    twin.put(batch.lanes, out, cells or with_marks(None, marks, units_of(values[out])))

        return after

    return follow


def _exactly(
    form: Fetch, lowering: Lowering, values: Values, batch: "Batch", places: list[Array]
) -> tuple[list[Array] | None, Flags]:
    """The four channels at float64 places, and marks where another texel is meant than the nearest that is read."""
    handles, site = values[form.handle], lowering.site
    known = batch.memory.views.get(int(handles.flat[0])) if (handles == handles.flat[0]).all() else None
    if known is None or (len(known[1].extents), known[1].layered) != (form.count, form.layered):
        return None, None
    buffer, view = known
    filtered = view.filter == "linear"
    axes = axes_of(site, view, places, filtered, exact=True)
    held = batch.watch, batch.traffic, batch.reach
    batch.watch = batch.traffic = batch.reach = None
    try:
        found = weighted(batch, site, buffer, view, axes)
    finally:
        batch.watch, batch.traffic, batch.reach = held
    if filtered:
        return found, None
    own = axes_of(site, view, [values[entry] for entry in form.places], False)
    other: Array = np.zeros((1, 1), bool)
    for one, mine in zip(axes, own, strict=True):
        other = other | (one.at[0] != mine.at[0])
    return found, marked(other, PARTED)
