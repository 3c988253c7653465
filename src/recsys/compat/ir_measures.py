"""A provider for ir_measures: after `register()` its measures come from this library.

    import ir_measures
    import recsys.compat.ir_measures

    recsys.compat.ir_measures.register()
    ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)

No pytrec_eval, perl or numba is needed then. docs/drop-in.md lists the measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recsys.compat.pytrec_eval import float32_scores
from recsys.conventions.decisions import Conventions
from recsys.evaluation.case_values import values_by_case

if TYPE_CHECKING:
    from ir_measures.providers import Provider

# The metric here and, by the names of their parameters there, the names here.
_MEASURES: dict[str, tuple[str, dict[str, str]]] = {
    "P": ("precision", {}),
    "RR": ("mrr", {}),
    "Rprec": ("r_precision", {}),
    "AP": ("map", {}),
    "nDCG": ("ndcg", {}),
    "R": ("recall", {}),
    "Bpref": ("bpref", {}),
    "NumRet": ("count", {}),
    "NumRel": ("count(what=relevant)", {}),
    "SetAP": ("set_map", {}),
    "SetF": ("set_f", {"beta": "beta"}),
    "SetP": ("set_precision", {}),
    "SetR": ("set_recall", {}),
    "Success": ("hit", {}),
    "IPrec": ("iprec", {"recall": "recall"}),
    "infAP": ("inf_ap", {}),
    "Judged": ("judged", {}),
    "ERR": ("err", {}),
    "RBP": ("rbp", {"p": "p"}),
    "BPM": ("bpm", {"T": "target", "min_rel": "min_grade", "max_rel": "max_grade"}),
    "SDCG": ("sdcg", {"min_rel": "min_grade", "max_rel": "max_grade"}),
    "INST": ("inst", {"T": "target", "min_rel": "min_grade", "max_rel": "max_grade"}),
    "Compat": ("compat", {"p": "p"}),
}
_SHARED = {"rel": "relevant_from", "judged_only": "judged_only"}
# How the programs that ir_measures asks otherwise order equal scores, where that is not by descending id.
# These keep scores as they are, the others round them to float32.
_TIES = {"by_id": ("Judged", "Compat"), "given": ("RBP", "BPM", "SDCG", "INST")}


def register() -> Provider:
    """Put the provider "recsys" before all others of ir_measures; a second call changes nothing.

    Raises:
        ImportError: ir_measures is not installed.
    """
    import ir_measures

    known = ir_measures.providers.registry.get("recsys")
    if known is None:
        known = ir_measures.providers.register(_provider_class()())
        ir_measures.DefaultPipeline.providers.insert(0, known)
    return known


def _provider_class() -> type[Provider]:
    """The class, made when ir_measures is there to derive it from."""
    import ir_measures
    from ir_measures import measures, providers
    from ir_measures.providers.base import NOT_PROVIDED
    from ir_measures.providers.base import Any as AnyValue

    class RecsysEvaluator(providers.Evaluator):  # type: ignore[misc, unused-ignore]
        def __init__(self, asked: Iterable[Any], qrels: Mapping[str, Mapping[str, int]]) -> None:
            super().__init__(list(asked), set(qrels))
            self.qrels = qrels

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            scores = ir_measures.util.RunConverter(run).as_dict_of_dict()
            rounded = {query: float32_scores(query, listed) for query, listed in scores.items()}
            for measure in self.measures:
                ties = next((rule for rule, names in _TIES.items() if measure.NAME in names), "by_id_desc")
                if measure.NAME == "RR" and "cutoff" in measure.params:
                    ties = "by_id"
                rules = Conventions.named("ir_measures").but(no_list="empty", ties=ties)
                if "gains" in measure.params:
                    rules = rules.but(gain=_gains(measure["gains"], self.qrels))
                request = _request(measure, NOT_PROVIDED)
                lists = rounded if ties == "by_id_desc" else scores
                queries, values = values_by_case(lists, self.qrels, [request], rules)
                for query, value in zip(queries, values[request].tolist(), strict=True):
                    if not np.isnan(value):
                        yield ir_measures.Metric(query_id=query, measure=measure, value=value)

    class RecsysProvider(providers.Provider):  # type: ignore[misc, unused-ignore]
        """The metrics of recsys."""

        NAME = "recsys"
        SUPPORTED_MEASURES: ClassVar[list[Any]] = [
            cls(**dict.fromkeys(cls.SUPPORTED_PARAMS, AnyValue()))
            for cls in (getattr(measures, f"_{name}") for name in _MEASURES)
        ]

        def supports(self, measure: Any) -> bool:
            graded_rbp = measure.NAME == "RBP" and measure["rel"] is NOT_PROVIDED
            gains = measure.params.get("gains", {})
            is_gain = min(gains.values(), default=0) >= 0 and gains.get(0, 0) == 0
            return bool(super().supports(measure)) and is_gain and not graded_rbp

        def _evaluator(self, measures: Iterable[Any], qrels: Any) -> RecsysEvaluator:
            return RecsysEvaluator(measures, ir_measures.util.QrelsConverter(qrels).as_dict_of_dict())

    return RecsysProvider


def _request(measure: Any, not_provided: Any) -> str:
    """How a measure of ir_measures is asked for here."""
    metric, own = _MEASURES[measure.NAME]
    names = own | _SHARED
    given = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    params = [f"{names[n]}={_text(v)}" for n, v in given.items() if n in names and v is not not_provided]
    if measure.NAME == "NumRet" and given["rel"] is not not_provided:
        metric = "hits"
    if measure.NAME == "SetP" and given["relative"]:
        metric = "set_relative_precision"
    if measure.NAME == "nDCG" and given["dcg"] == "exp-log2":
        params.append("gain=exp2")
    if measure.NAME == "Compat" and not given["normalize"]:
        params.append("over=weights")
    if metric.endswith(")"):
        metric, inside = metric[:-1].split("(")
        params.append(inside)
    cut = given.get("cutoff", not_provided)
    return f"{metric}({', '.join(params)})" + ("" if cut is not_provided else f"@{cut}")


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else repr(value)


def _gains(given: Mapping[int, int], qrels: Mapping[str, Mapping[str, int]]) -> dict[int, int]:
    """The gain of every grade that occurs; a grade that was given none is its own gain."""
    grades = {grade for judged in qrels.values() for grade in judged.values() if grade > 0}
    return {grade: given.get(grade, grade) for grade in grades | {1}}
