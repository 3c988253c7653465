"""The sentences of notes and verdicts, each made of the fields of a record; the only place that has them.

A note's code is its key in `NOTES`: a text with the names of its values in braces, or a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recsys.display.number_words import plural

if TYPE_CHECKING:
    from recsys.records.facts import Note

from recsys.errors import Fix, Phrase

_SO = {
    "rough": "the interval is rough",
    "too_narrow": "the interval is too narrow if rare values are missing from the sample",
    "little": "an interval means little here",
    "no_test": "no test can say much here",
    "no_effect": "an effect size means little here",
    "bound_allows": "the bound allows for what was not seen",
    "range_unknown": "the range of the metric is not known, so nothing bounds what was not seen",
    "unlike_users": "the interval allows for users unlike those seen",
    "unknown": "nothing says how far it may vary",
}  # what follows from a fact: the value "so" of a note
PLAN_LOOKS = Phrase("Plan all looks from the first on ({gate.looks=}).")
_UNSEEN = "the interval allows for values not seen"
_TAILS_OF_TESTS = (
    "; if large values are rarer for one model than for the other, every test rejects too often, sign flips "
    "and bootstraps too: use a bounded metric, a transformed or trimmed one, or many more users"
)


def format_p(p: float, correction: str = "none") -> str:
    """Return a p-value with its name, two digits.

    >>> format_p(0.0123, "holm"), format_p(3e-9, "holm")
    ('p_holm = 0.012', 'p_holm < 0.0001')
    """
    name = "p" if correction == "none" else f"p_{correction}"
    if math.isnan(p):
        return f"{name} not defined"
    return f"{name} < 0.0001" if p < 1e-4 else f"{name} = {p:.2g}"


def differing(n_differing: int, n: int, noun: str = "user") -> str:
    """Return how many of all units differ.

    >>> differing(1, 40), differing(3, 1000), differing(0, 30)
    ('1 of 40 users differs', '3 of 1,000 users differ', 'none of 30 users differs')
    """
    who = f"{n_differing:,}" if n_differing else "none"
    return f"{who} of {plural(n, noun)} {'differ' if n_differing > 1 else 'differs'}"


def missing_cases(missing: Mapping[str, tuple[int, Any]], n: int) -> str:
    """Return how many of n cases each table lacks, and the first of them."""
    parts = [f"{name} lacks {count} (first: {first!r})" for name, (count, first) in missing.items()]
    return f"of {n} cases, {', '.join(parts)}"


def _differing_so(n_differing: int, n: int, so: str) -> str:
    return f"{differing(n_differing, n)}: {so}"


def _few_differ(n_differing: int, n: int, needed: int | None) -> str:
    """Return how many differ, and about how many more such units it would take to show something."""
    if needed is None or needed <= n:
        return differing(n_differing, n)
    unit = 10 ** max(0, len(str(needed - n)) - 2)
    more = math.ceil((needed - n) / unit) * unit
    return f"{differing(n_differing, n)}; about {more:,} more like these would be needed"


def _few_signs(n_differing: int, n: int, needed: int, level: float) -> str:
    text = differing(n_differing, n)
    if n_differing < needed:
        text += f", and no test of the signs of fewer than {needed} reaches {level:.3g}%"
    return text


def _skewed(n_differing: int, n: int, *, too_few: bool) -> str:
    who = f"{differing(n_differing, n)}, too few for a bootstrap"
    return (
        "differences are too skewed for this sample size: tests with a symmetric reference (t, sign-flip) "
        f"miss their level; {who if too_few else 'prefer the studentised bootstrap'}"
    )


def _unseen(so: str | Sequence[str]) -> str:
    """Return what follows; of an interval that allows for values not seen, which of its ends are open."""
    if isinstance(so, str):
        return so
    extremes = {"lower": "least", "upper": "greatest"}
    return _UNSEEN + "".join(f"; it has no {e} end, because no {extremes[e]} value is known" for e in so)


def _rare_values(n_differing: int, n: int, noun: str, so: str | Sequence[str]) -> str:
    who = f"{differing(n_differing, n, noun)} from the rest"
    return f"{who if n_differing else f'all {n:,} {noun}s have the same value'}: {_unseen(so)}"


def _uneven_weights(n_heavy: float, noun: str, so: str | Sequence[str]) -> str:
    return f"the weight is on few {noun}s, as on {n_heavy:.0f} of equal weight: {_unseen(so)}"


def _heavy_tails(share: float, effective: float, n: int, noun: str, so: str | Sequence[str]) -> str:
    """Return what heavy tails mean for a mean.

    >>> _heavy_tails(0.52, 3.3, 206, "value", "…")[:80]
    'heavy tails: about 3 of 206 values make up the spread (the largest 52% of it), s'
    """
    return (
        f"heavy tails: about {effective:.0f} of {n:,} {noun}s make up the spread (the largest {share:.0%} of "
        f"it), so the mean is not normal{_TAILS_OF_TESTS if so == 'tests' else f': {_unseen(so)}'}"
    )


def _equal_values(noun: str, p: float | None = None) -> str:
    flips = "" if p is None else f"; t is not defined, and sign flips have p = {p:.2g}"
    return f"every {noun} is the same: zero variance{flips}"


def _table_users(what: str, n_table: int, share_left: float | None) -> str:
    text = f"{what}: the difference among the {n_table:,} users of the table"
    return (
        text if share_left is None else f"{text}; for users beyond it {share_left:.0%} of that saving holds"
    )


def _no_random_sample(means: Mapping[str, tuple[float, float]]) -> str:
    listed = ", ".join(f"{name} {a:.4g} against {b:.4g}" for name, (a, b) in means.items())
    return (
        f"the users evaluated are not a random sample of the population ({listed}): the adjusted difference "
        "is right only if it depends on these along a straight line"
    )


def look_words(*, look: int, name: str, planned: int | str) -> str:
    """Return which look at a candidate a gate is."""
    return f"this is look {look} at {name}, and the confidence is that of {planned}"


def _stopped_intervals(n_seen: int, n_total: int, watched: str) -> str:
    where = "printed with the result, and in its notes['stopped']" if watched else "printed with the race"
    return (
        f"stopped early, after {n_seen:,} of {n_total:,} users: these intervals take the number of users for "
        "fixed beforehand and are not valid under optional stopping; "
        f"those of the {watched or 'differences'} that are valid are {where}"
    )


def _few_rewards(
    *, n_unusual: int, n: int, usual: float, worth: float | None, estimators: Iterable[str],
    bounds: tuple[float, float], most_in_cluster: int | None,
) -> str:  # fmt: skip
    text = f"{n_unusual:,} of {n:,} decisions had a reward other than {usual:g}"
    if worth is not None:
        text += f", worth {worth:.0f} of equal weight"
    text += (
        f": the intervals of {', '.join(estimators)} allow for rewards that were not seen, if all are "
        f"between {bounds[0]:g} and {bounds[1]:g}"
    )
    if most_in_cluster is not None:
        text += f" and no cluster has more than {most_in_cluster} of them"
    return text


NOTES: dict[str, str | Callable[..., str]] = {
    # samples and their intervals
    "few_units": lambda n, noun, so: f"only {plural(n, noun)}: {so}",
    "few_for_percentile": lambda n, noun, ends, of: (
        f"only {plural(n, noun)}: too few for the {' and '.join(ends)} end of an interval of the {of}"
    ),
    "no_spread": "every unit has the same value: zero variance, so nothing says how far other values may be",
    "kept_values_equal": (
        "all values that are not left out are the same: nothing says how far others may be"
    ),
    "rare_values": _rare_values,
    "uneven_weights": _uneven_weights,
    "heavy_tails": _heavy_tails,
    "spread_unknown": (
        "the interval is that of t, as there are too many different values to count: whether few users make "
        "up the spread is not known without the values per user, which {per_user='folder/'} keeps"
    ),
    "no_values": "no {noun} counts",
    "all_users": "intervals are of all users together, not of the groups",
    "stopped_intervals": _stopped_intervals,
    # values without groups of users
    "jackknife": (
        "the interval leaves out one of {n} groups of users at a time (jackknife), for a test set of this "
        "size"
    ),
    "few_for_groups": "fewer than {n} users: {so}",
    "constant": "no group of users changes it: {so}",
    "few_groups_change": (
        "{n_changing} of {n} groups of users change it, with {df:.0f} degrees of freedom: {so}"
    ),
    # pairs
    "unpaired": "{n} cases count for one side only and are not paired",
    "missing_cases": missing_cases,
    "nan_values": "{n_nan} of {n} values left out: NaN",
    "nan_pairs": "{n_nan} of {n} pairs left out: NaN on one side or both",
    "equal_values": _equal_values,
    "equal_folds": "every fold shows the same difference: zero variance",
    "no_effect_spread": "zero variance: there is no spread to measure an effect in",
    "skewed": _skewed,
    "rank_test": (
        "Wilcoxon and sign tests do not test the mean: on samples as large as recommender evaluations their "
        "type-1 error is inflated when differences are skewed; prefer t, permutation or the studentised "
        "bootstrap"
    ),
    "wins": "{wins} wins, {ties} ties, {losses} losses",
    "too_sparse": lambda n_differing, n: (
        f"{differing(n_differing, n)}, too few for a bootstrap: p and interval are those of sign flips"
    ),
    "differing": _differing_so,
    "few_differ": _few_differ,
    "few_signs": _few_signs,
    "no_lift": "no lift, {baseline} is not above 0",
    "not_adjusted": lambda is_mean: (
        f"not adjusted, {'too few users differ' if is_mean else 'it is not a mean over users'}"
    ),
    "range_assumed": "margins take all values to lie between {low:.4g} and {high:.4g}, as those seen do",
    "not_excluded": "large {what} of fewer than 3 in {n:,} users are not excluded",
    # several runs
    "few_runs": (
        "only {n} runs: the variance between runs is barely known, so the interval is wide; add a run"
    ),
    "fold_variance": "variance inflated by n_test / n_train = {ratio:.3g}",
    "few_differ_in_runs": "too few users differ for a test over runs",
    "users_only": lambda option, value: Phrase(
        "{} is for users alone; several runs use a t-test over both", Fix(option, value, of="compare")
    ),
    "folds_only": "test_over_train is for folds; these runs share their users",
    "single_run": "one side has a single run: if its training draws, the spread of that is not counted",
    # covariates and strata
    "missing_covariate": "{n_missing:,} of {n:,} users have no {name} and count as average in it",
    "missing_strata": "{n_missing:,} of {n:,} users are in no stratum and form one",
    "means_given": lambda what, means: (
        f"{what}: the difference among users with a mean of "
        f"{', '.join(f'{name} {mean:g}' for name, mean in means.items())}"
    ),
    "shares_given": "{what}: the difference with the shares given",
    "table_users": _table_users,
    "same_users": lambda what, of, option: (
        f"{what} at these users' {of}: holds for users with the same {of}, not for users at large, for whom "
        "nothing is saved (give a table of more users than were evaluated, or "
        + Phrase("{})", Fix(option, of="compare"))
    ),
    "idle_covariates": lambda n, names: (
        f"{n} of {len(names)} covariates ({', '.join(names)}) do not vary, or follow from others or from "
        "strata: they change nothing"
    ),
    "no_random_sample": _no_random_sample,
    # experiments and logs
    "few_in_group": lambda n: f"only {plural(n, 'unit')} in a group",
    "few_conversions": "fewer than 10 conversions or non-conversions: the normal limit is rough",
    "sample_ratio": "sample ratio mismatch: the groups are not of the planned size; find out why first",
    "mixed_units": "{n_mixed} of {n} units saw more than one variant and were left out",
    "few_rewards": _few_rewards,
    # comparisons, gates and ranks
    "may_be_first": lambda n, of, n_users, confidence: (
        f"{n} of {plural(of, 'model')} may be first; all places hold with {confidence:.0%} confidence"
        + (f" ({plural(n_users, 'user')})" if n_users else "")
    ),
    "over_groups": lambda n, correction: (
        f"the intervals of a metric hold together over {plural(n, 'group')}, and p is corrected over them "
        f"({correction})"
    ),
    "empty_groups": lambda groups: (
        "not compared, as some model has no value there: "
        + ", ".join(f"{label} ({plural(n, 'user')})" for label, n in groups.items())
    ),
    "means_only": (
        "one value per model and data set says nothing about other users of these data sets: no place is "
        "excluded; give the values per user or query"
    ),
    "in_memory": "the values per user were read into memory: {reason}",
    "other_aggregate": lambda stated: (
        f"means over users are compared; results state the {' or the '.join(stated)}"
    ),
    "stopped_models": lambda models: (
        f"{', '.join(models)} stopped early (stop_when, race): p-values and intervals here take the number "
        "of users for fixed beforehand; use the intervals that the stop reports"
    ),
    "stopped_results": lambda models: (
        f"{' and '.join(models)} stopped early, and the bounds take the number of users for fixed beforehand"
    ),
    "not_compared": "not compared: {metric}, {why}",
    "empty_margin": lambda option, margin, metric, why: Phrase(
        "{} asks nothing of {}: {}", Fix(option, margin, of="compare"), metric, why
    ),
    "unplanned_look": lambda **facts: f"{look_words(**facts)}. " + PLAN_LOOKS,
    "narrow_margin": lambda limit, n, needed: (
        f"{limit} is too narrow a margin for {plural(n, 'user')}: even identical lists need {needed:,}"
    ),
    "better_in_compare": lambda p: (
        f"compare calls it better by a test of these users ({format_p(p)}); "
        "a gate also allows for losses that none of them had"
    ),
}


def sentence(code: str, values: Mapping[str, Any]) -> str:
    """Return the sentence of a note; of a code that is not in `NOTES` its value "text"."""
    words = NOTES.get(code, "{text}")
    if isinstance(values.get("so"), str):
        values = {**values, "so": _SO.get(values["so"], values["so"])}
    return Phrase(words, **values) if isinstance(words, str) else words(**values)


def merged(notes: Iterable[Note], *, together: bool = False) -> list[str]:
    """Return each sentence once, after all subjects it is about.

    Args:
        notes: in the order of the lines.
        together: whether sentences about the same subjects share a line; those about none come first then.
    """
    subjects: dict[str, dict[str, None]] = {}
    for note in notes:
        own = subjects.setdefault(note.words, {})
        own.update({} if note.subject is None else {note.subject: None})
    lines = [(", ".join(names), text) for text, names in subjects.items()]
    if together:
        about: dict[str, str] = {}
        for names, text in lines:
            about[names] = about[names] + "; " + text if names in about else text
        lines = [line for line in lines if not line[0]] + [line for line in about.items() if line[0]]
    return [f"{names}: " + text if names else text for names, text in lines]


# The word that the sentence of a verdict begins with.
_VERDICTS = {
    "better": "better", "worse": "worse", "higher": "higher", "lower": "lower",
    "equivalent": "equivalent", "no_worse": "not worse", "no_difference": "no clear difference",
    "identical": "identical in this sample", "nothing_found": "both found nothing",
    "undecided": "undecided", "passed": "pass", "failed": "FAIL", "too_small": "too few users",
}  # fmt: skip


def verdict_word(kind: str, numbers: Mapping[str, Any]) -> str:
    """Return a verdict without its numbers, such as "no clear difference"."""
    if kind in ("shown", "not_shown"):
        limit = numbers["limit"]
        claim = "better" if limit is None else f"no worse than {limit}"
        return f"shown to be {claim}" if kind == "shown" else f"not shown that it is {claim}"
    word = _VERDICTS[kind]
    return word if numbers.get("is_trusted", True) else f"not to be trusted (sample ratio); {word}"


def verdict(kind: str, numbers: Mapping[str, Any]) -> str:
    """Return the sentence of a verdict: its word and, where it has any, its numbers."""
    word, n = verdict_word(kind, numbers), numbers.get("n_units")
    if kind == "identical":
        return f"{word}: {'the value is the same whichever is left out' if n is None else _equal_units(n)}"
    if kind == "nothing_found":
        return f"{word}: the value is 0 for all {n} units"
    if kind in ("shown", "not_shown"):
        return f"{word}: {'at least' if kind == 'shown' else 'it may be'} {numbers['least']}"
    if kind == "too_small" and numbers["needed"]:
        return f"{word}: {math.ceil(numbers['needed']):,} needed"
    parts = list(_numbers(kind, numbers)) if "difference" in numbers else []
    return f"{word}: {', '.join(parts)}" if parts else word


def _equal_units(n: int) -> str:
    return f"all {n} units have the same value"


def _numbers(kind: str, numbers: Mapping[str, Any]) -> Iterator[str]:
    """Yield the numbers of a verdict on a difference."""
    yield _difference(*(numbers[name] for name in ("difference", "interval", "lift", "lift_interval")))
    if "effect" in numbers:
        name, value = numbers["effect"]
        yield f"{name} {value:.2f}"
    p, correction = format_p(numbers["p"], numbers["correction"]), numbers["correction"]
    if "boundary" in numbers:
        z = numbers["z"]
        shown = "|z| not defined" if math.isnan(z) else f"|z| {z:.2f}"
        yield f"{shown} against a boundary of {numbers['boundary']:.2f} at this look"
    else:
        yield f"always-valid {p}" if numbers.get("is_sequential") else p
    if "better_in" in numbers:
        yield f"better in {numbers['better_in']} of {numbers['n_runs']} runs"
    if kind == "equivalent":
        yield f"within {numbers['margin']:g} by {format_p(numbers['margin_p'], correction)}"
    if kind == "no_worse":
        yield f"by less than {numbers['margin']:g}, {format_p(numbers['margin_p'], correction)}"


def _difference(
    difference: float, interval: tuple[float, float], lift: float, lift_interval: tuple[float, float]
) -> str:
    """Write a difference in per cent of the baseline where defined, else in the metric's own units."""
    if math.isfinite(lift) and math.isfinite(lift_interval[0]):
        low, high = (100.0 * end for end in lift_interval)
        return f"{100.0 * lift:+.1f}% [{low:.1f}, {high:.1f}]"
    # An end that only excludes 0 is shown as 0.
    low, high = (0.0 if abs(end) < 1e-9 * abs(difference) else end for end in interval)
    return f"{difference:+.4g} [{low:.4g}, {high:.4g}]"
