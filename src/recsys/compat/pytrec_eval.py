"""The names of pytrec_eval over this library: change the import, keep the numbers.

    from recsys.compat import pytrec_eval

Signatures, measure names, keys and their order are those of pytrec-eval-terrier 0.5.11; every number comes
from `recsys.metrics` under the preset "trec_eval". docs/drop-in.md lists what differs.
"""

from __future__ import annotations

import collections
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.evaluation.case_values import plain_values, values_by_case
from recsys.kernels import dict_rows, hold_truth
from recsys.metrics.ranking import logs_of
from recsys.records.arrays import Float

__version__ = "0.5.11"  # whose behaviour this is
__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

_CUTS = "5,10,15,20,30,100,200,500,1000"
_TENTHS = ",".join(f"{n / 10:.2f}" for n in range(11))
_MULTIPLES = ",".join(f"{n / 5:.2f}" for n in range(1, 11))
_N_RELEVANT = "count(what=relevant)"
_ANY_GRADE = "relevant_from=none"  # gains count from grade 1 on, whatever the relevance level


@dataclass(frozen=True)
class _Measure:
    """How one measure is asked for here: a request with a place for its parameter, or a constant."""

    request: str | float
    takes: str = "nothing"  # cut-offs, shares, points, gains, beta or weights
    default: str = ""
    log: bool = False


# In the order in which results hold them.
_MEASURES: dict[str, _Measure] = {
    "runid": _Measure(0.0),
    "num_q": _Measure(1.0),
    "num_ret": _Measure("count"),
    "num_rel": _Measure(_N_RELEVANT),
    "num_rel_ret": _Measure("hits"),
    "map": _Measure("map"),
    "gm_map": _Measure("map", log=True),
    "Rprec": _Measure("r_precision"),
    "bpref": _Measure("bpref"),
    "recip_rank": _Measure("mrr"),
    "iprec_at_recall": _Measure("iprec(recall={})", "shares", _TENTHS),
    "P": _Measure("precision@{}", "cut-offs", _CUTS),
    "relstring": _Measure(0.0),
    "recall": _Measure("recall@{}", "cut-offs", _CUTS),
    "infAP": _Measure("inf_ap"),
    "gm_bpref": _Measure("bpref", log=True),
    "Rprec_mult": _Measure("r_precision_at(multiple={})", "shares", _MULTIPLES),
    "utility": _Measure("utility(a={}, b={}, missed={}, rest={})", "weights", "1,-1,0,0"),
    "11pt_avg": _Measure("eleven_point", "points"),
    "binG": _Measure("binary_g"),
    "G": _Measure(f"g({_ANY_GRADE})", "gains"),
    "ndcg": _Measure(f"ndcg({_ANY_GRADE})", "gains"),
    "ndcg_rel": _Measure(f"ndcg_rel({_ANY_GRADE})", "gains"),
    "Rndcg": _Measure(f"r_ndcg({_ANY_GRADE})", "gains"),
    "ndcg_cut": _Measure(f"ndcg({_ANY_GRADE})@{{}}", "cut-offs", _CUTS),
    "map_cut": _Measure("map@{}", "cut-offs", _CUTS),
    "relative_P": _Measure("precision(over=min)@{}", "cut-offs", _CUTS),
    "success": _Measure("hit@{}", "cut-offs", "1,5,10"),
    "set_P": _Measure("set_precision"),
    "set_relative_P": _Measure("set_relative_precision"),
    "set_recall": _Measure("set_recall"),
    "set_map": _Measure("set_map"),
    "set_F": _Measure("set_f(beta={})", "beta", "1"),
    "num_nonrel_judged_ret": _Measure("count(what=not_relevant)"),
}
supported_measures: set[str] = set(_MEASURES)
_COUNTS = {"runid", "num_q", "num_ret", "num_rel", "num_rel_ret"}
_PREFERENCES = {"runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"}
_PREFERENCES |= {"prefs_simp", "prefs_pair", "prefs_avgjg"}
supported_nicknames: dict[str, set[str]] = {
    "all_trec": set(_MEASURES),
    "official": _COUNTS | {"map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"},
    "set": _COUNTS | {"set_P", "set_relative_P", "set_recall", "set_map", "set_F", "utility"},
    "prefs": _PREFERENCES,
    "all_prefs": _PREFERENCES
    | {f"prefs_{kind}_{end}" for kind in ("simp", "pair", "avgjg") for end in ("imp", "ret")}
    | {"prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"},
    "qrels_jg": {"runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"},
}
_WITH_PARAMETERS = re.compile(
    f"({'|'.join(sorted(map(re.escape, _MEASURES), key=len, reverse=True))})"
    r"[._](\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)",
    re.ASCII,
)


