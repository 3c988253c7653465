"""The keywords of compare, each declared once: its type, what it means, and its option in the command."""

# Annotations are values here, not texts, so that the declarations in them can be read.
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from recsys.records.keywords import Keyword

if TYPE_CHECKING:
    from recsys.stats.bootstrap import Progress, Rng, Scheme
    from recsys.stats.mean_inference import Method

DECIDED = "What decides a comparison"
UNITS = "Runs and users of a comparison"
COMPUTED = "How a comparison is computed"
GROUPS = (DECIDED, UNITS, COMPUTED)


class PairOptions(TypedDict, total=False):
    """The options of compare but the correction."""

    headline: Annotated[
        str | None,
        Keyword(
            "the metric that decides, by default the first; all others are secondary.",
            None,
            DECIDED,
            "--headline METRIC",
        ),
    ]
    test: Annotated[
        Literal["permutation", "t", "wilcoxon", "sign", "studentised", "bca"],
        Keyword("the paired test.", "permutation", DECIDED, "--statistic"),
    ]
    interval: Annotated[
        "Method | None", Keyword("the method of the intervals; by default that of the test.", None, DECIDED)
    ]
    effect: Annotated[
        Literal["d_z", "d", "hedges_g", "glass_delta", "cliffs_delta", "rank_biserial"],
        Keyword("the effect size.", "d_z", DECIDED, "--effect"),
    ]
    confidence: Annotated[float, Keyword("of intervals and tests.", 0.95, DECIDED, "--confidence")]
    margin: Annotated[
        float | None,
        Keyword("also test for equivalence within this difference.", None, DECIDED, "--margin"),
    ]
    no_worse_than: Annotated[
        float | None,
        Keyword("also test for non-inferiority: worse by less than this.", None, DECIDED, "--no-worse-than"),
    ]
    rope: Annotated[
        float | None,
        Keyword("also give the Bayesian view: practically equal within this.", None, DECIDED, "--rope"),
    ]
    tie: Annotated[float, Keyword("differences up to this count as ties.", 0.0, DECIDED)]
    runs: Annotated[
        Literal["auto", "seeds", "folds"], Keyword("how several runs of a model relate.", "auto", UNITS)
    ]
    test_over_train: Annotated[
        float | None, Keyword("of folds: the size of the test by that of the training.", None, UNITS)
    ]
    covariates: Annotated[
        Any,
        Keyword(
            "numbers per user to adjust for: a table with a user column, {user: number} or {name: {user: "
            "number}}.",
            None,
            UNITS,
            "--covariate COLUMN",
        ),
    ]
    covariate_means: Annotated[
        Mapping[str, float] | None,
        Keyword("{name: mean} of covariates in the population, where it is known.", None, UNITS),
    ]
    strata: Annotated[
        Any,
        Keyword("groups to stratify by. As `covariates`, or a column of it.", None, UNITS, "--strata COLUMN"),
    ]
    stratum_shares: Annotated[
        Mapping[Any, float] | None,
        Keyword("{stratum: share} of the population, where it is known.", None, UNITS),
    ]
    missing: Annotated[
        Literal["group", "drop", "error"],
        Keyword(
            "users without a group, in comparison.by: one of their own, left out (drop), or an error.",
            "group",
            UNITS,
            "--missing",
        ),
    ]
    n_resamples: Annotated[int, Keyword("how often permutation tests and bootstraps draw.", 10_000, COMPUTED)]
    scheme: Annotated["Scheme", Keyword("how bootstraps draw units.", "auto", COMPUTED)]
    rng: Annotated["Rng", Keyword("the seed of all random draws.", 0, COMPUTED, "--seed")]
    progress: Annotated["Progress | None", Keyword("called with (resamples done, in all).", None, COMPUTED)]


class CompareOptions(PairOptions, total=False):
    """The options of compare."""

    correction: Annotated[
        Literal["none", "bonferroni", "holm", "hochberg", "bh", "by", "max-t"],
        Keyword(
            "of p-values: over the models on the headline, and apart from it on all other metrics.",
            "holm",
            DECIDED,
            "--correction",
        ),
    ]
