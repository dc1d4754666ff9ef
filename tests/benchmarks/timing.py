"""Equal code against itself on the card: what a timing costs and how wide its interval is. One line without a card."""

import statistics
import time

from attrs import evolve

from agent.evaluation.measures.measuring import SCREEN, Unmeasured, summary
from agent.execution.gpu import Gpu, open_gpu, why_no_gpu
from tests.fixtures.cases import CASES, Case
from tests.gpu.racing import fixture, race


def main() -> None:
    card = open_gpu()
    if card is None:
        print(f"timing: no card ({why_no_gpu()})")
        return
    print(card.figures())
    print("a kernel against itself, one process")
    print("  fixture                     us   warm us sets   ratio    half blocks      s   wall")
    halves = [half for case in CASES if (half := _row(card, case)) is not None]
    print(f"  median half-width {statistics.median(halves):.2%}")
    card.close()


def _row(card: Gpu, case: Case) -> float | None:
    one, family = fixture(case.file, case.kernel, card)
    begun = time.perf_counter()
    effort = SCREEN
    asked = race(one, one, family, blocks=effort.blocks, warm=effort.warm, budget=effort.budget)
    timed = card.race(evolve(asked, seconds=60.0))
    wall = time.perf_counter() - begun
    found = summary(case.name, [timed], timed, []) if timed.status == "ok" else Unmeasured(timed.message)
    if isinstance(found, Unmeasured):
        print(f"  {case.name:20} {found.reason}")
        return None
    warm = found.warm_seconds[0] * 1e6 if found.warm_seconds else 0.0
    print(
        f"  {case.name:20} {found.original_seconds * 1e6:9.2f} {warm:9.2f} {timed.sets:4} {found.cold.ratio:7.4f} "
        f"{found.cold.half_width:7.2%} {len(timed.cold):6} {timed.seconds:6.2f} {wall:6.2f}"
        f"  {timed.clocks} odd {timed.odd} {' '.join(timed.throttled)} {timed.unwatched}"
    )
    return found.cold.half_width


if __name__ == "__main__":
    main()