class RelevanceEvaluator:
    """Evaluate runs against judgements, with the measures of trec_eval.

    Args:
        query_relevance: {query: {document: grade}}, grades are whole numbers, negative ones are unjudged.
        measures: names of measures or nicknames, with parameters or without: "map", "ndcg_cut.5,10", "P_5".
        relevance_level: the lowest grade that is relevant.
        judged_docs_only_flag: whether unjudged documents are taken out of the runs.

    Raises:
        ValueError: a measure is unknown, or its parameter is not one it takes.
        TypeError: an argument is of another type.

    >>> evaluator = RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "ndcg_cut_5"})
    >>> evaluator.evaluate({"q1": {"d1": 0.5, "d2": 2.0}})
    {'q1': {'map': 0.5, 'ndcg_cut_5': 0.6309297535714575}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        self._columns = [column for name, given in _parse(measures) for column in _columns_of(name, given)]
        level, judged_only = operator.index(relevance_level), operator.index(judged_docs_only_flag)
        if not 0 < level < 2**31 or abs(judged_only) >= 2**31:
            raise TypeError("Argument relevance_level should be positive, and numbers below 2^31.")
        self._conventions = Conventions.named("trec_eval").but(
            no_truth="zero",
            no_list="empty",
            relevant_from=None if level == 1 else level,
            judged_only="yes" if judged_only else "no",
        )
        judged = query_relevance.items()  # an AttributeError if it is not a mapping
        held = hold_truth(query_relevance)
        if held is None:
            held = {}
            for query, grades in judged:
                if len(grades) > 0:
                    _check_types("query_relevance", query, grades, int, "relevances")
                    held[query] = dict(grades)
        self._truth = held

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """The measures of every query that has judgements and a list: {query: {measure: value}}.

        Args:
            scores: {query: {document: score}}.

        Raises:
            TypeError: an argument is of another type.
            ValueError: a score is NaN.
        """
        if not scores:
            return {}
        if not isinstance(scores, dict):
            raise TypeError(f"scores should be a dict, not {type(scores).__name__}.")
        asked = {part for column in self._columns for part in column.parts if isinstance(part, str)}
        if any(column.key == "Rndcg" for column in self._columns):
            asked.add(_N_RELEVANT)
        found = plain_values(scores, self._truth, sorted(asked), self._conventions, float32=True)
        if found is None:
            run = {query: float32_scores(query, listed) for query, listed in scores.items()}
            truth = self._truth if isinstance(self._truth, dict) else self._truth.dicts()
            found = values_by_case(run, truth, sorted(asked), self._conventions)
        queries, values = found
        rows = np.zeros((len(queries), len(self._columns)))
        for at, column in enumerate(self._columns):
            for part in column.parts:
                rows[:, at] += values[part] if isinstance(part, str) else part
            if len(column.parts) > 1:
                rows[:, at] /= len(column.parts)
            if column.log:
                rows[:, at] = logs_of(rows[:, at])
            if column.key == "Rndcg":  # 0 where no grade reaches the relevance level; the rest of ndcg is not
                rows[values[_N_RELEVANT] == 0, at] = 0.0
        return dict_rows(queries, [column.key for column in self._columns], rows)


@dataclass(frozen=True)
class _Answer:
    """One value of each query: its key, and the requests or constants that it is the mean of, mostly one."""

    key: str
    parts: tuple[str | float, ...]
    log: bool = False


def _parse(measures: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The measures in the order of results, each with the parameters that were given for it."""
    names: set[str] = set()
    for measure in measures:
        names |= supported_nicknames.get(measure, {measure})
    given: dict[str, set[str]] = collections.defaultdict(set)
    for name in names:
        found = None if name in _MEASURES else _WITH_PARAMETERS.match(name)
        if name not in _MEASURES and found is None:
            raise ValueError(f"unsupported measure {name}")
        base, parameters = (name, []) if found is None else (found[1], found[2].split(","))
        given[base].update(parameters)
    return [(name, tuple(sorted(given[name]))) for name in _MEASURES if name in given]


