"""Values are chosen by what trials say, and never tried twice."""

from agent.ideas.idea import Tunable
from agent.search.tuner import Values, best_values

TILE = Tunable("tile", (8, 16, 32, 64), 16, "elements of a tile")
ROWS = Tunable("rows", (1, 2, 4, 8), 1, "rows a thread")


class Bench:
    """A made-up kernel: fastest at tile 32 and 4 rows, and out of registers where both are largest."""

    def __init__(self) -> None:
        self.asked: list[Values] = []

    def score(self, values: Values) -> float | None:
        self.asked.append(values)
        tile, rows = values
        if tile * rows > 256:
            return None
        return 3.0 - abs(tile - 32) / 32 - abs(rows - 4) / 4


def test_a_small_space_is_tried_whole() -> None:
    bench = Bench()
    found = best_values([TILE, ROWS], (16, 1), 1.75, bench.score, trials=20)
    assert found[0] == (32, 4)
    assert len(bench.asked) == len(set(bench.asked)) == 15
    assert (16, 1) not in bench.asked and (64, 8) not in found


def test_a_large_space_is_sampled_within_the_trials() -> None:
    many = [Tunable(f"n{i}", tuple(range(10)), 0, "a number") for i in range(3)]
    asked: list[Values] = []

    def score(values: Values) -> float:
        asked.append(values)
        return 10.0 - sum(abs(value - 5) for value in values)

    found = best_values(many, (0, 0, 0), -5.0, score, trials=30)
    assert len(asked) == len(set(asked)) <= 30
    assert found and score(found[0]) > 2.0, "thirty trials that learn from one another come near"


def test_nothing_better_is_nothing() -> None:
    assert best_values([TILE], (16,), 5.0, lambda values: 1.0, trials=8) == []
    assert best_values([TILE], (16,), 1.0, lambda values: None, trials=8) == []
