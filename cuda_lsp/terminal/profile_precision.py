"""What a profile says of precision: a column beside the source, below it outputs and the lines that lose most."""

from collections.abc import Iterator

from agent.evaluation.lines.precision import LineErrors, OutputErrors
from agent.evaluation.lines.profile import Profile
from cuda_lsp.terminal.profile_cells import BAD, NOTHING, POOR, Cell, Column, short
from cuda_lsp.terminal.render import line

MUCH = 1024.0
"""Units in the last place: ten bits of a result are wrong."""

FEW = 3
"""Lines that are named below the listing."""

ERRORS = Column(("error", "in ulp"), lambda facts, whole: NOTHING, 4, "error {} ulp")
"""Its cells come from the shadow, not from counts."""


def cell(errors: LineErrors) -> Cell:
    """The largest error that the line hands on; nothing where that is what a single operation may have."""
    if errors.largest < 1:
        return NOTHING
    style = (BAD if errors.largest >= MUCH else POOR) if errors.grows else ""
    return Cell(units(errors.largest), style)


def units(value: float) -> str:
    """Two figures where there are few."""
    return f"{value:.2g}" if value < 10 else short(value)


def losses(profile: Profile) -> Iterator[str]:
    """Errors of the outputs, and the lines on which they grow most."""
    found = profile.precision
    if found is None:
        return
    if found.note:
        yield line("precision", f"not found: {found.note}")
        return
    label = "precision"
    for one in found.outputs:
        yield line(label, _output(one))
        label = ""
    for grown in found.growing[:FEW]:
        yield line(label, _line(grown))
        label = ""


def _output(one: OutputErrors) -> str:
    unknown = [
        f"{count:,} not known ({why})"
        for count, why in ((one.parted, "a branch goes another way in float64"), (one.lost, "bits of floats"))
        if count
    ]
    if not one.compared:
        return f"{one.name}: {'; '.join(unknown)}"
    largest, rms = units(one.largest), units(one.rms)
    said = f"at most {largest} ulp of its largest value from float64, {rms} in the root mean square"
    return "; ".join([f"{one.name}: {said}, over {short(one.compared)} elements", *unknown])


def _line(one: LineErrors) -> str:
    since = f"from {units(one.brought)} to" if one.brought else "to"
    return (
        f"line {one.number}: the error grows {since} {units(one.reaching)} ulp of the result "
        f"({units(one.rms)} in the root mean square)"
    )