@cache
def _columns_of(name: str, given: tuple[str, ...]) -> tuple[_Answer, ...]:
    """The columns of one measure; parameters that it does not take are left out, as in the original."""
    measure = _MEASURES[name]
    texts: Sequence[str] = given or measure.default.split(",")
    if measure.takes == "gains" and given:
        raise ValueError(f"{name} takes pairs of a grade and its gain, not {','.join(given)}.")
    if measure.takes == "weights" and len(texts) != 4:
        raise ValueError(f"{name} takes four different weights, not {','.join(given)}.")
    if not isinstance(measure.request, str) or measure.takes in ("nothing", "gains"):
        return (_Answer(name, (measure.request,), log=measure.log),)
    if measure.takes == "beta" and float(texts[0]) == 0:
        return (_Answer(name, ("set_precision",)),)
    if measure.takes in ("beta", "weights"):
        return (_Answer(name, (measure.request.format(*texts),)),)
    if measure.takes == "points":
        levels = _columns_of("iprec_at_recall", given)[::-1] if given else ()  # added from the highest on
        return (_Answer(name, tuple(part for level in levels for part in level.parts) or (measure.request,)),)
    if measure.takes == "shares":
        shares = sorted(float(text) for text in texts)
        reachable = [
            0.0 if name == "iprec_at_recall" and s > 1 else measure.request.format(s) for s in shares
        ]
        return tuple(_Answer(f"{name}_{s:.2f}", (r,)) for s, r in zip(shares, reachable, strict=True))
    cuts = sorted({int(float(text)) for text in texts})
    if cuts[0] < 1:
        raise ValueError(f"{name} takes cut-offs of at least 1, not {','.join(given)}.")
    return tuple(_Answer(f"{name}_{cut}", (measure.request.format(cut),)) for cut in cuts)


def float32_scores(query: Any, listed: Any) -> dict[str, float]:
    """The scores of one query as trec_eval keeps them: 32 bits, and a number beyond them is infinite."""
    _check_types("scores", query, listed, (float, int), "scores")
    with np.errstate(over="ignore"):
        kept = np.fromiter(listed.values(), np.float64, len(listed)).astype(np.float32).astype(np.float64)
    if np.isnan(kept).any():
        raise ValueError(f"a score of query {query!r} is NaN, so its list has no order.")
    return dict(zip(listed, np.clip(kept, -1e300, 1e300).tolist(), strict=True))


def _check_types(side: str, query: Any, row: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raise an error if one query does not hold {document: number} with numbers of these types."""
    if not isinstance(query, str) or not isinstance(row, dict):
        raise TypeError(
            f"{side} should map text to dicts, not {type(query).__name__} to {type(row).__name__}."
        )
    for values, right, name in ((row, str, "document ids"), (row.values(), kinds, what)):
        for kind in set(map(type, values)):
            if not issubclass(kind, right):
                wanted = right if isinstance(right, type) else right[0]
                raise TypeError(f"{name} should not be {kind.__name__}: make them {wanted.__name__}(…).")


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """The lines of a TREC run, "query Q0 document rank score name", as {query: {document: score}}.

    Raises:
        ValueError: a line has another number of columns, or a score is not a number.
        AssertionError: a query lists a document twice.
    """
    return _parse_lines(f_run, n_columns=6, at=4, number=float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """The lines of TREC judgements, "query 0 document grade", as {query: {document: grade}}.

    Raises:
        ValueError: a line has another number of columns, or a grade is not a whole number.
        AssertionError: a document is judged twice.
    """
    return _parse_lines(f_qrel, n_columns=4, at=3, number=int)


def _parse_lines(
    lines: Iterable[str], *, n_columns: int, at: int, number: Callable[[str], Any]
) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = collections.defaultdict(dict)
    for line in lines:
        cells = line.split()
        if len(cells) != n_columns:
            raise ValueError(f"{n_columns} columns were expected, and {line.strip()!r} has {len(cells)}.")
        if cells[2] in tables[cells[0]]:
            raise AssertionError(f"query {cells[0]!r} has {cells[2]!r} twice.")
        tables[cells[0]][cells[2]] = number(cells[at])
    return tables


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """One number of the values of all queries: a sum for num_…, a geometric mean for gm_…, else the mean.

    >>> compute_aggregated_measure("num_ret", [3.0, 4.0]), compute_aggregated_measure("map", [0.5, 1.0])
    (7.0, 0.75)
    """
    column: Float = np.asarray(values, dtype=np.float64)
    if measure.startswith("num_"):
        return float(column.sum())
    mean = column.sum() / len(column) if measure.startswith("gm_") and len(column) else np.mean(column)
    return float(np.exp(mean)) if measure.startswith("gm_") else float(mean)
