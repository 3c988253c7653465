"""Recommenders that are trained on a history: one row each, with the settings that are tried on validation.

Every row returns a source with the ids of its users and items, which evaluate, recommend, compare and
`save_model` take. The same history, settings and seed give the same source.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recsys.errors import InputError, TieWarning, check_choice, hush
from recsys.records.arrays import Ids, Interactions
from recsys.records.registry import Registry

if TYPE_CHECKING:
    from recsys.conventions.decisions import AnyConventions
    from recsys.ranks.sources import Factors, Scores

_OTHER_PARAMETERS = ("history", "catalogue", "seed")
# What every recommender takes besides the history and its settings.
_OF_ALL = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    for name, default in (("catalogue", None), ("seed", 0))
]


class Sizes(NamedTuple):
    """What the time of training depends on; `pairs` are those of two rows of one user."""

    rows: int
    users: int
    items: int
    pairs: int

    @staticmethod
    def of(history: Interactions) -> Sizes:
        """Return the sizes of a history."""
        sizes = history.sizes.astype(np.int64)
        n_items = len(np.unique(history.codes))
        return Sizes(int(sizes.sum()), int((sizes > 0).sum()), n_items, int((sizes**2).sum()))


@dataclass(frozen=True)
class Trainable:
    """A recommender that can be trained, and what is known about it before.

    Attributes:
        fit: `fit(history, *, catalogue=None, seed=0, **settings)` returns factors or scores with ids.
        trials: settings worth trying on validation, at most 8, such that the first few differ most; none
            where nothing can be tuned.
        help: one line.
        extra: the package it needs beyond the required ones, which is the extra's name too.
        needs_times: whether the history must have times.
        draws: whether training draws random numbers, so that another seed gives another model.
        memory: the bytes that fitting takes, by the number of items; None where that does not matter.
        seconds: about how long fitting takes on one core, as measured in 2026; 0 where it is not known.
    """

    fit: Callable[..., Factors | Scores]
    trials: tuple[Mapping[str, Any], ...] = ()
    help: str = ""
    extra: str | None = None
    needs_times: bool = False
    draws: bool = True
    memory: Callable[[int], int] | None = None
    seconds: Callable[[Sizes], float] = lambda _: 0.0

    def runs(self, seed: int, n: int) -> list[dict[str, int]]:
        """Return the seeds of n runs, this one and the next; one run without draws: all would be equal."""
        return [{"seed": seed + at} for at in range(n)] if self.draws else [{}]

    @property
    def settings(self) -> dict[str, Any]:
        """{setting: its default}."""
        parameters = inspect.signature(self.fit).parameters
        return {name: p.default for name, p in parameters.items() if name not in _OTHER_PARAMETERS}

    @property
    def installed(self) -> bool:
        """Whether the package it needs is there."""
        return self.extra is None or find_spec(self.extra) is not None


TRAINABLE: Registry[Trainable] = Registry("model to train", "recsys.trainable")


def _trainable(
    name: str, summary: str, *trials: Mapping[str, Any], **facts: Any
) -> Callable[[Callable[..., Factors | Scores]], Callable[..., Factors | Scores]]:
    """Register a function of a history and its settings; it gets the seed if it has a parameter for it.

    The history has the users who have items, and a code for every item of the catalogue.
    """

    def register(learn: Callable[..., Factors | Scores]) -> Callable[..., Factors | Scores]:
        history, *own = inspect.signature(learn).parameters.values()
        settings_of = [parameter for parameter in own if parameter.name != "seed"]
        draws = len(settings_of) < len(own)

        @wraps(learn)
        def fit(
            history: Interactions, *, catalogue: Sequence[Any] | None = None, seed: int = 0, **settings: Any
        ) -> Factors | Scores:
            return learn(_in_catalogue(history, catalogue), **({"seed": seed} if draws else {}), **settings)

        fit.__signature__ = inspect.Signature([history, *_OF_ALL, *settings_of])  # type: ignore[attr-defined]
        TRAINABLE[name] = Trainable(fit, trials, summary, draws=draws, **facts)
        return fit

    return register


def _trials(names: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Settings worth trying, of which each row has the values of these names."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def train_model(
    name: str, history: Any, *, catalogue: Sequence[Any] | None = None, seed: int = 0, **settings: Any
) -> Factors | Scores:
    """Train the recommender of this name.

    Args:
        name: one of TRAINABLE.
        history: who had what: Interactions, or whatever `recsys.read_interactions` reads.
        catalogue: all item ids, those of the history among them; by default those of the history.
        seed: of whatever is drawn.
        settings: those of the recommender, such as `neighbours=50`; an unknown one is an error.

    >>> import recsys
    >>> model = train_model("item-knn", {"ann": ["a", "b"], "bob": ["b", "c"]}, neighbours=1)
    >>> recsys.recommend(model, 1, seen={"ann": ["a", "b"], "bob": ["b", "c"]}).to_frame()["item"].tolist()
    ['c', 'a']
    """
    from recsys.inputs import read_interactions
    from recsys.inputs.byte_sizes import format_memory

    entry = TRAINABLE.find(name)
    for setting in settings:
        check_choice(f"setting of {name}", setting, entry.settings)
    known, free = read_interactions(history, table="history"), free_memory()
    if entry.memory is not None and free is not None:
        n_items = len(known.items if catalogue is None else catalogue)
        needed = entry.memory(n_items)
        if needed > free:  # the system would end the process
            text = f"{name} of {n_items:,} items takes {format_memory(needed)}"
            raise InputError(
                f"{text}, and {format_memory(free)} are free.",
                hint="Leave out rare items, or train item-knn, which needs far less.",
            )
    return entry.fit(known, catalogue=catalogue, seed=seed, **settings)


def free_memory(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes that this process may still take; None where the system does not tell.

    `group` is the folder of the container's limits; pages of files that the system would hand back are free.
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None
    with suppress(OSError, ValueError, StopIteration):
        limit, used = (int((group / f"memory.{name}").read_text("ascii")) for name in ("max", "current"))
        lines = (group / "memory.stat").read_text("ascii").splitlines()
        used -= next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        free = min(free, max(limit - used, 0))
    return free


class Trial(NamedTuple):
    """One choice of settings: its value on validation, and the seconds that fitting and ranking took."""

    settings: Mapping[str, Any]
    value: float
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """The best settings, their value on validation, the seconds of all trials, and every trial."""

    settings: Mapping[str, Any]
    value: float
    seconds: float
    trials: tuple[Trial, ...]


def tune(
    name: str,
    train: Interactions,
    valid: Interactions,
    *,
    metric: str = "ndcg@10",
    trials: int = 8,
    seed: int = 0,
    catalogue: Sequence[Any] | None = None,
    conventions: AnyConventions = None,
    progress: Callable[[int, int], object] | None = None,
) -> Tuned:
    """Return the settings that do best on validation data, among those of the registry.

    Each trial is fitted on `train` and ranks the whole catalogue but for each user's training items. The
    first of equally good trials wins. Fit the winner on all data afterwards.

    Args:
        name: one of TRAINABLE.
        train: what is learnt from.
        valid: what is to be found.
        metric: what decides; lower is better for those where it is.
        trials: how many of the settings are tried at most.
        seed: of the fits.
        catalogue: all item ids, as in `train_model`.
        conventions: of the evaluation.
        progress: called with (trials done, trials in all).
    """
    from recsys.evaluation.evaluate import evaluate
    from recsys.metrics.registry import Request

    entry, request = TRAINABLE.find(name), Request.parse(metric)
    if trials < 1:
        raise InputError(f"trials={trials} tries nothing.", hint="Use 1 or more.")
    if request.metric.better == "zero":
        raise InputError(f"{metric} is best at 0, and cannot choose settings.", hint="Such as ndcg@10.")
    sign = -1.0 if request.metric.better == "lower" else 1.0
    choices, tried = entry.trials[:trials] or ({},), []
    for settings in choices:
        began = time.perf_counter()
        source = entry.fit(train, catalogue=catalogue, seed=seed, **settings)
        with hush(TieWarning):  # evaluating the winner warns of its ties
            result = evaluate(
                source, valid, [request], seen=train, train=train, conventions=conventions, cautions="ignore"
            )
        tried.append(Trial(settings, float(result[str(request)]), time.perf_counter() - began))
        if progress is not None:
            progress(len(tried), len(choices))
    best = max(tried, key=lambda trial: -math.inf if math.isnan(trial.value) else sign * trial.value)
    return Tuned(best.settings, best.value, sum(trial.seconds for trial in tried), tuple(tried))


def _in_catalogue(history: Interactions, catalogue: Sequence[Any] | None) -> Interactions:
    """Return the history of its users, with a code for every item of the catalogue or of the history."""
    if len(history.codes) == 0:
        raise InputError("there is nothing to learn from: the history is empty.", table="history")
    known = history
    # Small whole numbers are their own codes, those in between too; the rows of a matrix are all meant.
    if known.items.is_range and known.facts.n_columns is None:
        items, codes = np.unique(known.codes, return_inverse=True)
        known = replace(known, items=Ids(known.items.values[items]), codes=codes.astype(np.int32))
    if known.cases.is_range and known.facts.n_rows is None:
        has_items = known.sizes > 0
        indptr = np.concatenate([[0], np.cumsum(known.sizes[has_items])])
        clusters = None if known.clusters is None else known.clusters[has_items]
        known = replace(known, cases=Ids(known.cases.values[has_items]), indptr=indptr, clusters=clusters)
    if catalogue is None:
        return known
    from recsys.inputs.ids import encode, ids_to_array

    all_items, _ = encode(
        ids_to_array(catalogue, table="catalogue", column="item"), table="catalogue", column="item"
    )
    all_items.same_kind(known.items, what="item")
    codes = all_items.code_of(known.items.values)
    if (codes < 0).any():
        raise InputError(
            f"{int((codes < 0).sum()):,} items of the history are not in the catalogue, "
            f"{known.items.name(np.argmin(codes))!r} for one.",
            table="catalogue",
            column="item",
            hint="Pass all item ids; exclude= of evaluate keeps items out of the rankings.",
        )
    return replace(known, items=all_items, codes=codes[known.codes].astype(np.int32))


def _by_popularity(history: Interactions, **weighting: Any) -> Factors:
    from recsys.models.baselines import popularity, training_counts

    return popularity(training_counts(history, **weighting), users=history.cases.values).for_any_user()


@_trainable("popularity", "What most users had.")
def fit_popularity(history: Interactions) -> Factors:
    """Rank by how often an item was taken: the same for everyone, users without a history too."""
    return _by_popularity(history)


@_trainable(
    "recent",
    "What most users had lately.",
    *({"share": share} for share in (0.1, 0.01, 0.4, 0.03, 0.2, 0.8, 0.003, 0.001)),
    needs_times=True,
)
def fit_recent(
    history: Interactions,
    *,
    half_life: float | str | None = None,
    unit: str | None = None,
    share: float = 0.1,
) -> Factors:
    """Popularity where old events count less; for everyone, as popularity.

    Args:
        history: with times.
        half_life: the age at which an event counts half: a length such as "7d", or a number in the unit of
            the times (dates: seconds).
        unit: what numeric times count since 1970 ("s", "ms", "us" or "ns"), where half_life is a length.
        share: without half_life, the half-life as a share of the time between the first and the last event.
    """
    if half_life is None and history.times is not None:
        from recsys.inputs.timestamps import to_seconds

        if not share > 0:
            raise InputError(f"share={share!r} is not a positive number.", hint="Such as 0.1.")
        times = to_seconds(history.times)
        # All at one time: every half-life gives the same counts.
        half_life = float(np.nanmax(times) - np.nanmin(times)) * share or 1.0
    return _by_popularity(history, half_life=1.0 if half_life is None else half_life, unit=unit)


@_trainable("random", "A random order of all items for each user.")
def fit_random(history: Interactions, *, seed: int = 0) -> Scores:
    """Rank at random for each user, those without a history too."""
    from recsys.models.baselines import shuffled

    return shuffled(users=history.cases.values, item_ids=history.items.values, seed=seed).for_any_user()


@_trainable(
    "item-knn",
    "Items most like the user's own, by who had them.",
    *_trials(
        "neighbours weighting shrinkage",
        (200, "cosine", 0.0),
        (100, "cosine", 20.0),
        (200, "tf-idf", 0.0),
        (20, "cosine", 0.0),
        (200, "tf-idf", 20.0),
        (100, "cosine", 0.0),
        (100, "tf-idf", 0.0),
        (200, "cosine", 100.0),
    ),
    seconds=lambda sizes: 6e-9 * sizes.pairs + 5e-5 * sizes.items,
)
def fit_item_knn(
    history: Interactions, *, neighbours: int = 100, weighting: str = "cosine", shrinkage: float = 0.0
) -> Scores:
    """Fit item-based nearest neighbours; see `recsys.models.item_weights.knn_weights`."""
    from recsys.models.item_weights import knn_weights

    return _by_history(
        history,
        lambda rows: knn_weights(rows, neighbours=neighbours, weighting=weighting, shrinkage=shrinkage),
        np.float64,
    )


def _ease_bytes(n_items: int) -> int:
    from recsys.models.item_weights import ease_bytes

    return ease_bytes(n_items)


@_trainable(
    "ease",
    "EASE: each item from all others, linearly.",
    *({"regularisation": float(r)} for r in (500, 100, 2000, 50, 1000, 200, 5000, 10)),
    memory=_ease_bytes,
    seconds=lambda sizes: 1e-10 * min(sizes.users, sizes.items) ** 3 + 2e-9 * sizes.rows * sizes.items,
)
def fit_ease(history: Interactions, *, regularisation: float = 500.0) -> Scores:
    """Fit EASE in closed form; see `recsys.models.item_weights.ease_weights`."""
    from recsys.models.item_weights import ease_weights

    return _by_history(history, lambda rows: ease_weights(rows, regularisation=regularisation), np.float32)


def _by_history(history: Interactions, learn: Callable[[Any], Any], dtype: Any) -> Scores:
    """Scores of the users by the weights that are learnt from their items."""
    from scipy.sparse import csr_array

    from recsys.ranks.sources import HistoryScores

    shape = (len(history.cases), len(history.items))
    rows = csr_array((np.ones(len(history.codes), dtype), history.codes, history.indptr), shape=shape)
    return HistoryScores(rows, learn(rows), user_ids=history.cases.values, item_ids=history.items.values)


@_trainable(
    "als",
    "Factors by alternating least squares (implicit).",
    *_trials(
        "factors regularisation alpha",
        (64, 0.05, 1.0),
        (128, 10.0, 1.0),
        (32, 0.05, 1.0),
        (128, 30.0, 3.0),
        (64, 10.0, 1.0),
        (64, 10.0, 3.0),
        (128, 0.05, 1.0),
        (128, 30.0, 10.0),
    ),
    extra="implicit",
    seconds=lambda sizes: 7e-6 * sizes.rows + 2e-5 * (sizes.users + sizes.items),
)
def fit_als(
    history: Interactions,
    *,
    seed: int = 0,
    factors: int = 64,
    regularisation: float = 0.05,
    alpha: float = 1.0,
    iterations: int = 15,
) -> Factors:
    """Weighted alternating least squares (Hu, Koren & Volinsky, 2008), as implicit computes it."""
    from recsys.models.implicit_feedback import als

    return _factors(
        als,
        history,
        factors=factors,
        seed=seed,
        regularization=regularisation,
        alpha=alpha,
        iterations=iterations,
    )


@_trainable(
    "bpr",
    "Factors by Bayesian pairwise ranking (implicit).",
    *_trials(
        "factors learning_rate regularisation iterations",
        (64, 0.02, 0.01, 50),
        (64, 0.05, 0.01, 50),
        (128, 0.02, 0.03, 100),
        (32, 0.05, 0.01, 50),
        (128, 0.02, 0.01, 50),
        (64, 0.1, 0.01, 50),
        (64, 0.01, 0.01, 100),
        (128, 0.05, 0.01, 100),
    ),
    extra="implicit",
    seconds=lambda sizes: 1e-5 * sizes.rows,
)
def fit_bpr(
    history: Interactions,
    *,
    seed: int = 0,
    factors: int = 64,
    learning_rate: float = 0.02,
    regularisation: float = 0.01,
    iterations: int = 50,
) -> Factors:
    """Bayesian personalised ranking (Rendle et al., 2009), as implicit computes it; on one thread.

    Threads would update the same factors in any order, so that no two runs agreed.
    """
    from recsys.models.implicit_feedback import bpr

    return _factors(
        bpr,
        history,
        factors=factors,
        seed=seed,
        learning_rate=learning_rate,
        regularization=regularisation,
        iterations=iterations,
        num_threads=1,
    )


def _factors(fit: Callable[..., Any], history: Interactions, **settings: Any) -> Factors:
    """Return the factors that implicit learns; it takes 0 factors or iterations without a word."""
    from recsys.ranks.sources import Factors

    for name in ("factors", "iterations"):
        if settings[name] < 1:
            raise InputError(f"{name}={settings[name]} makes no model.", hint="Use 1 or more.")
    model = fit(history, **settings)
    return Factors(model.user_factors, model.item_factors, user_ids=model.user_ids, item_ids=model.item_ids)
