"""What can be tried in so many minutes, decided beforehand: a plan that is run again ignores the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recsys.errors import InputError, Phrase
from recsys.models.trainable import Sizes, Trainable
from recsys.records.arrays import Interactions
from recsys.records.checks import is_number

_PLACES_PER_SECOND = 3e7  # items that are scored and compared to rank all of them for a user


@dataclass(frozen=True)
class TimePlan:
    """How many settings of each recommender are tried, why others are left out, and the seconds it takes.

    `tuned` are the recommenders that have settings to try.
    """

    trials: dict[str, int]
    tuned: frozenset[str]
    left_out: dict[str, str]
    seconds: float

    def explain(self, minutes: float) -> str:
        """Return the plan as a sentence, with the options that run it again without a clock."""
        return Phrase(
            "about {} of {}; again without a clock: {bench.baselines=} {bench.trials=}.",
            _length(self.seconds),
            _length(60 * minutes),
            baselines=list(self.trials),
            trials={name: n for name, n in self.trials.items() if name in self.tuned} or 0,
        )


def fit_into(
    minutes: float,
    entries: Mapping[str, Trainable],
    trials: Mapping[str, int],
    history: Interactions,
    fits: Mapping[str, int],
) -> TimePlan:
    """Choose what fits into so many minutes on one core: fewer settings of the slowest, at last without them.

    Args:
        minutes: the time for all of them.
        entries: the recommenders; the first of them always stays.
        trials: how many settings of each would be tried.
        history: what is learnt from.
        fits: how often each is trained in the end.
    """
    sizes = Sizes.of(history)
    ranking = sizes.users * sizes.items / _PLACES_PER_SECOND
    each = {name: entry.seconds(sizes) + ranking for name, entry in entries.items()}
    kept, left_out, first = dict(trials), dict[str, str](), next(iter(entries))

    def lasts(name: str) -> float:
        return each[name] * (kept[name] + fits[name])

    if not (is_number(minutes) and minutes > 0):
        raise InputError(f"minutes is {minutes!r}.", hint="Pass a number above 0, such as 2.")
    while sum(map(lasts, kept)) > 60 * minutes and len(kept) > 1:
        slowest = max((name for name in kept if name != first), key=lasts)
        if kept[slowest]:
            kept[slowest] //= 2
        else:
            left_out[slowest] = f"it would take about {_length(lasts(slowest))}."
            del kept[slowest]
    in_order = {name: kept[name] for name in sorted(kept, key=lasts)}
    tuned = frozenset(name for name, n in trials.items() if n)
    return TimePlan(in_order, tuned, left_out, sum(map(lasts, kept)))


def _length(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"
