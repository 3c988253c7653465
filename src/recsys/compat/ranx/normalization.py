"""The normalisations of ranx by its names: a run in, a run out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recsys.compat.ranx import add_modules
from recsys.compat.ranx.data_structures import Nested, Run, finite
from recsys.inputs.containers import read_lists
from recsys.ranks.fusion import Pool, find_normalisation, pool_runs
from recsys.records.arrays import Ids, Lists

__all__ = ["borda_norm", "max_norm", "min_max_norm", "rank_norm", "sum_norm", "zmuv_norm"]


def pool_of(runs: Sequence[Run], queries: Ids | None = None, *, infinite: bool = True) -> Pool:
    """The runs as one table, of these queries or of all; `infinite` says whether scores may be."""
    nested = [finite(run.nested) if infinite else run.nested for run in runs]
    return pool_runs([read_lists(each, allow_empty=True) for each in nested], queries)


def run_of(lists: Lists, queries: Sequence[str], name: str | None) -> Run:
    """Lists as a run with these queries."""
    items = lists.items.values[lists.codes].tolist()
    scores = [] if lists.scores is None else lists.scores.tolist()
    borders = lists.indptr.tolist()
    content: Nested = {query: {} for query in queries}
    for case, start, stop in zip(lists.cases.values.tolist(), borders[:-1], borders[1:], strict=True):
        content[case] = dict(zip(items[start:stop], scores[start:stop], strict=True))
    run = Run(name=name)
    run.run = content
    run.sorted = True
    return run


def normalised(runs: Sequence[Run], norm: str) -> list[Run]:
    """Every run with the scores of this normalisation."""
    row = find_normalisation(norm)
    pool = row.apply(pool_of(runs, infinite=row.reads == "places"))
    return [run_of(pool.lists_of(at), sorted(run.keys()), run.name) for at, run in enumerate(runs)]


def min_max_norm(run: Run, invert: bool = False) -> Run:
    """(score - least) / (greatest - least); inverted, (greatest - score) / (greatest - least)."""
    return normalised([run], "min-max-inverted" if invert else "min-max")[0]


def max_norm(run: Run) -> Run:
    """Score / greatest."""
    return normalised([run], "max")[0]


def sum_norm(run: Run) -> Run:
    """(score - least) / sum of these."""
    return normalised([run], "sum")[0]


def zmuv_norm(run: Run) -> Run:
    """(score - mean) / standard deviation."""
    return normalised([run], "zmuv")[0]


def rank_norm(run: Run) -> Run:
    """1 for the first place, less 1 / length for every further one."""
    return normalised([run], "rank")[0]


def borda_norm(runs: Sequence[Run]) -> list[Run]:
    """Borda points over the number of candidates, of several runs."""
    return normalised(runs, "borda")


def norm_switch(method: str = "min-max") -> Callable[..., Any]:
    """The function of a normalisation."""
    row = find_normalisation(method)
    if row.name == "borda":
        return borda_norm
    return lambda run: normalised([run], row.name)[0]


add_modules(__name__, {name: {name: globals()[name]} for name in __all__})
