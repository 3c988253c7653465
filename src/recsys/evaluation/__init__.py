"""One evaluation: inputs to ranks to values per case to a result, with its intervals, bounds and files.

The verbs (evaluate, recommend, score_list, evaluate_candidates, evaluate_ratings, load) are names of
`recsys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.evaluation.evaluator import Evaluator
    from recsys.evaluation.results import Evaluation
    from recsys.evaluation.stopping import StopWhen

__all__ = ["Evaluation", "Evaluator", "StopWhen"]
__getattr__, __dir__ = lazy_names(
    __name__, {"evaluator": ("Evaluator",), "results": ("Evaluation",), "stopping": ("StopWhen",)}
)
