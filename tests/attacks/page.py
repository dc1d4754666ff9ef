# ruff: noqa: E501 (a paragraph is a line)
"""``docs/attacks.md`` from the tables: ``python -m tests.attacks.page > docs/attacks.md``."""

from tests.attacks.catalogue import CATALOGUE
from tests.attacks.entry import Attack
from tests.attacks.tables import ATTACKS, CONTROLS

_HEAD = """# The red team

Known ways in which generated kernels, or their benchmarks, cheated or misled, and what stands against each. `tests/attacks/`
holds {attacks} attacks, wrong rewrites of small programs that must be refused by the gate named here and for the reason that the test states,
and {controls} honest rewrites that must be accepted. For each gate, one attack is shown to pass when that gate alone is
switched off (`tests/attacks/test_gates_matter.py`; of the gates that need a card: `tests/evaluation/test_gates_of_a_card_matter.py`). With a card the same attacks and controls run there too (`tests/attacks/test_on_a_card.py`).

This page is made by `python -m tests.attacks.page`. The gates are described in [verdict.md](verdict.md).

| no. | what | attacks, and the gate that refuses them | beside or instead of them |
|---|---|---|---|
"""

_TAIL = """
## Honest rewrites

Accepted, in full depth: {names}.

## What still passes

- A branch on one size or value that is hidden behind two unknowns (`n * m == c`, a hash of the contents).
- Counters that overflow only at sizes that do not run whole here (up to 200 million thread-instructions of the original).
- An element left unwritten in the midst of a size that does not run whole: sampled blocks cannot tell it from one that another block writes.
- Whole numbers beyond those tried, where no range is stated.
- An error between four and some ten times the original's own, where an output has a few values only: nobody can tell it from luck.
- A block that waits, through volatile reads, for what a later block writes: it ends in the emulator, and need not on a card.
- Without a card: code that knows the emulator by where its shared or local memory lies, or by the last bits of an approximation, and is right there only.
- Without a card: lanes that a shuffle under `__activemask()` takes for converged after a branch.
- Indices of 32 bits that overflow beyond the sizes that run: the verdict names the largest of them.
- A zero of the other sign: the two are equal.
- Random draws that are not independent of one another: their distribution alone is compared.
- A branch for another architecture than the one that is judged (`#if __CUDA_ARCH__`): it is compiled for those that the project names, and not run.
"""


def page() -> str:
    """The whole page."""
    rows = [_row(number, name, answer) for number, (name, answer) in CATALOGUE.items()]
    names = "; ".join(control.name for control in CONTROLS)
    head = _HEAD.format(attacks=len(ATTACKS), controls=len(CONTROLS))
    return head + "\n".join(rows) + "\n" + _TAIL.format(names=names)


def _row(number: str, name: str, answer: str) -> str:
    found = "; ".join(f"{attack.name} (*{attack.gate}*)" for attack in against(number))
    return f"| {number} | {name} | {found} | {answer} |"


def against(number: str) -> list[Attack]:
    """The attacks that stand for a row."""
    return [attack for attack in ATTACKS if number in attack.rows]


if __name__ == "__main__":
    print(page(), end="")
