"""Numbers that ideas leave open, chosen by trial. What to build is the idea's business, how large is the tuner's."""

import itertools
from collections.abc import Callable, Mapping, Sequence

from agent.ideas.idea import Tunable

Values = tuple[int, ...]
Score = Callable[[Values], float | None]


def best_values(tunables: Sequence[Tunable], start: Values, known: float, score: Score, trials: int) -> list[Values]:
    """Assignments that score better than ``start`` (which scores ``known``), best first.

    ``score`` gives a figure that grows with speed, or None where an assignment does not work (it does not fit the card,
    it is wrong). Small spaces are tried whole. Larger ones are sampled by Optuna's tree-structured Parzen estimator
    (Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NIPS 2011), which begins at ``start``.
    """
    scores: dict[Values, float | None] = {start: known}
    space = list(itertools.product(*(tunable.values for tunable in tunables)))
    if len(space) - 1 <= trials:
        for values in space:
            if values not in scores:
                scores[values] = score(values)
    else:
        _sampled(tunables, scores, score, trials)
    better = [(figure, values) for values, figure in scores.items() if figure is not None and figure > known]
    return [values for _, values in sorted(better, key=lambda pair: -pair[0])]


def _sampled(tunables: Sequence[Tunable], scores: dict[Values, float | None], score: Score, trials: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=1, n_startup_trials=max(4, trials // 2))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    start = next(iter(scores))
    study.enqueue_trial(dict(_named(tunables, start)))
    asked = spent = 0
    # The sampler may ask for the same values again: that costs nothing, but must not go on for ever.
    while spent < trials and asked < 10 * trials:
        trial = study.ask()
        asked += 1
        values = tuple(trial.suggest_categorical(str(at), one.values) for at, one in enumerate(tunables))
        if values not in scores:
            scores[values] = score(values)
            spent += 1
        figure = scores[values]
        if figure is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, figure)


def _named(tunables: Sequence[Tunable], values: Values) -> Mapping[str, int]:
    return {str(at): value for at, value in enumerate(values[: len(tunables)])}
